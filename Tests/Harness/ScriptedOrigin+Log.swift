extension ScriptedOrigin {
    /// Every request so far, in the order they came.
    package var log: [OriginRequest] { state.state.read(\.requests) }

    /// The requests for one path.
    package func requests(_ path: String) -> [OriginRequest] {
        log.filter { $0.path == path }
    }

    /// The body of a request so far; an empty whole one if it has none.
    package func body(of request: OriginRequest) -> OriginRequestBody {
        state.state.read(\.bodies)[request.number] ?? OriginRequestBody(isComplete: true)
    }

    /// Waits until at least `count` bytes of the body of a request for `path` have come.
    package func waitForBody(_ count: Int, _ path: String, seconds: Double = 30) -> Bool {
        state.state.wait(until: .seconds(seconds)) { state in
            state.requests.contains { request in
                request.path == path && (state.bodies[request.number]?.byteCount ?? 0) >= count
            }
        }
    }

    /// Heads that came and were no request.
    package var malformedHeads: [String] { state.state.read(\.malformed) }

    /// How many connections were ever accepted.
    package var connectionsOpened: Int { state.state.read(\.connectionsOpened) }

    /// How many connections are open now.
    package var connectionsOpen: Int { state.state.read(\.connectionsOpen.count) }

    /// Body bytes the kernel took, over all connections.
    package var bodyBytesSent: Int { state.state.read { $0.bodyBytesSent.values.reduce(0, +) } }

    /// Waits until at least `count` requests for `path` have come.
    package func waitForRequests(_ count: Int, _ path: String, seconds: Double = 30) -> Bool {
        state.state.wait(until: .seconds(seconds)) { state in
            state.requests.count { $0.path == path } >= count
        }
    }

    /// Waits until at most `count` connections are open.
    package func waitForConnections(atMost count: Int, seconds: Double = 30) -> Bool {
        state.state.wait(until: .seconds(seconds)) { $0.connectionsOpen.count <= count }
    }

    /// Waits until the kernel has taken at least `count` body bytes.
    package func waitForBodyBytes(_ count: Int, seconds: Double = 30) -> Bool {
        state.state.wait(until: .seconds(seconds)) {
            $0.bodyBytesSent.values.reduce(0, +) >= count
        }
    }
}
