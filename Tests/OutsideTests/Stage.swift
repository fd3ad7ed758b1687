import Harness
import Testing

/// An origin and a node that may fetch from it.
struct Stage {
    let origin: ScriptedOrigin
    let node: NodeProcess

    init(_ flags: String..., origin: ScriptedOrigin? = nil) throws {
        self.origin = try origin ?? ScriptedOrigin()
        node = try NodeProcess(flags)
    }

    /// Returns an origin and the node that the tests of this process share.
    static func shared() throws -> Stage {
        // The URLs of another test must have had another port, even if that is free again.
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

    /// Returns the request target for a path of the origin.
    func target(_ path: String) -> String {
        ImageRequestTarget.forURL(origin.url(path))
    }

    /// Requests a path of the origin on a new connection.
    func get(
        _ path: String, method: String = "GET", fields: [String] = [],
        expecting: TestImage? = nil, seconds: Double = 30
    ) throws -> Response {
        try node.get(
            target(path), method: method, fields: fields, expecting: expecting, seconds: seconds)
    }

    /// Starts a client's request for an origin response held at a gate, and returns once it is
    /// there.
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

    /// Returns the node's number of open descriptors once it has been stable for a while.
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

    /// Returns the number of origin requests for a path.
    func fetches(_ path: String) -> Int { origin.requests(path).count }
}

/// A field line that keeps an image fresh for longer than any test takes.
let lasting = "Cache-Control: max-age=3600"

/// Expects that the condition becomes true soon.
func expectSoon(
    _ seconds: Double = 30, _ comment: @autoclosure () -> String = "",
    at location: SourceLocation = #_sourceLocation, _ question: () throws -> Bool
) rethrows {
    let isSo = try Deadline.seconds(seconds).waitUntil(question)
    #expect(isSo, "\(comment())", sourceLocation: location)
}

/// Expects a complete problem document (RFC 9457) with one of these statuses.
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

/// Expects a complete problem document with this status.
func expectProblem(
    _ response: Response, _ status: Int, _ note: String = "",
    at location: SourceLocation = #_sourceLocation
) {
    expectProblem(response, status...status, note, at: location)
}
