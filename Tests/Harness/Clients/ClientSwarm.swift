import NIOCore
import NIOPosix

/// Thousands of clients at once, each with a connection of its own and in bounded memory.
package final class ClientSwarm: Sendable {
    private struct State {
        /// Those whose connection is open and who are not done.
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

    /// A swarm of equal clients.
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

    /// How many connections could not be opened.
    package var refused: Int { state.read(\.refused) }

    /// Waits until every connection is open and has sent its request.
    package func waitForConnections(seconds: Double = 60) -> Bool {
        state.wait(until: .seconds(seconds)) { [count] in $0.connected == count }
    }

    /// Waits for every client's response, in the order of the plans; what is late is `timedOut`.
    package func responses(seconds: Double = 120) -> [Response] {
        _ = state.wait(until: .seconds(seconds)) { $0.responses.allSatisfy { $0 != nil } }
        return state.read(\.responses).map { $0 ?? Response(ending: .timedOut) }
    }

    /// Lets the clients that never read begin to.
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

/// What each client of a swarm does with its connection.
package enum SwarmBehaviour: Sendable {
    /// Reads everything as it comes.
    case readAll
    /// Sends its request and never reads a byte, until told to.
    case neverRead
    /// Reads at most so many bytes each time, so many milliseconds apart.
    case readSlowly(bytesMax: Int, milliseconds: Int)
    /// Closes the connection once it has so many bytes of body; 0 means right after its request.
    case closeAfter(bodyBytes: Int)

    /// How a client on a loop does it.
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

/// One client of a swarm: what it asks for and how it behaves.
package struct SwarmClientPlan: Sendable {
    /// The bytes it sends.
    package var request: [UInt8]
    /// What it should get; nil to count only.
    package var expecting: TestImage?
    /// How it reads.
    package var behaviour: SwarmBehaviour

    /// A client that sends a GET for a target.
    ///
    /// - Parameters:
    ///   - target: The request target.
    ///   - host: The value of `HostRate`.
    ///   - fields: Field lines beside `HostRate`.
    ///   - expecting: The image its answer should bring.
    ///   - behaviour: How it reads.
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
