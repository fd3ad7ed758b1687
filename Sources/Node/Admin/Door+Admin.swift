import Admin
import FoundationEssentials
import Ground
import HTTPRules
import Logging
import Origin
import Synchronization
import Telemetry
import Wire

extension Door {
    /// Answers a request to the admin port.
    func answerAdmin(_ bytes: Span<UInt8>, body: [UInt8]) {
        let (method, target) = methodAndTarget(bytes)
        switch AdminRoute(method: method, target: target) {
        case .notFound: answerProblem(.adminNotFound)
        case .methodNotAllowed(let allowed): answerProblem(.methodNotAllowed(allowed: allowed))
        case .operation(let operation, let arguments):
            let request = PendingRequest(copying: parser, bytes, headRange)
            guard let role = admit(request, bytes, to: operation) else { return }
            do throws(AdminQuery.Fault) {
                let query = try AdminQuery(
                    target.drop { $0 != "?" }.dropFirst(), operation.parameters)
                answer(operation, arguments, query, request, body: body, role)
            } catch {
                answerProblem(Problem(error.problem))
            }
        }
    }

    private func answer(
        _ operation: AdminOperation, _ arguments: [String], _ query: AdminQuery,
        _ request: PendingRequest, body: [UInt8], _ role: AdminRole
    ) {
        let node = hall.node
        switch operation.name {
        case .showDashboard: showDashboard()
        case .getHealth, .getReadiness: answerHealth(operation.name, query)
        case .getMetrics: sendMetrics(to: request)
        case .getOpenAPI:
            sendText(
                status: 200, contentType: "application/json", Self.description,
                fields: Self.noStore)
        case .getStatus: send(node.status(for: role).json)
        case .getStatistics: send(node.statistics().json)
        case .watchStatistics:
            beginEvents(every: .milliseconds(query.number("interval_ms") ?? 1_000))
        case .listHotEntries: listHotEntries(Int(query.number("limit") ?? 12))
        case .getEntry: showEntry(query["url"] ?? "")
        case .getEntryBody:
            sendEntryBody(query["url"] ?? "", key: query["key"], variant: query["variant"])
        case .listMembers: send(MemberRow.json(node.memberRows()))
        case .forgetMembers: send("forgetting", unless: node.forgetMembers(arguments[0]))
        case .bootstrap: send("opened", unless: node.bootstrap())
        case .recover: send("recovering", unless: node.recover())
        case .getRing: send(node.ring().json)
        case .listOrigins:
            let standings = node.exchange.standings(now: SystemClock.now())
            send(OriginRow.json(standings.map(OriginRow.init)))
        case .getConfiguration: send(node.shownConfiguration.json)
        case .getLogLevel: send(LogLevelDocument(node.logger.logLevel.rawValue).json)
        case .setLogLevel: setLogLevel(body, operation)
        case .getSupportSnapshot: sendSupport(for: role)
        case .listPurges: listPurges(query)
        case .issuePurge: issuePurge(query, body)
        case .getReceipt: showReceipt(arguments[0])
        case .listPrefetches: listPrefetches()
        case .beginPrefetch: beginPrefetch(body, operation)
        case .getPrefetch: showPrefetch(arguments[0])
        case .cancelPrefetch: cancelPrefetch(arguments[0])
        case .drain:
            node.told(to: .drain(stops: query["stop"] == "true"))
            send(StateDocument.json("draining"), status: 202)
        case .undrain: undrain()
        }
    }

    private static let noStore = "Cache-Control: no-store\r\n"
    /// Rendered once: everybody may ask for it.
    private static let description = OpenAPI.document(version: Configuration.version).page

    /// Answers with a document, which nobody is to store.
    func send(_ document: JSON, status: UInt16 = 200, fields: String = "") {
        sendText(
            status: status, contentType: "application/json", document.page,
            fields: Self.noStore + fields)
    }

    // MARK: What changes the node

    private func setLogLevel(_ body: [UInt8], _ operation: AdminOperation) {
        guard body.count <= operation.body?.bytesMax ?? 0 else {
            return answerProblem(.bodyTooLarge(bytesMax: UInt64(operation.body?.bytesMax ?? 0)))
        }
        do {
            let document = try JSONDecoder().decode(LogLevelDocument.self, from: Data(body))
            guard let level = Logger.Level(rawValue: document.level) else {
                preconditionFailure("\(document.level) is no level of the logger")
            }
            hall.node.log(from: level, for: RequestCause(requestID, nil))
            send(document.json)
        } catch {
            answerProblem(.body(BodyFault(reading: error)))
        }
    }

    /// What an operator asked for has begun, or was refused.
    private func send(_ state: String, unless problem: Problem?) {
        if let problem { return answerProblem(problem) }
        send(StateDocument.json(state), status: 202)
    }

    private func undrain() {
        guard !hall.node.isStopping.load(ordering: .relaxed) else {
            return answerProblem(.stopping)
        }
        hall.node.told(to: .undrain)
        send(StateDocument.json("ready"), status: 202)
    }

    // MARK: On the data port

    /// Answers what is not for the image API: the health pages; or 404, or 405 for methods that
    /// nothing here takes.
    func answerOther(_ bytes: Span<UInt8>) {
        let (method, target) = methodAndTarget(bytes)
        switch AdminRoute(method: method, target: target) {
        case .operation(let operation, _) where AdminRoute.publicPaths.contains(operation.path):
            let query = try? AdminQuery(
                target.drop { $0 != "?" }.dropFirst(), operation.parameters)
            answerHealth(operation.name, query)
        case .methodNotAllowed where isPublicPage(bytes): answerProblem(.methodNotAllowed)
        case .operation, .methodNotAllowed, .notFound:
            // What is neither a name nor an address is no host of a site, nor of anything else.
            if hasSites, !SiteKey.isAuthority(bytes, at: askedHost) {
                return answerProblem(.malformed(.invalidHost))
            }
            guard settings.servesImages else { return answerProblem(.siteUnknown) }
            guard case .notImage = ImageTarget.parse(bytes, at: parser.path.range) else {
                return answerProblem(.methodNotAllowed)
            }
            answerProblem(.notFound)
        }
    }

    /// True if the target is one of the pages that clients may see.
    func isPublicPage(_ bytes: Span<UInt8>) -> Bool {
        let range = parser.path.range
        // Every request to a site `*` asks this, and most begin otherwise.
        guard range.count > 1,
            AdminRoute.publicInitials & 1 << UInt64(bytes[range.lowerBound + 1] & 63) != 0
        else { return false }
        return AdminRoute.publicPaths.contains { path in
            let end = range.lowerBound + path.utf8.count
            guard end <= range.upperBound, bytes.holds(path, at: range.lowerBound..<end) else {
                return false
            }
            return end == range.upperBound || bytes[end] == UInt8(ascii: "?")
        }
    }

    private func answerHealth(_ name: AdminOperation.Name, _ query: AdminQuery?) {
        guard name == .getReadiness else { return send(HealthDocument.alive) }
        let readiness = hall.node.readiness.value
        let isFenced = !hall.node.fence.isOpen(at: SystemClock.now())
        let isCounted = hall.desk.isCounted
        let needs = query?["unfenced"] != "true" || (!isFenced && isCounted)
        send(
            HealthDocument.json(readiness, isFenced: isFenced, isCounted: isCounted),
            status: HealthDocument.status(readiness, needs: needs))
    }

    private func methodAndTarget(_ bytes: Span<UInt8>) -> (String, String) {
        (
            String(decoding: bytes.copy(parser.methodName.range), as: UTF8.self),
            String(decoding: bytes.copy(parser.path.range), as: UTF8.self)
        )
    }
}
