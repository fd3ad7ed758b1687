import Admin
import Cluster
import Ground
import HTTPRules
import NIOCore
import Origin
import Telemetry
import Wire

extension Door {
    /// Answers a request to the admin port.
    func answerAdmin(_ bytes: Span<UInt8>, body: [UInt8]) {
        let (method, target) = methodAndTarget(bytes)
        if let purges = PurgeRoute(method: method, target: target) {
            return answerPurges(purges, body: body)
        }
        switch route(bytes) {
        case .page(let page): send(page)
        case .action(.drain):
            hall.node.told(to: .drain)
            sendText(
                status: 202, contentType: "application/json",
                Array("{\"status\":\"draining\"}\n".utf8),
                fields: "Cache-Control: no-store\r\n")
        case .forget(let id): forget(id)
        case .notFound: answerProblem(.adminNotFound)
        case .methodNotAllowed(let allowed): answerProblem(.methodNotAllowed(allowed: allowed))
        }
    }

    /// Begins to count a member no longer that will not come back.
    private func forget(_ text: String) {
        guard let id = NodeID(text) else { return answerProblem(.adminNotFound) }
        do throws(FenceKeeper.ForgetRefusal) {
            try hall.desk.forget([id])
            sendText(
                status: 202, contentType: "application/json",
                Array("{\"status\":\"forgetting\"}\n".utf8),
                fields: "Cache-Control: no-store\r\n")
        } catch {
            answerProblem(.notForgotten(error))
        }
    }

    /// Answers what is not for the image API: the health pages; or 404, or 405 for methods that
    /// nothing here takes.
    func answerOther(_ bytes: Span<UInt8>) {
        switch route(bytes) {
        case .page(let page) where page.isPublic: send(page)
        case .methodNotAllowed(allowed: AdminRoute.pageMethods): answerProblem(.methodNotAllowed)
        case .page, .action, .forget, .methodNotAllowed, .notFound:
            guard case .notImage = ImageTarget.parse(bytes, at: parser.path.range) else {
                return answerProblem(.methodNotAllowed)
            }
            answerProblem(.notFound)
        }
    }

    /// True if the target is one of the pages that clients may see.
    func isPublicPage(_ bytes: Span<UInt8>) -> Bool {
        // Every request to a site `*` asks this.
        AdminPage.publicPaths.contains { path in
            let range = parser.path.range
            let end = range.lowerBound + path.utf8.count
            guard end <= range.upperBound, bytes.holds(path, at: range.lowerBound..<end) else {
                return false
            }
            return end == range.upperBound || bytes[end] == UInt8(ascii: "?")
        }
    }

    private func route(_ bytes: Span<UInt8>) -> AdminRoute {
        let (method, target) = methodAndTarget(bytes)
        return AdminRoute(method: method, target: target)
    }

    private func methodAndTarget(_ bytes: Span<UInt8>) -> (String, String) {
        (
            String(decoding: bytes.copy(parser.methodName.range), as: UTF8.self),
            String(decoding: bytes.copy(parser.path.range), as: UTF8.self)
        )
    }

    private func send(_ page: AdminPage) {
        let node = hall.node
        let answer = AdminAnswer(
            page, readiness: node.readiness.value,
            isFenced: !node.fence.isOpen(at: SystemClock.now()), snapshot: node.snapshot(),
            origins: node.exchange.standings(now: SystemClock.now()).map(OriginRow.init),
            members: node.hub.map {
                MemberRow.rows($0, node.desk.table(at: SystemClock.now()))
            } ?? [])
        sendText(
            status: answer.status, contentType: answer.contentType, Array(answer.body.utf8),
            fields: "Cache-Control: no-store\r\n")
    }
}

extension OriginRow {
    fileprivate init(_ standing: OriginStanding) {
        let circuit =
            switch standing.circuit {
            case .closed: "closed"
            case .open: "open"
            case .halfOpen: "half-open"
            }
        self.init(
            origin: standing.origin.description, connections: standing.connections,
            idle: standing.idle, waiting: standing.waiting, circuit: circuit,
            failures: standing.failures,
            retryAfterMilliseconds: standing.retryAfter?.milliseconds)
    }
}
