import Foundation
import Harness
import Testing

/// An origin, and nodes with one secret that find each other on loopback.
final class ClusterStage {
    let origin: ScriptedOrigin
    /// Holds what the nodes keep.
    let directory: TemporaryFolder
    private(set) var nodes: [NodeProcess] = []
    private var peerPorts: [Int]
    private let flags: [String]
    /// Those of single nodes beside ``flags``.
    private let ownFlags: [Int: [String]]
    private let environment: [String: String]
    private let keepsOnDisk: Bool
    private let isNamed: Bool
    /// Of each node by itself.
    private let isPrivileged: Bool

    /// The secret of a cluster, and one of another.
    static let (secret, otherSecret) = (
        String(repeating: "s", count: 32), String(repeating: "o", count: 32)
    )

    /// Starts the nodes, and returns when each of them knows all.
    ///
    /// Nodes that are not privileged are without any capability, as services and containers are.
    /// With `site` the origin is that of a site of this name, too, which has `settings`, as they
    /// stand in a file.
    init(
        _ count: Int, keepsOnDisk: Bool = true, isNamed: Bool = false, _ flags: String...,
        ownFlags: [Int: [String]] = [:], environment: [String: String] = [:],
        isPrivileged: Bool = true, site: String? = nil, settings: String? = nil
    ) throws {
        self.ownFlags = ownFlags
        self.environment = environment
        self.keepsOnDisk = keepsOnDisk
        self.isNamed = isNamed
        let origin = try ScriptedOrigin()
        self.origin = origin
        directory = try TemporaryFolder()
        let file = directory.appending(path: "nuthatch.yaml")
        let siteFlags = site.map { ["--site", "\($0)=\(origin.url(""))"] } ?? []
        self.flags = flags + (settings == nil ? siteFlags : ["--config", file.path])
        self.isPrivileged = isPrivileged
        peerPorts = try (0..<count).map { _ in try ReservedPort.forProcess() }
        if let settings {
            let block = site.map { "sites:\n  \($0):\n    origin: \(origin.url(""))\n    " } ?? ""
            try write(block + settings + "\n", to: file.lastPathComponent)
        }
        try write(Self.secret, to: "secret")
        nodes = try NodeProcess.cluster(of: count, start)
        try settle(nodes)
    }

    deinit { for node in nodes { node.kill() } }

    func write(_ text: String, to name: String) throws {
        try directory.write(text, to: name)
    }

    /// The flags of a node that listens for peers on `port` and looks for the first two nodes.
    func clusterFlags(peerPort port: Int, secret name: String = "secret") -> [String] {
        let seeds = peerPorts.prefix(2).flatMap { ["--join", "127.0.0.1:\($0)"] }
        return seeds + [
            "--peer-listen", "127.0.0.1:\(port)",
            "--cluster-secret-file", directory.appending(path: name).path,
        ]
    }

    private func start(_ index: Int, waits: Bool = true) throws -> NodeProcess {
        try NodeProcess(
            clusterFlags(peerPort: peerPorts[index])
                + (keepsOnDisk ? ["--cache-dir", cache(index).path] : [])
                + (isNamed ? ["--node-name", "node-\(index)"] : []) + flags
                + ownFlags[index, default: []],
            environment: environment, isPrivileged: isPrivileged, waits: waits)
    }

    /// Starts one node more.
    func join() throws -> NodeProcess {
        peerPorts.append(try ReservedPort.forProcess())
        let node = try start(nodes.count)
        nodes.append(node)
        return node
    }

    func peerPort(of index: Int) -> Int { peerPorts[index] }

    func cache(_ index: Int) -> URL { directory.appending(path: "cache-\(index)") }

    /// Kills a node and starts it again.
    func restart(_ index: Int) throws {
        nodes[index].kill()
        nodes[index] = try start(index)
    }

    /// Returns when each of `nodes` is connected with the others, and no other node is alive to it;
    /// all own a part of the ring, and are counted and proven current where they are more than
    /// half of all.
    func settle(_ nodes: [NodeProcess], at location: SourceLocation = #_sourceLocation) throws {
        let areMost = nodes.count * 2 > self.nodes.count
        let isSettled = try Deadline.seconds(60).waitUntil {
            try nodes.allSatisfy { node in
                if areMost, !node.isCurrent(among: nodes.count) { return false }
                return try Self.settled(as: node)?.count == nodes.count
            }
        }
        let said = nodes.map(\.output).joined(separator: "\n")
        try #require(isSettled, "\(said)", sourceLocation: location)
    }

    /// What one node says of another.
    struct Member {
        let id: String
        let process: String
        let state: String
        let isSelf: Bool
        let isConnected: Bool
        let share: Double
        /// Milliseconds since it was asked last what it has, and answered.
        let contactAge: Double?
    }

    /// Those whom a node knows, itself first.
    static func members(of node: NodeProcess) throws -> [Member] {
        let document = try node.document("/admin/v1/members")
        let rows = document["members"] as? [[String: Any]] ?? []
        return rows.map { row in
            Member(
                id: row["node"] as? String ?? "", process: row["process"] as? String ?? "",
                state: row["state"] as? String ?? "", isSelf: row["self"] as? Bool ?? false,
                isConnected: row["connected"] as? Bool ?? false,
                share: row["ring_share"] as? Double ?? 0,
                contactAge: row["contact_ms_ago"] as? Double)
        }
    }

    /// The id under which others know a node.
    static func id(of node: NodeProcess) throws -> String {
        try #require(try members(of: node).first(where: \.isSelf)).id
    }

    /// The ids of those that are alive to a node, if it suspects nobody, and all of them are
    /// connected with it and own a part of the ring; nil otherwise.
    static func settled(as node: NodeProcess) throws -> Set<String>? {
        let members = try members(of: node)
        let alive = members.filter { $0.state == "alive" }
        let areWhole =
            alive.allSatisfy { $0.isConnected && $0.share > 0 }
            && !members.contains { $0.state == "suspected" }
            && abs(alive.reduce(0) { $0 + $1.share } - 1) < 0.001
        return areWhole ? Set(alive.map(\.id)) : nil
    }

    /// Returns when `node` has asked so many others what they have, from now on, and all of them
    /// have answered.
    func waitUntilHeard(by node: NodeProcess, from count: Int) throws {
        let start = ContinuousClock.now
        let isHeard = try Deadline.seconds(30).waitUntil {
            let passed = (ContinuousClock.now - start) / .milliseconds(1)
            let heard = try Self.members(of: node).filter { member in
                !member.isSelf && (member.contactAge.map { $0 < passed } ?? false)
            }
            return heard.count >= count
        }
        try #require(isHeard)
    }

    /// True once `node` believes `state` of the node with that id.
    func believes(_ node: NodeProcess, _ id: String, _ state: String) throws -> Bool {
        try Deadline.seconds(60).waitUntil {
            try Self.members(of: node).contains { $0.id == id && $0.state == state }
        }
    }

    /// True if the node with this number is an owner of what the origin has at `path`.
    func owns(_ path: String, _ index: Int) throws -> Bool {
        let page = "/admin/v1/entry?url=\(ImageRequestTarget.encoded(origin.url(path)))"
        let response = try nodes[index].connectAdmin().get(page)
        let owners = try #require(response.document?["owners"] as? [String], "\(response)")
        return owners.contains(try Self.id(of: nodes[index]))
    }

    func target(_ path: String) -> String { ImageRequestTarget.forURL(origin.url(path)) }

    func get(
        _ path: String, from index: Int, expecting: TestImage? = nil
    ) throws -> Response {
        try nodes[index].get(target(path), expecting: expecting)
    }

    /// Expects the image of each node, or of those in `order` one after the other.
    func expectAll(
        _ path: String, _ image: TestImage, from order: [Int]? = nil,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        for index in order ?? Array(nodes.indices) {
            let response = try get(path, from: index, expecting: image)
            #expect(
                response.matches(image), "\(path), \(index): \(response)", sourceLocation: location)
        }
    }

    /// How often the origin was asked for a path.
    func fetches(_ path: String) -> Int { origin.requests(path).count }
}
