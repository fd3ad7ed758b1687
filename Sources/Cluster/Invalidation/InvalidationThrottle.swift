package import Ground

/// How invalidations that requests cause come into the log: each by itself, up to so many a second
/// of one host; beyond that all of the host together, a moment later and soft.
///
/// A site that is written to all the time then costs the cluster one record a second, and itself
/// revalidations (DESIGN.md §7, issue of unsafe methods).
package struct InvalidationThrottle: Sendable {
    /// What becomes of one.
    package enum Granularity: Hashable, Sendable {
        /// It goes into the log.
        case individual
        /// It goes with the host: ``due(now:)`` names that soon.
        case coalesced
    }

    private struct HostRate: Sendable {
        var begunAt: Instant
        var count = 0
    }

    /// Of one host in a second.
    package static let countMax = 1_000
    /// Hosts that are kept account of; beyond that one is begun anew, which only lets more pass.
    static let hostsMax = 4_096
    private static let span = Interval.seconds(1)

    private var hosts: [[UInt8]: HostRate] = [:]
    private var coalescedHosts: Set<[UInt8]> = []

    package init() {}

    /// An invalidation of something of `host`.
    package mutating func admit(_ host: [UInt8], now: Instant) -> Granularity {
        if coalescedHosts.contains(host) { return .coalesced }
        if hosts.count >= Self.hostsMax, hosts[host] == nil { hosts = [:] }
        var known = hosts[host] ?? HostRate(begunAt: now)
        if now - known.begunAt >= Self.span { known = HostRate(begunAt: now) }
        known.count += 1
        hosts[host] = known
        guard known.count > Self.countMax else { return .individual }
        coalescedHosts.insert(host)
        return .coalesced
    }

    /// One of `host` did not come into the log: it goes with the host, whenever that does.
    package mutating func requireHostPurge(_ host: [UInt8]) {
        coalescedHosts.insert(host)
    }

    /// Of `host` something was changed that the other nodes do not know of yet.
    package func isHostPurgePending(_ host: [UInt8]) -> Bool { coalescedHosts.contains(host) }

    /// True if ``due(now:)`` may name somebody.
    package var hasCoalescedHosts: Bool { !coalescedHosts.isEmpty }

    /// The hosts all of which are to be purged softly now, in order; each invalidation that went
    /// together came before.
    package mutating func takeDueHosts(now: Instant) -> [[UInt8]] {
        let due = coalescedHosts.filter { host in
            hosts[host].map { now - $0.begunAt >= Self.span } ?? true
        }
        for host in due {
            coalescedHosts.remove(host)
            hosts[host] = nil
        }
        return due.sorted { $0.lexicographicallyPrecedes($1) }
    }
}
