import Foundation
import Harness
import Testing

/// Nodes with a machine each, as far as the network goes, and an origin that all of them reach;
/// between the nodes a test decides which packets pass.
///
/// Clients ask each node from its own machine.
final class PeerNetwork {
    let origin: ScriptedOrigin
    private(set) var nodes: [NodeProcess] = []
    /// Where the machines are connected, and the origin is.
    private let middle: NetworkNamespace
    private var machines: [NetworkNamespace]
    private let directory: TemporaryFolder
    private let secret: URL
    private let flags: [String]
    private let disk: HungDisk?
    private(set) var ids: [String] = []

    /// Starts so many nodes with further flags, and returns when each of them knows all; they, and
    /// none that is added, have their directories on `disk`.
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

    /// Puts a machine's cable in.
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

    /// Ends a node, in order if `isOrderly`, and has it lose its directory if `loses`.
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

    /// Where a node keeps what it keeps.
    func cache(_ index: Int) -> URL { directory.appending(path: "cache-\(index)") }

    /// Starts one node more, and returns when it answers clients; if it is isolated nothing reaches
    /// the others from it, nor from them it.
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

    /// From now on nothing that `senders` send reaches `receivers`.
    func cut(_ senders: [Int], from receivers: [Int]) throws {
        let addresses = senders.map(Self.address).joined(separator: ", ")
        for receiver in receivers {
            try machines[receiver].run("nft 'add rule inet cut in ip saddr { \(addresses) } drop'")
        }
    }

    /// From now on nothing reaches the other machines from this one, nor from them it.
    func isolate(_ index: Int) throws {
        let others = machines.indices.filter { $0 != index }
        try cut([index], from: others)
        try cut(others, from: [index])
    }

    /// From now on all packets pass.
    func heal() throws {
        for machine in machines { try machine.run("nft flush chain inet cut in") }
    }

    /// Bytes that a node has sent on the wire, with the heads of its packets.
    func bytesSent(by index: Int) throws -> Int {
        let path = "/proc/\(nodes[index].identifier)/net/dev"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.contains("wire:") } ?? ""
        let figures = line.split(separator: ":").last?.split(separator: " ") ?? []
        return try #require(figures.count >= 9 ? Int(figures[8]) : nil, "\(text)")
    }

    // MARK: What the nodes believe

    /// How many of the nodes hold one of them for dead.
    func burials() throws -> Int {
        try nodes.count { node in
            try ClusterStage.members(of: node).contains { $0.state == "dead" }
        }
    }

    /// Returns when each of `groups` is a cluster of its own, whole and connected.
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
