import Cluster
import Glibc
import Tiers

/// What the descriptors that the process may open are for: first the disk's segments, a reserve,
/// connections with peers and those to origins, and what is left for clients.
package struct DescriptorBudget: Hashable, Sendable {
    /// Descriptors that the process may open.
    package let descriptors: Int
    /// Event loops, at least one.
    package let loops: Int
    /// Fetches from origins at one time: those that are allowed, if there is room for them.
    package let fetchesMax: Int
    /// Idle connections to origins that one event loop may keep.
    package let idlePerLoop: Int
    /// Connections of clients at one time: those that are allowed, if there is room for them.
    package let connectionsMax: Int
    /// What the operator should be told of it; one line each.
    package let warnings: [String]

    /// A process that may open so many `descriptors`, with so many event `loops`.
    package init(_ configuration: Configuration, descriptors: Int, loops: Int) {
        let shares = DescriptorAllocation(configuration, descriptors, loops)
        precondition(loops > 0, "connections are shared out to no loop")
        self.descriptors = descriptors
        self.loops = loops
        fetchesMax = shares.fetches
        idlePerLoop = shares.idlePerLoop
        connectionsMax = min(
            configuration.connectionsMax ?? .max, max(Self.connectionsMin, shares.clientConnections)
        )
        let wanted = configuration.connectionsMax ?? Self.connectionsSensible
        guard connectionsMax < wanted else {
            warnings = []
            return
        }
        let needed = Self.needed(configuration, loops, for: wanted)
        let asked = configuration.connectionsMax.map { "setting connections-limit is \($0), but " }
        warnings = [
            (asked ?? "") + "the limit on open descriptors, \(descriptors), leaves room for "
                + "\(connectionsMax) connections of clients; raise it to \(needed) "
                + "(ulimit -n, LimitNOFILE=, --ulimit nofile=)"
        ]
    }

    /// So many clients are let in whatever the limit is; the last of them may find no descriptor.
    private static let connectionsMin = 16
    /// A node that lets in fewer clients, though nobody asked for that, is not set up as it should
    /// be.
    private static let connectionsSensible = 512

    /// The least multiple of 1024 that leaves room for so many `connections`.
    private static func needed(
        _ configuration: Configuration, _ loops: Int, for connections: Int
    ) -> Int {
        var descriptors = 1024
        while DescriptorAllocation(configuration, descriptors, loops).clientConnections
            < connections
        { descriptors += 1024 }
        return descriptors
    }
}

/// How a number of descriptors is shared out.
private struct DescriptorAllocation {
    let fetches: Int
    let idlePerLoop: Int
    /// What is left for clients; may be negative.
    let clientConnections: Int

    init(_ configuration: Configuration, _ descriptors: Int, _ loops: Int) {
        fetches = min(configuration.fetchesMax, max(1, descriptors / 2))
        // All loops together may keep an eighth of the descriptors idle.
        idlePerLoop = min(
            max(128, configuration.originIdleConnectionsMax), descriptors / 8 / loops)
        clientConnections =
            descriptors - configuration.segmentsMax - configuration.peersMax - Self.reserve
            - fetches
            - idlePerLoop * loops
    }

    /// Listening sockets, event loops, standard streams, operators' connections, look-ups of names.
    private static let reserve = 160
}

extension Configuration {
    /// Connections with peers that may be open: dialled ones and accepted ones.
    fileprivate var peersMax: Int { cluster.secretFile == nil ? 0 : 2 * Ring.membersMax }

    /// Files that the disk cache may have open: a directory may be cut as if there were no large
    /// objects, because it was before.
    fileprivate var segmentsMax: Int {
        guard cacheDirectory != nil, diskBytesMax > 0,
            let plan = try? DiskPlan(
                limitBytes: diskBytesMax, objectBytesMax: 0, formerSegmentBytes: nil)
        else { return 0 }
        return plan.segments
    }
}

/// The process's limit on open descriptors.
enum DescriptorLimit {
    /// Raises the soft limit to the hard one; gives what holds now.
    static func raise() -> Int {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return 1024
        }
        let soft = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        let raised = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return Int(clamping: raised ? limit.rlim_max : soft)
    }
}
