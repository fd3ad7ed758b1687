import Admin
import FoundationEssentials
import Ground
import HTTPRules
import Logging
import NIOCore
import NodeConfiguration
import Origin
import Platform
import Synchronization
import Telemetry
import Wire

/// Handler of operators' requests on one connection, which a ``RequestHandler`` has parsed.
///
/// Confined to its event loop.
final class AdminHandler {
    /// Context of the handler's loop.
    let context: EventLoopContext
    /// Sender of the responses.
    let response: ResponseSender
    /// The purge that a request waits for.
    var pendingPurge: PendingPurge?
    /// Refusal of a request, to be sent at the deadline of the response.
    var delayedRefusal: AdminAccessError?
    /// The event stream being sent to the client.
    private var eventStream: EventStream?

    var settings: NodeSettings { context.settings }

    /// Creates a handler that responds through `response`.
    init(_ response: ResponseSender) {
        context = response.context
        self.response = response
    }

    /// Responds to a request.
    func respond(to request: AdminRequest) {
        switch AdminRoute(method: request.method, target: request.target) {
        case .notFound: response.sendProblem(.adminNotFound)
        case .methodNotAllowed(let allowed):
            response.sendProblem(.methodNotAllowed(allowed: allowed))
        case .operation(let operation, let arguments):
            guard let role = admit(request, to: operation) else { return }
            do throws(AdminQuery.QueryError) {
                let query = try request.query(of: operation)
                respond(operation, arguments, query, request.head, body: request.body, role)
            } catch {
                response.sendProblem(Problem(error.problem))
            }
        }
    }

    /// Sends the refusal that was delayed until now, if there is one.
    func deadlineReached() {
        if let refusal = delayedRefusal.take() { reject(refusal) }
    }

    /// Abandons the wait for a purge, a delayed refusal and the event stream after the connection
    /// has ended.
    func connectionClosed() {
        pendingPurge = nil
        delayedRefusal = nil
        eventStream = nil
    }

    /// Runs an operation that the caller may use.
    private func respond(
        _ operation: AdminOperation, _ arguments: [String], _ query: AdminQuery,
        _ request: BufferedRequest, body: [UInt8], _ role: AdminRole
    ) {
        let node = context.node
        switch operation.id {
        case .showDashboard: sendDashboard()
        case .getHealth, .getReadiness: response.sendHealth(operation.id, query)
        case .getMetrics: sendMetrics(to: request)
        case .getOpenAPI:
            response.sendText(
                status: 200, contentType: "application/json", Self.openAPIDocument,
                fields: ResponseSender.noStore)
        case .getStatus: send(StatusDocument(of: node, for: role).json)
        case .getStatistics: send(node.statistics().json)
        case .watchStatistics:
            startEventStream(every: .milliseconds(query.number("interval_ms") ?? 1_000))
        case .listHotEntries: sendHotEntries(Int(query.number("limit") ?? 12))
        case .getEntry: sendEntry(query["url"] ?? "")
        case .getEntryBody:
            sendEntryBody(query["url"] ?? "", key: query["key"], variant: query["variant"])
        case .listMembers: send(DocumentList(node.memberRows()).json)
        case .forgetMembers: send("forgetting", unless: node.forgetMembers(arguments[0]))
        case .bootstrap: send("opened", unless: node.bootstrap())
        case .recover: send("recovering", unless: node.recover())
        case .getRing: send(RingDocument(of: node).json)
        case .listOrigins: send(DocumentList<OriginDocument>(of: node).json)
        case .listSites: send(DocumentList<SiteDocument>(of: node).json)
        case .listCertificates: send(DocumentList<CertificateDocument>(of: node).json)
        case .getConditions: send(node.conditions().json)
        case .getHistory: send(HistoryDocument(node.monitor.withState { $0.history }).json)
        case .getConfiguration: send(node.configurationDocument.json)
        case .getLogLevel: send(LogLevelDocument(node.logger.logLevel.rawValue).json)
        case .setLogLevel: setLogLevel(body, operation)
        case .getSupportSnapshot: sendSupport(for: role)
        case .listPurges: sendPurges(query)
        case .issuePurge: issuePurge(query, body)
        case .getReceipt: sendReceipt(arguments[0])
        case .listPrefetches: sendPrefetches()
        case .beginPrefetch: startPrefetch(body, operation)
        case .getPrefetch: sendPrefetch(arguments[0])
        case .cancelPrefetch: cancelPrefetch(arguments[0])
        case .drain:
            node.handleOperatorCommand(.drain(stops: query["stop"] == "true"))
            send(OperationStatusDocument("draining").json, status: 202)
        case .undrain: undrain()
        }
    }

    /// The OpenAPI document, rendered once, because any client may request it.
    private static let openAPIDocument = OpenAPI.document(version: Configuration.version)
        .formattedBytes

    /// Sends a JSON document with `Cache-Control: no-store`.
    func send(_ document: JSON, status: UInt16 = 200, fields: String = "") {
        response.send(document, status: status, fields: fields)
    }

    // MARK: Operations that change the node

    /// Sets the log level that the JSON in `body` names.
    private func setLogLevel(_ body: [UInt8], _ operation: AdminOperation) {
        guard body.count <= operation.body?.bytesMax ?? 0 else {
            return response.sendProblem(
                .bodyTooLarge(bytesMax: UInt64(operation.body?.bytesMax ?? 0)))
        }
        do {
            let document = try JSONDecoder().decode(LogLevelDocument.self, from: Data(body))
            guard let level = Logger.Level(rawValue: document.level) else {
                preconditionFailure("\(document.level) is no level of the logger")
            }
            context.node.setLogLevel(from: level, for: RequestCorrelation(response.requestID, nil))
            send(document.json)
        } catch {
            response.sendProblem(.invalidAdminBody(RequestBodyError(decodingError: error)))
        }
    }

    /// Sends `problem` if the operation was refused, otherwise 202 with `state`.
    private func send(_ state: String, unless problem: Problem?) {
        if let problem { return response.sendProblem(problem) }
        send(OperationStatusDocument(state).json, status: 202)
    }

    /// Ends a drain, unless the node is stopping.
    private func undrain() {
        guard !context.node.isStopping.load(ordering: .relaxed) else {
            return response.sendProblem(.nodeStopping)
        }
        context.node.handleOperatorCommand(.undrain)
        send(OperationStatusDocument("ready").json, status: 202)
    }
}

/// Prefetch operations of the admin port.
extension AdminHandler {
    /// Starts a prefetch job from the JSON in `body`.
    func startPrefetch(_ body: [UInt8], _ operation: AdminOperation) {
        let node = context.node
        guard body.count <= operation.body?.bytesMax ?? 0 else {
            return response.sendProblem(
                .bodyTooLarge(bytesMax: UInt64(operation.body?.bytesMax ?? 0)))
        }
        guard !node.isStopping.load(ordering: .relaxed) else {
            return response.sendProblem(.nodeStopping)
        }
        // Decoding ten thousand URLs takes longer than an event loop may be blocked.
        let read = runOnThread {
            Result { try JSONDecoder().decode(PrefetchRequest.self, from: Data(body)) }
        }
        respondLater(read) { handler, result in
            switch result {
            case .success(let request): handler.begin(request, operation)
            case .failure(let error):
                handler.response.sendProblem(
                    .invalidAdminBody(RequestBodyError(decodingError: error)))
            }
        }
    }

    /// Starts the prefetch and sends its document with 202, unless the node is stopping or too many
    /// are running.
    private func begin(_ request: PrefetchRequest, _ operation: AdminOperation) {
        let node = context.node
        guard !node.isStopping.load(ordering: .relaxed) else {
            return response.sendProblem(.nodeStopping)
        }
        do throws(PrefetchJobTable.StartError) {
            let document = try node.prefetcher.begin(request, on: node)
            send(
                document.json, status: 202,
                fields: "Location: \(operation.path)/\(document.prefetch)\r\n")
        } catch {
            switch error {
            case .tooManyRunning: response.sendProblem(.prefetchesTooMany)
            }
        }
    }

    /// Sends the documents of all prefetches.
    func sendPrefetches() {
        send(DocumentList(context.node.prefetcher.documents()).json)
    }

    /// Sends the document of the prefetch with this name.
    func sendPrefetch(_ name: String) {
        guard let document = context.node.prefetcher.document(name) else {
            return response.sendProblem(.prefetchUnknown)
        }
        send(document.json)
    }

    /// Cancels the prefetch with this name and sends its document.
    func cancelPrefetch(_ name: String) {
        guard let document = context.node.prefetcher.cancel(name, on: context.node) else {
            return response.sendProblem(.prefetchUnknown)
        }
        send(document.json, status: 202)
    }
}

/// Metrics for scrapers.
extension AdminHandler {
    /// Sends all metrics in the format that Accept selects.
    func sendMetrics(to request: BufferedRequest) {
        let head = request.head.span
        let accept = request.lines.filter { $0.id == .accept }.map { head.copy($0.value.range) }
        let format = MetricsFormat(accepting: accept)
        response.sendText(
            status: 200, contentType: format.contentType,
            MetricsExposition.render(context.node.snapshotWithMembers(), as: format),
            fields: "Cache-Control: no-store\r\nVary: Accept\r\n")
    }
}

/// A repeating task that sends events to a client; it ends with this object.
final class EventStream {
    private let task: RepeatedTask

    /// Calls `send` every `interval`, on the event loop.
    init(
        on loop: any EventLoop, every interval: Interval, _ send: @escaping @Sendable () -> Void
    ) {
        let time = TimeAmount.nanoseconds(interval.nanoseconds)
        task = loop.scheduleRepeatedTask(initialDelay: time, delay: time) { _ in send() }
    }

    deinit {
        task.cancel()
    }
}

/// Server-sent events (WHATWG HTML §9.2).
extension AdminHandler {
    /// Starts sending the statistics to the client, first at once and then every `interval`, until
    /// the connection closes.
    private func startEventStream(every interval: Interval) {
        response.closesAfterResponse = true
        response.beginResponse(status: 200)
        var head = ByteBuffer(string: "HTTP/1.1 200 OK\r\n")
        head.writeBytes(context.dateLine.bytes)
        head.writeString(
            "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                + "X-Content-Type-Options: nosniff\r\nX-Request-Id: \(response.requestID)\r\n"
                + "Connection: close\r\n\r\n")
        response.writer?.send(head: head)
        guard !response.isHeadRequest else { return response.finishResponse() }
        response.wait(until: .distantFuture)
        // Accessed only on the loop.
        nonisolated(unsafe) weak let handler = self
        eventStream = EventStream(on: context.loop, every: interval) { unsafe handler?.sendEvent() }
        sendEvent()
    }

    /// Sends one statistics event, unless too many bytes of earlier ones are queued.
    private func sendEvent() {
        // A client that reads too slowly misses events.
        guard eventStream != nil, response.queuedBytes < Self.eventBytesMax else { return }
        let text = "event: statistics\ndata: \(context.node.statistics().json.compactText)\n\n"
        response.writer?.send(body: ByteBuffer(string: text))
        response.writer?.flush()
    }

    /// Output backlog, in bytes, above which events are skipped.
    private static let eventBytesMax = 64 << 10
}

/// A request of an operator, as received.
struct AdminRequest {
    let method: String
    /// Path and query.
    let target: String
    /// The requested authority.
    let host: [UInt8]
    let head: BufferedRequest
    let body: [UInt8]

    /// Returns the query as the parameters of `operation`.
    func query(of operation: AdminOperation) throws(AdminQuery.QueryError) -> AdminQuery {
        try AdminQuery(target.drop { $0 != "?" }.dropFirst(), operation.parameters)
    }
}
