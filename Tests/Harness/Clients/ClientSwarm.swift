import NIOCore
import NIOPosix

/// Thousands of concurrent clients, each with its own connection, in bounded memory.
package final class ClientSwarm: Sendable {
    private struct State {
        /// Clients with an open connection that are not done.
        var clients: [EventLoopClient?]
        var connected = 0
        var responses: [Response?]
        var refused = 0
        var isStopped = false
    }

    private let state: Monitor<State>
    private let count: Int

    /// Opens a connection for each plan and sends its request at once.
    ///
    /// - Parameters:
    ///   - port: The server's port on 127.0.0.1.
    ///   - plans: What each client does.
    package init(port: Int, _ plans: [SwarmClientPlan]) {
        DescriptorLimit.raise()
        count = plans.count
        state = Monitor(
            State(
                clients: Array(repeating: nil, count: plans.count),
                responses: Array(repeating: nil, count: plans.count)))
        for (index, plan) in plans.enumerated() { connect(port, index, plan) }
    }

    deinit { stop() }

    /// Creates a swarm of `count` clients with the same plan.
    package convenience init(port: Int, count: Int, _ plan: SwarmClientPlan) {
        self.init(port: port, Array(repeating: plan, count: count))
    }

    private func connect(_ port: Int, _ index: Int, _ plan: SwarmClientPlan) {
        let state = state
        let (reading, bodyBytesMax) = plan.behaviour.readMode
        EventLoopClient.connect(
            to: port, on: MultiThreadedEventLoopGroup.singleton, readMode: reading
        ).whenComplete { result in
            guard case .success(let client) = result else {
                return state.update { state in
                    state.refused += 1
                    state.responses[index] = Response(ending: .reset)
                }
            }
            let isStopped = state.update { state in
                state.connected += 1
                state.clients[index] = client
                return state.isStopped
            }
            client.send(
                ByteBuffer(bytes: plan.request), expecting: plan.expecting,
                bodyBytesMax: bodyBytesMax
            ) { response in
                state.update { state in
                    state.responses[index] = response
                    state.clients[index] = nil
                }
                client.close()
            }
            if isStopped { client.close() }
        }
    }

    /// Number of connections that could not be opened.
    package var refused: Int { state.read(\.refused) }

    /// Waits until every connection is open and has sent its request.
    package func waitForConnections(seconds: Double = 60) -> Bool {
        state.wait(until: .seconds(seconds)) { [count] in $0.connected == count }
    }

    /// Waits for every client's response, in the order of the plans; a late one is `timedOut`.
    package func responses(seconds: Double = 120) -> [Response] {
        _ = state.wait(until: .seconds(seconds)) { $0.responses.allSatisfy { $0 != nil } }
        return state.read(\.responses).map { $0 ?? Response(ending: .timedOut) }
    }

    /// Makes the clients that never read start to read.
    package func startReading() {
        forEach { $0.startReading() }
    }

    /// Ends every client that is not done.
    package func stop() {
        state.update { $0.isStopped = true }
        forEach { $0.close() }
    }

    private func forEach(_ body: @escaping @Sendable (EventLoopClient) -> Void) {
        for client in state.read(\.clients) {
            guard let client else { continue }
            client.eventLoop.execute { body(client) }
        }
    }
}

/// The behaviour of a swarm's client on its connection.
package enum SwarmBehaviour: Sendable {
    /// Reads everything as it arrives.
    case readAll
    /// Sends its request and reads nothing until ``ClientSwarm/startReading()``.
    case neverRead
    /// Reads at most `bytesMax` bytes at a time, `milliseconds` apart.
    case readSlowly(bytesMax: Int, milliseconds: Int)
    /// Closes the connection after that many body bytes; 0 closes right after the request.
    case closeAfter(bodyBytes: Int)

    /// The read mode and body limit of the event-loop client.
    var readMode: (EventLoopClient.ReadMode, bodyBytesMax: Int) {
        switch self {
        case .readAll: (.all, .max)
        case .neverRead: (.nothing, .max)
        case .readSlowly(let bytesMax, let milliseconds):
            (.slowly(bytesMax: bytesMax, milliseconds: milliseconds), .max)
        case .closeAfter(let bodyBytes): (.all, bodyBytes)
        }
    }
}

/// The request and the behaviour of one client of a swarm.
package struct SwarmClientPlan: Sendable {
    /// The bytes of the request.
    package var request: [UInt8]
    /// The expected image; `nil` to count bytes only.
    package var expecting: TestImage?
    /// The behaviour on the connection.
    package var behaviour: SwarmBehaviour

    /// Creates a client that sends a GET request.
    ///
    /// - Parameters:
    ///   - target: The request target.
    ///   - host: The value of `Host`.
    ///   - fields: Field lines beside `Host`.
    ///   - expecting: The image expected in the response.
    ///   - behaviour: The behaviour on the connection.
    package init(
        _ target: String, host: String = "localhost", fields: [String] = [],
        expecting: TestImage? = nil,
        behaviour: SwarmBehaviour = .readAll
    ) {
        request = HTTPConnection.request(target, host: host, fields: fields)
        self.expecting = expecting
        self.behaviour = behaviour
    }
}
