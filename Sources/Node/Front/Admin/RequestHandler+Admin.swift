import Admin
import FoundationEssentials
import Ground
import HTTPRules
import Logging
import NIOCore
import Origin
import Synchronization
import Telemetry
import Wire

extension RequestHandler {
    /// Responds to a request on the admin port.
    func respondToAdmin(_ bytes: Span<UInt8>, body: [UInt8]) {
        let (method, target) = methodAndTarget(bytes)
        switch AdminRoute(method: method, target: target) {
        case .notFound: sendProblem(.adminNotFound)
        case .methodNotAllowed(let allowed): sendProblem(.methodNotAllowed(allowed: allowed))
        case .operation(let operation, let arguments):
            let request = BufferedRequest(copying: parser, bytes, headRange)
            guard let role = admit(request, bytes, to: operation) else { return }
            do throws(AdminQuery.QueryError) {
                let query = try AdminQuery(
                    target.drop { $0 != "?" }.dropFirst(), operation.parameters)
                respond(operation, arguments, query, request, body: body, role)
            } catch {
                sendProblem(Problem(error.problem))
            }
        }
    }

    /// Runs an operation that the caller may use.
    private func respond(
        _ operation: AdminOperation, _ arguments: [String], _ query: AdminQuery,
        _ request: BufferedRequest, body: [UInt8], _ role: AdminRole
    ) {
        let node = context.node
        switch operation.id {
        case .showDashboard: sendDashboard()
        case .getHealth, .getReadiness: sendHealth(operation.id, query)
        case .getMetrics: sendMetrics(to: request)
        case .getOpenAPI:
            sendText(
                status: 200, contentType: "application/json", Self.openAPIDocument,
                fields: Self.noStore)
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
        case .getRing: send(node.ringDocument().json)
        case .listOrigins: send(node.originDocuments().json)
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

    /// The field line of responses that must not be stored.
    private static let noStore = "Cache-Control: no-store\r\n"
    /// Rendered once, because any client may request it.
    private static let openAPIDocument = OpenAPI.document(version: Configuration.version)
        .formattedBytes

    /// Sends a JSON document with `Cache-Control: no-store`.
    func send(_ document: JSON, status: UInt16 = 200, fields: String = "") {
        sendText(
            status: status, contentType: "application/json", document.formattedBytes,
            fields: Self.noStore + fields)
    }

    // MARK: Operations that change the node

    /// Sets the log level that the JSON in `body` names.
    private func setLogLevel(_ body: [UInt8], _ operation: AdminOperation) {
        guard body.count <= operation.body?.bytesMax ?? 0 else {
            return sendProblem(.bodyTooLarge(bytesMax: UInt64(operation.body?.bytesMax ?? 0)))
        }
        do {
            let document = try JSONDecoder().decode(LogLevelDocument.self, from: Data(body))
            guard let level = Logger.Level(rawValue: document.level) else {
                preconditionFailure("\(document.level) is no level of the logger")
            }
            context.node.setLogLevel(from: level, for: RequestCorrelation(requestID, nil))
            send(document.json)
        } catch {
            sendProblem(.invalidAdminBody(RequestBodyError(decodingError: error)))
        }
    }

    /// Sends `problem` if the operation was refused, otherwise 202 with `state`.
    private func send(_ state: String, unless problem: Problem?) {
        if let problem { return sendProblem(problem) }
        send(OperationStatusDocument(state).json, status: 202)
    }

    /// Ends a drain, unless the node is stopping.
    private func undrain() {
        guard !context.node.isStopping.load(ordering: .relaxed) else {
            return sendProblem(.nodeStopping)
        }
        context.node.handleOperatorCommand(.undrain)
        send(OperationStatusDocument("ready").json, status: 202)
    }

    // MARK: On the data port

    /// Responds to a data port request that belongs to no site and is no image request.
    ///
    /// Health pages are served; other requests are refused with 400, 404 or 405.
    func respondOutsideSites(_ bytes: Span<UInt8>) {
        let (method, target) = methodAndTarget(bytes)
        switch AdminRoute(method: method, target: target) {
        case .operation(let operation, _) where AdminRoute.publicPaths.contains(operation.path):
            let query = try? AdminQuery(
                target.drop { $0 != "?" }.dropFirst(), operation.parameters)
            sendHealth(operation.id, query)
        case .methodNotAllowed where isPublicPage(bytes): sendProblem(.methodNotAllowed)
        case .operation, .methodNotAllowed, .notFound:
            // A Host that is neither a name nor an address cannot belong to a site.
            if hasSites, !SiteKey.isAuthority(bytes, at: requestedHost) {
                return sendProblem(.malformed(.invalidHost))
            }
            guard settings.servesImages else { return sendProblem(.siteUnknown) }
            guard case .notImage = ImageTarget.parse(bytes, at: parser.path.range) else {
                return sendProblem(.methodNotAllowed)
            }
            sendProblem(.notFound)
        }
    }

    /// Returns true if the target is an operation that the data port serves too.
    func isPublicPage(_ bytes: Span<UInt8>) -> Bool {
        let range = parser.path.range
        // Every request to the site `*` runs this check, and most fail on the first character.
        guard range.count > 1,
            AdminRoute.publicInitials & 1 << UInt64(bytes[range.lowerBound + 1] & 63) != 0
        else { return false }
        return AdminRoute.publicPaths.contains { path in
            let end = range.lowerBound + path.utf8.count
            guard end <= range.upperBound, bytes.matches(path, at: range.lowerBound..<end) else {
                return false
            }
            return end == range.upperBound || bytes[end] == UInt8(ascii: "?")
        }
    }

    /// Sends the health or readiness page.
    private func sendHealth(_ name: AdminOperation.ID, _ query: AdminQuery?) {
        guard name == .getReadiness else { return send(HealthDocument().json) }
        let readiness = context.node.readiness.value
        let isFenced = !context.node.fence.isOpen(at: SystemClock.now())
        let isCounted = context.purges.isVoter
        let needs = query?["unfenced"] != "true" || (!isFenced && isCounted)
        send(
            HealthDocument(readiness, isFenced: isFenced, isVoter: isCounted).json,
            status: HealthDocument.status(readiness, requiring: needs))
    }

    /// Returns the method and the target of the request in the parser.
    private func methodAndTarget(_ bytes: Span<UInt8>) -> (String, String) {
        (
            String(decoding: bytes.copy(parser.methodName.range), as: UTF8.self),
            String(decoding: bytes.copy(parser.path.range), as: UTF8.self)
        )
    }
}

/// Prefetch operations of the admin port.
extension RequestHandler {
    /// Starts a prefetch job from the JSON in `body`.
    func startPrefetch(_ body: [UInt8], _ operation: AdminOperation) {
        let node = context.node
        guard body.count <= operation.body?.bytesMax ?? 0 else {
            return sendProblem(.bodyTooLarge(bytesMax: UInt64(operation.body?.bytesMax ?? 0)))
        }
        guard !node.isStopping.load(ordering: .relaxed) else { return sendProblem(.nodeStopping) }
        // Decoding ten thousand URLs takes longer than an event loop may be blocked.
        let read = runOnThread {
            Result { try JSONDecoder().decode(PrefetchRequest.self, from: Data(body)) }
        }
        respondLater(read) { handler, result in
            switch result {
            case .success(let request): handler.begin(request, operation)
            case .failure(let error):
                handler.sendProblem(.invalidAdminBody(RequestBodyError(decodingError: error)))
            }
        }
    }

    /// Starts the prefetch and sends its document with 202.
    private func begin(_ request: PrefetchRequest, _ operation: AdminOperation) {
        let node = context.node
        guard !node.isStopping.load(ordering: .relaxed) else { return sendProblem(.nodeStopping) }
        do throws(PrefetchJobTable.StartError) {
            let document = try node.prefetcher.begin(request, on: node)
            send(
                document.json, status: 202,
                fields: "Location: \(operation.path)/\(document.prefetch)\r\n")
        } catch {
            switch error {
            case .tooManyRunning: sendProblem(.prefetchesTooMany)
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
            return sendProblem(.prefetchUnknown)
        }
        send(document.json)
    }

    /// Cancels the prefetch with this name and sends its document.
    func cancelPrefetch(_ name: String) {
        guard let document = context.node.prefetcher.cancel(name, on: context.node) else {
            return sendProblem(.prefetchUnknown)
        }
        send(document.json, status: 202)
    }
}

/// Metrics for scrapers.
extension RequestHandler {
    /// Sends all metrics in the format that Accept selects.
    func sendMetrics(to request: BufferedRequest) {
        let head = request.head.span
        let accept = request.lines.filter { $0.id == .accept }.map { head.copy($0.value.range) }
        let format = MetricsFormat(accepting: accept)
        sendText(
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
extension RequestHandler {
    /// Starts sending the statistics to the client, first at once and then every `interval`, until
    /// the connection closes.
    func startEventStream(every interval: Interval) {
        closesAfterResponse = true
        beginResponse(status: 200)
        var head = ByteBuffer(string: "HTTP/1.1 200 OK\r\n")
        head.writeBytes(context.dateLine.bytes)
        head.writeString(
            "Content-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                + "X-Content-Type-Options: nosniff\r\nX-Request-Id: \(requestID)\r\n"
                + "Connection: close\r\n\r\n")
        writer?.send(head: head)
        guard !isHeadRequest else { return finishResponse() }
        isResponding = true
        deadline = .distantFuture
        // Accessed only on the loop.
        nonisolated(unsafe) weak let handler = self
        eventStream = EventStream(on: context.loop, every: interval) { unsafe handler?.sendEvent() }
        sendEvent()
    }

    /// Sends one statistics event.
    private func sendEvent() {
        // A client that reads too slowly misses events.
        guard eventStream != nil, queuedBytes < Self.eventBytesMax else { return }
        let text = "event: statistics\ndata: \(context.node.statistics().json.compactText)\n\n"
        writer?.send(body: ByteBuffer(string: text))
        writer?.flush()
    }

    /// Output backlog, in bytes, above which events are skipped.
    private static let eventBytesMax = 64 << 10
}
