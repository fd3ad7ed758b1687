import Foundation
import Harness
import Testing

/// Nodes with one network namespace each, and an origin that all of them reach.
///
/// The test decides which packets pass between the nodes. Clients of a node run in its namespace.
final class PeerNetwork {
    let origin: ScriptedOrigin
    private(set) var nodes: [NodeProcess] = []
    /// The namespace of the bridge and the origin.
    private let middle: NetworkNamespace
    private var machines: [NetworkNamespace]
    private let directory: TemporaryFolder
    private let secret: URL
    private let flags: [String]
    private let disk: HungDisk?
    private(set) var ids: [String] = []

    /// Starts `count` nodes with further flags and returns when each of them knows all others.
    ///
    /// These nodes, but none added later, have their directories on `disk`.
    init(_ count: Int, _ flags: String..., disk: HungDisk? = nil) throws {
        self.flags = flags
        self.disk = disk
        middle = try NetworkNamespace()
        try middle.run(
            """
            ip link add name wire type bridge
            ip address add 10.77.0.254/24 dev wire
            ip link set wire up
            """)
        machines = try (0..<count).map { _ in try NetworkNamespace() }
        origin = try ScriptedOrigin(host: "10.77.0.254", in: middle)
        directory = try TemporaryFolder()
        secret = try directory.write(ClusterStage.secret, to: "secret")
        for index in 0..<count { try connect(index) }
        nodes = try NodeProcess.cluster(of: count) {
            try start($0, environment: disk?.environment, waits: $1)
        }
        ids = try nodes.map(ClusterStage.id)
        try settle([Array(0..<count)])
    }

    deinit { for node in nodes { node.kill() } }

    private static func address(_ index: Int) -> String { "10.77.0.\(index + 1)" }

    /// Connects a node's namespace to the bridge.
    private func connect(_ index: Int) throws {
        try middle.run(
            """
            ip link add name machine\(index) type veth peer name wire \
            netns \(machines[index].identifier)
            ip link set machine\(index) master wire up
            """)
        try machines[index].run(
            """
            ip address add \(Self.address(index))/24 dev wire
            ip link set wire up
            nft add table inet cut
            nft 'add chain inet cut in { type filter hook input priority 0; }'
            """)
    }

    /// Kills a node and starts it again.
    func restart(_ index: Int) throws {
        try end(index)
        try begin(index)
    }

    /// Ends a node, gracefully if `isOrderly`, and removes its directory if `loses`.
    func end(_ index: Int, isOrderly: Bool = false, loses: Bool = false) throws {
        if isOrderly {
            try #require(nodes[index].stop() == 0, "\(nodes[index].output)")
        } else {
            nodes[index].kill()
        }
        if loses { try FileManager.default.removeItem(at: cache(index)) }
    }

    /// Starts a node that has ended.
    func begin(_ index: Int, waits: Bool = true) throws {
        nodes[index] = try start(
            index, environment: index < ids.count ? disk?.environment : nil, waits: waits)
    }

    /// Returns a node's cache directory.
    func cache(_ index: Int) -> URL { directory.appending(path: "cache-\(index)") }

    /// Starts one further node and returns when it serves clients; if isolated, no packets pass
    /// between it and the others.
    func add(
        isIsolated: Bool = false, _ flags: String..., waits: Bool = true
    ) throws -> NodeProcess {
        let index = nodes.count
        machines.append(try NetworkNamespace())
        try connect(index)
        if isIsolated { try isolate(index) }
        let node = try start(index, flags, waits: waits)
        nodes.append(node)
        return node
    }

    private func start(
        _ index: Int, _ more: [String] = [], environment: [String: String]? = nil,
        waits: Bool = true
    ) throws -> NodeProcess {
        let seeds = (0..<2).flatMap { ["--join", "\(Self.address($0)):8082"] }
        return try NodeProcess(
            seeds + [
                "--peer-listen", "\(Self.address(index)):8082", "--cluster-secret-file",
                secret.path,
                "--cache-dir", cache(index).path, "--node-name", "node-\(index)",
                "--allow-private-origin", "10.77.0.0/24",
            ] + flags + more,
            environment: environment ?? [:], in: machines[index], waits: waits)
    }

    // MARK: Packets

    /// Drops all packets from `senders` to `receivers` from now on.
    func cut(_ senders: [Int], from receivers: [Int]) throws {
        let addresses = senders.map(Self.address).joined(separator: ", ")
        for receiver in receivers {
            try machines[receiver].run("nft 'add rule inet cut in ip saddr { \(addresses) } drop'")
        }
    }

    /// Drops all packets between this node and the others from now on.
    func isolate(_ index: Int) throws {
        let others = machines.indices.filter { $0 != index }
        try cut([index], from: others)
        try cut(others, from: [index])
    }

    /// Lets all packets pass from now on.
    func heal() throws {
        for machine in machines { try machine.run("nft flush chain inet cut in") }
    }

    /// Returns the bytes that a node has sent on the wire, with packet headers.
    func bytesSent(by index: Int) throws -> Int {
        let path = "/proc/\(nodes[index].identifier)/net/dev"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.contains("wire:") } ?? ""
        let figures = line.split(separator: ":").last?.split(separator: " ") ?? []
        return try #require(figures.count >= 9 ? Int(figures[8]) : nil, "\(text)")
    }

    // MARK: Views of the nodes

    /// Returns the number of times that a node has declared another one dead.
    func burials() throws -> Int {
        try nodes.count { node in
            try ClusterStage.members(of: node).contains { $0.state == "dead" }
        }
    }

    /// Waits until each of `groups` is a complete and connected cluster.
    func settle(_ groups: [[Int]], at location: SourceLocation = #_sourceLocation) throws {
        let areSettled = try Deadline.seconds(120).waitUntil {
            try groups.allSatisfy { group in
                let expected = Set(group.map { ids[$0] })
                return try group.allSatisfy { try ClusterStage.settled(as: nodes[$0]) == expected }
            }
        }
        let said = nodes.map(\.output).joined(separator: "\n")
        try #require(areSettled, "\(said)", sourceLocation: location)
    }
}
