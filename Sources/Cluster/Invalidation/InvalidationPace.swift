package import Ground

/// How invalidations that requests cause come into the log: each by itself, up to so many a second
/// of one host; beyond that all of the host together, a moment later and soft.
///
/// A site that is written to all the time then costs the cluster one record a second, and itself
/// revalidations (DESIGN.md §7, issue of unsafe methods).
package struct InvalidationPace: Sendable {
    /// What becomes of one.
    package enum Verdict: Hashable, Sendable {
        /// It goes into the log.
        case alone
        /// It goes with the host: ``due(now:)`` names that soon.
        case together
    }

    private struct Host: Sendable {
        var begunAt: Instant
        var count = 0
    }

    /// Of one host in a second.
    package static let countMax = 1_000
    /// Hosts that are kept account of; beyond that one is begun anew, which only lets more pass.
    static let hostsMax = 4_096
    private static let span = Interval.seconds(1)

    private var hosts: [[UInt8]: Host] = [:]
    private var merged: Set<[UInt8]> = []

    package init() {}

    /// An invalidation of something of `host`.
    package mutating func take(_ host: [UInt8], now: Instant) -> Verdict {
        if merged.contains(host) { return .together }
        if hosts.count >= Self.hostsMax, hosts[host] == nil { hosts = [:] }
        var known = hosts[host] ?? Host(begunAt: now)
        if now - known.begunAt >= Self.span { known = Host(begunAt: now) }
        known.count += 1
        hosts[host] = known
        guard known.count > Self.countMax else { return .alone }
        merged.insert(host)
        return .together
    }

    /// One of `host` did not come into the log: it goes with the host, whenever that does.
    package mutating func owes(_ host: [UInt8]) {
        merged.insert(host)
    }

    /// Of `host` something was changed that the other nodes do not know of yet.
    package func isOwed(_ host: [UInt8]) -> Bool { merged.contains(host) }

    /// True if ``due(now:)`` may name somebody.
    package var hasMerged: Bool { !merged.isEmpty }

    /// The hosts all of which are to be purged softly now, in order; each invalidation that went
    /// together came before.
    package mutating func due(now: Instant) -> [[UInt8]] {
        let due = merged.filter { host in
            hosts[host].map { now - $0.begunAt >= Self.span } ?? true
        }
        for host in due {
            merged.remove(host)
            hosts[host] = nil
        }
        return due.sorted { $0.lexicographicallyPrecedes($1) }
    }
}
