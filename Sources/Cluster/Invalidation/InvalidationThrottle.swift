package import Ground

/// The rate limit of invalidations that client requests cause (RFC 9111, section 4.4).
///
/// Each is issued individually, up to ``countMax`` a second for each host. Beyond that one soft
/// purge of the whole host follows when the second is over. So a site with constant writes costs
/// the cluster at most ``countMax`` + 1 records a second, and itself revalidations.
package struct InvalidationThrottle: Sendable {
    /// The way in which an invalidation is issued.
    package enum Granularity: Hashable, Sendable {
        /// As a record of its own.
        case individual
        /// With a purge of the whole host, which ``takeDueHosts(now:)`` returns soon.
        case coalesced
    }

    private struct HostRate: Sendable {
        var begunAt: Instant
        var count = 0
    }

    /// The maximum number of individual invalidations of one host in a second.
    package static let countMax = 1_000
    /// The maximum number of hosts counted; beyond it all counts restart, which only admits more.
    static let hostsMax = 4_096
    private static let span = Interval.seconds(1)

    private var hosts: [[UInt8]: HostRate] = [:]
    private var coalescedHosts: Set<[UInt8]> = []

    /// Creates a throttle without any counts.
    package init() {}

    /// Counts an invalidation of an entry of `host` and returns how to issue it.
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

    /// Schedules a purge of the whole host, because an invalidation of it could not be issued.
    package mutating func requireHostPurge(_ host: [UInt8]) {
        coalescedHosts.insert(host)
    }

    /// Returns true if a change of `host` is not known to the other nodes yet.
    package func isHostPurgePending(_ host: [UInt8]) -> Bool { coalescedHosts.contains(host) }

    /// True if ``takeDueHosts(now:)`` may return a host, now or later.
    package var hasCoalescedHosts: Bool { !coalescedHosts.isEmpty }

    /// Removes and returns the hosts to purge softly now, sorted.
    ///
    /// All of their coalesced invalidations came before.
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
