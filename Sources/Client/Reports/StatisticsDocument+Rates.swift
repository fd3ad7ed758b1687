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

extension StatusCounts {
    /// Returns the share of a part, from 0 to 1; `nil` without responses.
    package func share(_ part: UInt64) -> Double? { all == 0 ? nil : Double(part) / Double(all) }
}

extension NamedCounts {
    /// Combines two sets name by name; a missing name counts as 0, and the order is that of the
    /// first.
    package func merged(
        _ other: NamedCounts, _ merge: (UInt64, UInt64) -> UInt64
    ) -> NamedCounts {
        let further = other.items.filter { item in !items.contains { $0.name == item.name } }
        return NamedCounts(
            (items + further).map { item in
                (item.name, merge(self[item.name], other[item.name]))
            })
    }

    /// The counts above 0 as in `connect 12, timeout 3`, the highest first.
    package var text: String {
        items.filter { $0.count > 0 }.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
            .map { "\($0.name) \(NumberFormat.count($0.count))" }.joined(separator: ", ")
    }
}

extension OriginCounts {
    /// The number of all fetches.
    package var fetches: UInt64 { fetchesOK &+ fetchesFailed }
}

extension LatencyHistogram {
    /// The sums of all sources, bucket by bucket.
    package var all: [UInt64] {
        zip(zip(memory, disk), zip(peer, origin)).map { near, far in
            near.0 &+ near.1 &+ far.0 &+ far.1
        }
    }
}
