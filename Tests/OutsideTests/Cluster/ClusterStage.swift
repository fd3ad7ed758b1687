import Foundation
import Harness
import Testing

/// An origin, and nodes with one shared secret that find each other on loopback.
final class ClusterStage {
    let origin: ScriptedOrigin
    /// The folder of the nodes' cache directories and files.
    let directory: TemporaryFolder
    private(set) var nodes: [NodeProcess] = []
    private var peerPorts: [Int]
    private let flags: [String]
    /// Flags of single nodes, by index, beside ``flags``.
    private let ownFlags: [Int: [String]]
    private let environment: [String: String]
    private let keepsOnDisk: Bool
    private let isNamed: Bool
    /// True if the nodes keep their capabilities.
    private let isPrivileged: Bool

    /// The secret of the cluster, and that of another cluster.
    static let (secret, otherSecret) = (
        String(repeating: "s", count: 32), String(repeating: "o", count: 32)
    )

    /// Starts the nodes and returns when each of them knows all others.
    ///
    /// Unprivileged nodes have no capabilities, as services and containers. With `site` the origin
    /// is also that of a site with this name and these `settings`, in the syntax of the
    /// configuration file.
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

    /// Returns the flags of a node that listens for peers on `port`, with the first two nodes as
    /// seeds.
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

    /// Starts one further node.
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

    /// Waits until each of `nodes` is connected with the others and regards no other node as alive.
    ///
    /// All own a part of the ring, and are voters and proven current if they are more than half of
    /// all.
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

    /// One node's view of a member.
    struct Member {
        let id: String
        let process: String
        let state: String
        let isSelf: Bool
        let isConnected: Bool
        let share: Double
        /// Milliseconds since the member last replied to a version query; `nil` if it never did.
        let contactAge: Double?
    }

    /// Returns the members that a node knows, itself first.
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

    /// Returns the id of a node in the cluster.
    static func id(of node: NodeProcess) throws -> String {
        try #require(try members(of: node).first(where: \.isSelf)).id
    }

    /// Returns the ids of the members that are alive to a node, or `nil` unless it suspects none
    /// and all are connected with it and own a part of the ring.
    static func settled(as node: NodeProcess) throws -> Set<String>? {
        let members = try members(of: node)
        let alive = members.filter { $0.state == "alive" }
        let areWhole =
            alive.allSatisfy { $0.isConnected && $0.share > 0 }
            && !members.contains { $0.state == "suspected" }
            && abs(alive.reduce(0) { $0 + $1.share } - 1) < 0.001
        return areWhole ? Set(alive.map(\.id)) : nil
    }

    /// Waits until `count` other nodes have replied to queries for their invalidation version that
    /// `node` sent after this call.
    func waitUntilHeard(by node: NodeProcess, from count: Int) throws {
        let start = ContinuousClock.now
        let isHeard = try Deadline.seconds(30).waitUntil {
            let passed = (ContinuousClock.now - start) / .milliseconds(1)
            let replied = try Self.members(of: node).filter { member in
                !member.isSelf && (member.contactAge.map { $0 < passed } ?? false)
            }
            return replied.count >= count
        }
        try #require(isHeard)
    }

    /// True once `node` has the given state for the member with that id.
    func believes(_ node: NodeProcess, _ id: String, _ state: String) throws -> Bool {
        try Deadline.seconds(60).waitUntil {
            try Self.members(of: node).contains { $0.id == id && $0.state == state }
        }
    }

    /// True if the node with this index is an owner of the resource at `path`.
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

    /// Expects the image from each node, or from the nodes in `order` one after the other.
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

    /// Returns the number of origin requests for a path.
    func fetches(_ path: String) -> Int { origin.requests(path).count }
}
