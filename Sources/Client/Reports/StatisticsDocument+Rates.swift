package import Admin

extension StatisticsDocument {
    /// Returns true if `old` is from another process, so that its counts cannot be subtracted: its
    /// clock is not earlier, or a count is higher.
    package func isFromAnotherProcess(than old: StatisticsDocument) -> Bool {
        uptimeMilliseconds <= old.uptimeMilliseconds || requests.hasDecreased(since: old.requests)
            || bytes.hasDecreased(since: old.bytes)
    }
}

extension SourceCounts {
    /// The responses that did not need a body from the origin for themselves.
    package var hits: UInt64 { memory &+ disk &+ peer &+ revalidated &+ collapsed &+ stale }
    /// The responses that the cache could have served: the hits, and those fetched from an origin.
    package var cacheable: UInt64 { hits &+ origin }
    /// All responses.
    package var all: UInt64 { cacheable &+ passed &+ none }

    /// Returns true if a count is below that of `old`.
    func hasDecreased(since old: SourceCounts) -> Bool {
        merged(old) { $0 < $1 ? 1 : 0 } != SourceCounts()
    }

    /// The share of hits among cacheable responses, from 0 to 1; `nil` without any.
    package var hitRatio: Double? {
        cacheable == 0 ? nil : Double(hits) / Double(cacheable)
    }

    /// Returns the sums of two counts.
    package static func + (left: SourceCounts, right: SourceCounts) -> SourceCounts {
        left.merged(right, &+)
    }

    /// Returns the differences; `right` must be earlier, otherwise the counts wrap.
    package static func - (left: SourceCounts, right: SourceCounts) -> SourceCounts {
        left.merged(right, &-)
    }
}

extension OriginCounts {
    /// The number of all fetches.
    package var fetches: UInt64 { fetchesOK + fetchesFailed }
}

extension LatencyHistogram {
    /// The sums of all sources, bucket by bucket.
    package var all: [UInt64] {
        zip(zip(memory, disk), zip(peer, origin)).map { near, far in
            near.0 &+ near.1 &+ far.0 &+ far.1
        }
    }

    /// Returns a quantile in microseconds, interpolated linearly within its bucket.
    ///
    /// It is infinite above the last bound, and `nil` without responses.
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
