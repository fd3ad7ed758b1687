/// The routes and records of a scripted origin, shared by its connections and the test.
final class ScriptedOriginState: Sendable {
    struct State {
        var routes: [String: @Sendable (OriginRequest) -> OriginResponse] = [:]
        /// The handler of requests without a route.
        var fallbackRoute: (@Sendable (OriginRequest) -> OriginResponse)?
        var requests: [OriginRequest] = []
        var requestCount = 0
        var connectionsOpened = 0
        var connectionsOpen: Set<Int> = []
        var bodyBytesSent: [Int: Int] = [:]
        /// Request bodies by the request's number; requests without a body have none.
        var bodies: [Int: OriginRequestBody] = [:]
        /// Expected request bodies by path; they are compared instead of kept.
        var expectedBodies: [String: TestImage] = [:]
        /// Received heads that were no valid request, as text.
        var malformed: [String] = []
    }

    let state = Monitor(State())
    private let keepsLog: Bool

    init(keepsLog: Bool) {
        self.keepsLog = keepsLog
    }

    func connectionOpened() -> Int {
        state.update { state in
            defer { state.connectionsOpened += 1 }
            state.connectionsOpen.insert(state.connectionsOpened)
            return state.connectionsOpened
        }
    }

    func connectionClosed(_ connection: Int) {
        state.update { _ = $0.connectionsOpen.remove(connection) }
    }

    func bodyBytesSent(_ count: Int, connection: Int) {
        guard keepsLog else { return }
        state.update { $0.bodyBytesSent[connection, default: 0] += count }
    }

    /// Records a request in the log and returns it; `nil` if the head is malformed.
    func recordRequest(_ head: String, connection: Int) -> OriginRequest? {
        let lines = head.components(separatedByCRLF: ())
        let words = (lines.first ?? "").split(separator: " ", omittingEmptySubsequences: false)
        let fields = lines.dropFirst().filter { !$0.isEmpty }.map(HeaderFields.parse)
        return state.update { state in
            guard words.count == 3, fields.allSatisfy({ $0 != nil }) else {
                state.malformed.append(head)
                return nil
            }
            let request = OriginRequest(
                number: state.requestCount, connection: connection, method: String(words[0]),
                target: String(words[1]), version: String(words[2]),
                fields: HeaderFields(fields.compactMap { $0 }), instant: .now)
            state.requestCount += 1
            if keepsLog { state.requests.append(request) }
            return request
        }
    }

    func bodyRecorder(_ request: OriginRequest) -> BodyRecorder {
        state.read { $0.expectedBodies[request.path].map { .comparing($0) } } ?? .keeping
    }

    func bodyReceived(_ body: OriginRequestBody, of request: OriginRequest) {
        guard keepsLog, body.byteCount > 0 || !body.isComplete else { return }
        state.update { $0.bodies[request.number] = body }
    }

    func response(_ request: OriginRequest) -> OriginResponse {
        let route = state.read { $0.routes[request.path] ?? $0.fallbackRoute }
        return route?(request) ?? .text("no such thing", status: "404 Not Found")
    }
}

extension String {
    /// Returns the text split at each CRLF, which Swift counts as one character.
    func components(separatedByCRLF: Void) -> [String] {
        split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    }
}
