package import Ground

/// The rate limit of invalidations that client requests cause (RFC 9111, section 4.4).
///
/// Each is issued individually, up to ``countMax`` of a host within a second of the first. Beyond
/// that one soft purge of the whole host follows when the second is over. While a host goes on with
/// more than ``countMax`` a second, only that purge is issued. So a site with constant writes costs
/// the cluster one record a second, and itself revalidations; one that begins anew each time costs
/// at most ``countMax`` + 1 records within a second of the first.
package struct InvalidationThrottle: Sendable {
    /// The way in which an invalidation is issued.
    package enum Granularity: Hashable, Sendable {
        /// As a record of its own.
        case individual
        /// With a purge of the whole host, which ``takeDueHosts(now:)`` returns soon.
        case coalesced
    }

    /// The changes of a host within a second of the first, or until its purge if that is later.
    private struct HostRate: Sendable {
        var begunAt: Instant
        var count = 0
        /// True if there were too many in the second before.
        var isBusy = false

        /// True if this second is over.
        func isOver(at now: Instant) -> Bool { now - begunAt >= span }

        /// Begins another second, which is busy if too many were counted in the one just before it.
        mutating func restart(at now: Instant) {
            let isBusy = count > countMax && now - begunAt < span + span
            self = HostRate(begunAt: now, isBusy: isBusy)
        }
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
        guard !coalescedHosts.contains(host) else {
            hosts[host]?.count += 1
            return .coalesced
        }
        if hosts.count >= Self.hostsMax, hosts[host] == nil { hosts = [:] }
        var rate = hosts[host] ?? HostRate(begunAt: now)
        if rate.isOver(at: now) { rate.restart(at: now) }
        rate.count += 1
        hosts[host] = rate
        guard rate.isBusy || rate.count > Self.countMax else { return .individual }
        coalescedHosts.insert(host)
        return .coalesced
    }

    /// Schedules a purge of the whole host, because an invalidation of it could not be issued.
    package mutating func requireHostPurge(_ host: [UInt8]) {
        coalescedHosts.insert(host)
    }

    /// Returns true while a purge of all of `host` is due: other nodes do not know some change of
    /// it yet.
    package func isHostPurgePending(_ host: [UInt8]) -> Bool { coalescedHosts.contains(host) }

    /// True if ``takeDueHosts(now:)`` may return a host, now or later.
    package var hasCoalescedHosts: Bool { !coalescedHosts.isEmpty }

    /// Removes and returns the hosts to purge softly now, sorted.
    ///
    /// All of their coalesced invalidations came before.
    package mutating func takeDueHosts(now: Instant) -> [[UInt8]] {
        let due = coalescedHosts.filter { hosts[$0]?.isOver(at: now) ?? true }
        for host in due {
            coalescedHosts.remove(host)
            // The count of a busy one decides on its next second.
            if let rate = hosts[host], rate.count <= Self.countMax { hosts[host] = nil }
        }
        return due.sorted { $0.lexicographicallyPrecedes($1) }
    }
}
