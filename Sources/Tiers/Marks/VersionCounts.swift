package import Ground

/// The numbers of requests under way and entries in transit, by their invalidation versions.
package struct VersionCounts: Sendable {
    /// The counts in the order of versions; none is 0.
    private var counts: [(version: InvalidationVersion, count: Int)] = []

    /// Creates empty counts.
    package init() {}

    /// The least version in use; `nil` if there is none.
    package var least: InvalidationVersion? { counts.first?.version }

    /// Records the start of one use of a version.
    package mutating func insert(_ version: InvalidationVersion) {
        let index = index(of: version)
        if index < counts.count, counts[index].version == version {
            counts[index].count += 1
        } else {
            counts.insert((version, 1), at: index)
        }
    }

    /// Records the end of one use of a version.
    ///
    /// - Precondition: a use of this version has been started and not ended.
    package mutating func remove(_ version: InvalidationVersion) {
        let index = index(of: version)
        precondition(index < counts.count && counts[index].version == version, "ends at \(version)")
        counts[index].count -= 1
        if counts[index].count == 0 { counts.remove(at: index) }
    }

    /// Returns the position of the first version that is not less than `version`.
    private func index(of version: InvalidationVersion) -> Int {
        counts.partitionPoint { $0.version < version }
    }
}
