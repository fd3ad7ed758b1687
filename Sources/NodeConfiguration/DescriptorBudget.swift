import Cluster
import Glibc
import Tiers

/// The distribution of the process's descriptors: the disk's segments, a reserve, connections with
/// peers and origins, and the rest for clients.
package struct DescriptorBudget: Hashable, Sendable {
    /// The number of descriptors that the process may open.
    package let descriptors: Int
    /// The number of event loops, at least one.
    package let loops: Int
    /// The largest number of concurrent fetches: the configured one, lowered if descriptors are
    /// scarce.
    package let fetchesMax: Int
    /// The largest number of idle connections to origins per event loop.
    package let idlePerLoop: Int
    /// The largest number of client connections: the configured one, lowered if descriptors are
    /// scarce.
    package let connectionsMax: Int
    /// The warnings for the operator, one line each.
    package let warnings: [String]

    /// Distributes the descriptors.
    ///
    /// - Parameters:
    ///   - configuration: the settings with the wanted limits.
    ///   - descriptors: the number of descriptors that the process may open.
    ///   - loops: the number of event loops; at least one.
    package init(_ configuration: Configuration, descriptors: Int, loops: Int) {
        let shares = DescriptorAllocation(configuration, descriptors, loops)
        precondition(loops > 0, "connections are shared out to no loop")
        self.descriptors = descriptors
        self.loops = loops
        fetchesMax = shares.fetches
        idlePerLoop = shares.idlePerLoop
        connectionsMax = min(
            configuration.connectionsLimit ?? .max,
            max(Self.connectionsMin, shares.clientConnections)
        )
        let wanted = configuration.connectionsLimit ?? Self.connectionsSensible
        guard connectionsMax < wanted else {
            warnings = []
            return
        }
        let needed = Self.needed(configuration, loops, for: wanted)
        let asked = configuration.connectionsLimit.map {
            "setting connections-limit is \($0), but "
        }
        warnings = [
            (asked ?? "") + "the limit on open descriptors, \(descriptors), leaves room for "
                + "\(connectionsMax) connections of clients; raise it to \(needed) "
                + "(ulimit -n, LimitNOFILE=, --ulimit nofile=)"
        ]
    }

    /// The number of clients that are accepted whatever the limit is; the last of them may find no
    /// descriptor.
    private static let connectionsMin = 16
    /// The number of client connections below which an unconfigured limit causes a warning.
    private static let connectionsSensible = 512

    /// Returns the least multiple of 1024 descriptors that leaves `connections` for clients.
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

/// The allocation of a number of descriptors.
private struct DescriptorAllocation {
    /// The number of concurrent fetches.
    let fetches: Int
    /// The number of idle connections to origins per event loop.
    let idlePerLoop: Int
    /// The number left for clients; may be negative.
    let clientConnections: Int

    /// Allocates `descriptors` among their uses.
    init(_ configuration: Configuration, _ descriptors: Int, _ loops: Int) {
        fetches = min(configuration.fillsLimit, max(1, descriptors / 2))
        // All loops together may keep an eighth of the descriptors idle.
        idlePerLoop = min(
            max(128, configuration.originIdleConnections), descriptors / 8 / loops)
        clientConnections =
            descriptors - configuration.segmentsMax - configuration.peersMax - Self.reserve
            - fetches
            - idlePerLoop * loops
    }

    /// The descriptors for listening sockets, event loops, standard streams, the admin port and
    /// name look-ups.
    private static let reserve = 160
}

extension Configuration {
    /// The largest number of connections with peers, dialled and accepted ones.
    fileprivate var peersMax: Int { self.clusterSecretFile == nil ? 0 : 2 * Ring.membersMax }

    /// The largest number of segment files of the disk cache.
    ///
    /// The calculation assumes no large objects, because an existing directory may be divided that
    /// way.
    fileprivate var segmentsMax: Int {
        guard self.cacheDir != nil, self.diskLimit > 0,
            let plan = try? DiskPlan(
                limitBytes: UInt64(self.diskLimit), objectBytesMax: 0, formerSegmentBytes: nil)
        else { return 0 }
        return plan.segments
    }
}

/// The process's limit on open descriptors.
package enum DescriptorLimit {
    /// Raises the soft limit to the hard one and returns the limit in effect; 1024 if it cannot be
    /// read.
    package static func raise() -> Int {
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
