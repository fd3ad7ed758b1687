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
