import Foundation
import Harness
import Testing

/// An origin, and a node with it as the site `a.example`; the node can be restarted.
final class SiteStage {
    static let host = "a.example"

    let origin: ScriptedOrigin
    private(set) var node: NodeProcess
    private let flags: [String]
    private let folder: TemporaryFolder

    init(_ flags: String..., more: [String] = [], keepsDisk: Bool = false) throws {
        origin = try ScriptedOrigin()
        folder = try TemporaryFolder()
        let disk = keepsDisk ? ["--cache-dir", folder.path] : []
        self.flags = ["--site", "\(Self.host)=\(origin.url(""))"] + disk + flags + more
        node = try NodeProcess(self.flags)
    }

    deinit { node.kill() }

    /// Kills the node or stops it gracefully, and starts it again with the same flags.
    func restart(inOrder: Bool = false) throws {
        if inOrder {
            try #require(node.stop() == 0)
        } else {
            node.kill()
        }
        node = try NodeProcess(flags)
    }

    func get(
        _ target: String, method: String = "GET", fields: [String] = [],
        expecting: TestImage? = nil, seconds: Double = 30
    ) throws -> Response {
        try node.get(
            target, method: method, host: Self.host, fields: fields, expecting: expecting,
            seconds: seconds)
    }

    /// Sends a request with a body on a new connection.
    func send(_ method: String, _ target: String, body: String) throws -> Response {
        let connection = try node.connect()
        let head = HTTPConnection.request(
            target, method: method, host: Self.host,
            fields: ["Content-Length: \(body.utf8.count)"])
        try connection.socket.send(head + Array(body.utf8))
        return connection.readResponse(method: method)
    }

    /// Starts concurrent clients, one for each list of fields.
    func swarm(_ target: String, _ fields: [[String]]) -> ClientSwarm {
        ClientSwarm(
            port: node.port, fields.map { SwarmClientPlan(target, host: Self.host, fields: $0) })
    }

    /// Returns the number of origin requests for a path.
    func fetches(_ path: String) -> Int { origin.requests(path).count }

    /// Waits until everything that is to be kept is written.
    func settle() throws {
        let isSettled = try Deadline.seconds(30).waitUntil {
            // A client has the complete response a moment before it is stored.
            try #require(node.metric("nuthatch_fills_in_flight")) == 0
                && #require(node.metric("nuthatch_disk_queued_bytes")) == 0
        }
        try #require(isSettled)
    }

    /// Waits until everything is written and there are `entries` entries in total.
    func settle(entries: Int, at location: SourceLocation = #_sourceLocation) throws {
        let isWritten = Deadline.seconds(30).waitUntil { node.diskEntries == Double(entries) }
        try #require(isWritten, "\(node.diskEntries) of \(entries)", sourceLocation: location)
        try settle()
    }

    /// Waits until `count` clients wait for the fetches of others.
    func waitForWaiters(_ count: Int, at location: SourceLocation = #_sourceLocation) throws {
        let isReached = Deadline.seconds(30).waitUntil {
            (node.metric("nuthatch_waiters") ?? 0) >= Double(count)
        }
        try #require(isReached, sourceLocation: location)
    }
}
