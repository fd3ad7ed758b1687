import Foundation
import Harness
import Testing

/// An origin, and a node to which it is the site `a.example`; the node can be started again.
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

    /// Kills the node, or ends it in order, and starts it again with the same flags.
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

    /// A request with a body over a connection of its own.
    func send(_ method: String, _ target: String, body: String) throws -> Response {
        let connection = try node.connect()
        let head = HTTPConnection.request(
            target, method: method, host: Self.host,
            fields: ["Content-Length: \(body.utf8.count)"])
        try connection.socket.send(head + Array(body.utf8))
        return connection.readResponse(method: method)
    }

    /// Clients that ask at once, each with these fields.
    func swarm(_ target: String, _ fields: [[String]]) -> ClientSwarm {
        ClientSwarm(
            port: node.port, fields.map { SwarmClientPlan(target, host: Self.host, fields: $0) })
    }

    /// How often the origin was asked for a path.
    func fetches(_ path: String) -> Int { origin.requests(path).count }

    /// Returns when everything that is to be kept is written.
    func settle() throws {
        let isSettled = try Deadline.seconds(30).waitUntil {
            // A client has the whole answer a moment before it is kept.
            try #require(node.metric("nuthatch_fills_in_flight")) == 0
                && #require(node.metric("nuthatch_disk_queued_bytes")) == 0
        }
        try #require(isSettled)
    }

    /// The same, with so many entries in all.
    func settle(entries: Int, at location: SourceLocation = #_sourceLocation) throws {
        let isWritten = Deadline.seconds(30).waitUntil { node.diskEntries == Double(entries) }
        try #require(isWritten, "\(node.diskEntries) of \(entries)", sourceLocation: location)
        try settle()
    }

    /// Returns when so many clients wait for fetches of others.
    func waitForWaiters(_ count: Int, at location: SourceLocation = #_sourceLocation) throws {
        let isReached = Deadline.seconds(30).waitUntil {
            (node.metric("nuthatch_waiters") ?? 0) >= Double(count)
        }
        try #require(isReached, sourceLocation: location)
    }
}
