import Harness
import Testing

/// One play's actors: an origin and a node that may ask it.
struct Stage {
    let origin: ScriptedOrigin
    let node: NodeProcess

    init(_ flags: String..., origin: ScriptedOrigin? = nil) throws {
        self.origin = try origin ?? ScriptedOrigin()
        node = try NodeProcess(flags)
    }

    /// An origin, and the node that the tests of this process share.
    static func shared() throws -> Stage {
        // Another test's URLs had another port, even if that is free again.
        var origin = try ScriptedOrigin()
        while !usedPorts.change({ $0.insert(origin.port).inserted }) {
            origin = try ScriptedOrigin()
        }
        return Stage(origin: origin, node: try NodeProcess.shared())
    }

    private static let usedPorts = LockedBox<Set<Int>>([])

    init(origin: ScriptedOrigin, node: NodeProcess) {
        self.origin = origin
        self.node = node
    }

    /// The request target for a path of the origin.
    func target(_ path: String) -> String {
        ImageRequestTarget.forURL(origin.url(path))
    }

    /// A request for a path of the origin over a connection of its own.
    func get(
        _ path: String, method: String = "GET", fields: [String] = [],
        expecting: TestImage? = nil, seconds: Double = 30
    ) throws -> Response {
        try node.get(
            target(path), method: method, fields: fields, expecting: expecting, seconds: seconds)
    }

    /// Has a client ask for an answer of the origin that waits at a gate, and returns once it does.
    func begin(
        _ path: String = "/it", at location: SourceLocation = #_sourceLocation,
        _ response: (Gate) -> OriginResponse
    ) throws -> (HTTPConnection, Gate) {
        let gate = Gate()
        origin.on(path, response(gate))
        let client = try node.connect()
        try client.socket.send(HTTPConnection.request(target(path)))
        #expect(gate.waitForArrivals(), sourceLocation: location)
        return (client, gate)
    }

    /// The node's open descriptors once they have been the same for a while.
    func settledDescriptors() throws -> Int {
        var last = -1
        var same = 0
        let isSettled = Deadline.seconds(20).waitUntil(every: 5) {
            let now = node.descriptorCount
            same = now == last ? same + 1 : 0
            last = now
            return same >= 20
        }
        try #require(isSettled)
        return last
    }

    /// How often the origin was asked for a path.
    func fetches(_ path: String) -> Int { origin.requests(path).count }
}

/// A field line that keeps an image fresh for longer than any test takes.
let lasting = "Cache-Control: max-age=3600"

/// Expects that the question is answered with yes before long.
func expectSoon(
    _ seconds: Double = 30, _ comment: @autoclosure () -> String = "",
    at location: SourceLocation = #_sourceLocation, _ question: () throws -> Bool
) rethrows {
    let isSo = try Deadline.seconds(seconds).waitUntil(question)
    #expect(isSo, "\(comment())", sourceLocation: location)
}

/// Checks that a response is a problem document (RFC 9457), whole and of an allowed status.
func expectProblem(
    _ response: Response, _ statuses: ClosedRange<Int>, _ note: String = "",
    at location: SourceLocation = #_sourceLocation
) {
    #expect(
        statuses.contains(response.status) && response.isWhole, "\(note) \(response)",
        sourceLocation: location)
    #expect(
        response["Content-Type"]?.hasPrefix("application/problem+json") == true,
        "\(note) \(response)", sourceLocation: location)
    let members = response.document ?? [:]
    #expect(members["status"] as? Int == response.status, "\(note)", sourceLocation: location)
    #expect(
        (members["type"] as? String)?.isEmpty == false, "\(note)", sourceLocation: location)
}

/// The same for one status.
func expectProblem(
    _ response: Response, _ status: Int, _ note: String = "",
    at location: SourceLocation = #_sourceLocation
) {
    expectProblem(response, status...status, note, at: location)
}
