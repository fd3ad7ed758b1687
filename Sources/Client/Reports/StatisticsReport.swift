package import Admin

/// `/admin/v1/statistics` as who has asked for it reads it; ``StatisticsDocument`` is what writes
/// it.
package struct StatisticsReport: Hashable, Sendable, Decodable {
    /// Since the node's start, on its own clock.
    package var atMilliseconds: Int64
    package var requests: SourceCounts
    package var bytes: SourceCounts
    package var origin: OriginCounts
    package var latency: LatencyHistogram
    package var readiness: String
    package var isFenced: Bool
    package var fencedMilliseconds: Int64?
    package var memory: TierUsage
    package var disk: TierUsage?
    package var invalidations: InvalidationsReport
    package var cluster: ClusterReport?
    package var members: [MemberDocument]

    private enum CodingKeys: String, CodingKey {
        case requests, bytes, origin, latency, readiness, memory, disk, invalidations, cluster
        case members
        case atMilliseconds = "at_ms"
        case isFenced = "fenced"
        case fencedMilliseconds = "fenced_ms"
    }

    /// True if nothing of `old` can be subtracted: its clock or its counts were further on, as
    /// those of a process are that has ended since.
    package func isFromAnotherProcess(than old: StatisticsReport) -> Bool {
        atMilliseconds <= old.atMilliseconds || requests.hasDecreased(since: old.requests)
            || bytes.hasDecreased(since: old.bytes)
    }
}

/// Answers or their bytes, by where they came from.
package struct SourceCounts: Hashable, Sendable, Decodable {
    package var memory: UInt64
    package var disk: UInt64
    package var peer: UInt64
    package var origin: UInt64
    package var revalidated: UInt64
    package var collapsed: UInt64
    package var stale: UInt64
    package var passed: UInt64
    package var none: UInt64

    /// Of which the origin gave nothing, or no body.
    package var hits: UInt64 { memory &+ disk &+ peer &+ revalidated &+ collapsed &+ stale }
    /// What the cache could have answered.
    package var cacheable: UInt64 { hits &+ origin }
    package var all: UInt64 { cacheable &+ passed &+ none }

    /// True if a count is below that of `old`.
    func hasDecreased(since old: SourceCounts) -> Bool {
        merged(old) { $0 < $1 ? 1 : 0 } != .zero
    }

    /// From 0 to 1; nil if there was nothing to answer.
    package var hitRatio: Double? {
        cacheable == 0 ? nil : Double(hits) / Double(cacheable)
    }

    static let zero = SourceCounts(
        memory: 0, disk: 0, peer: 0, origin: 0, revalidated: 0, collapsed: 0, stale: 0, passed: 0,
        none: 0)

    package static func + (left: SourceCounts, right: SourceCounts) -> SourceCounts {
        left.merged(right, &+)
    }

    /// `right` must be of before, or the counts wrap.
    package static func - (left: SourceCounts, right: SourceCounts) -> SourceCounts {
        left.merged(right, &-)
    }

    private func merged(
        _ other: SourceCounts, _ merge: (UInt64, UInt64) -> UInt64
    ) -> SourceCounts {
        SourceCounts(
            memory: merge(memory, other.memory), disk: merge(disk, other.disk),
            peer: merge(peer, other.peer), origin: merge(origin, other.origin),
            revalidated: merge(revalidated, other.revalidated),
            collapsed: merge(collapsed, other.collapsed), stale: merge(stale, other.stale),
            passed: merge(passed, other.passed), none: merge(none, other.none))
    }
}

package struct OriginCounts: Hashable, Sendable, Decodable {
    package var fetchesOK: UInt64
    package var fetchesFailed: UInt64
    package var receivedBytes: UInt64

    package var fetches: UInt64 { fetchesOK + fetchesFailed }

    private enum CodingKeys: String, CodingKey {
        case fetchesOK = "fetches_ok"
        case fetchesFailed = "fetches_failed"
        case receivedBytes = "received_bytes"
    }
}

/// How long answers took, in buckets, by where they came from.
package struct LatencyHistogram: Hashable, Sendable, Decodable {
    /// Upper bounds in microseconds; above the last is one bucket more.
    package var bounds: [UInt64]
    package var memory: [UInt64]
    package var disk: [UInt64]
    package var peer: [UInt64]
    package var origin: [UInt64]

    private enum CodingKeys: String, CodingKey {
        case memory, disk, peer, origin
        case bounds = "bounds_us"
    }

    /// All of them together, bucket by bucket.
    package var all: [UInt64] {
        zip(zip(memory, disk), zip(peer, origin)).map { near, far in
            near.0 &+ near.1 &+ far.0 &+ far.1
        }
    }

    /// What `share`, from 0 to 1, of the answers counted in `buckets` were no slower than, in
    /// microseconds; within a bucket as if they lay evenly in it.
    ///
    /// Infinite above the last bound, and nil if there were none.
    package static func quantile(
        _ share: Double, of buckets: [UInt64], bounds: [UInt64]
    ) -> Double? {
        let all = buckets.reduce(0, &+)
        guard all > 0 else { return nil }
        let wanted = share * Double(all)
        var below = 0.0
        for (index, count) in buckets.enumerated() where count > 0 {
            guard below + Double(count) < wanted else {
                guard index < bounds.count else { return .infinity }
                let floor = index == 0 ? 0 : Double(bounds[index - 1])
                let part = max(0, wanted - below) / Double(count)
                return floor + (Double(bounds[index]) - floor) * part
            }
            below += Double(count)
        }
        return .infinity
    }
}
