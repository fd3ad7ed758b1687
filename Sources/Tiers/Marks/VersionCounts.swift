package import Ground

/// How many hold something that is stamped so, by stamp.
package struct VersionCounts: Sendable {
    /// In the order of the stamps; no count is 0.
    private var counts: [(version: InvalidationVersion, count: Int)] = []

    package init() {}

    /// Nil if nobody holds anything.
    package var least: InvalidationVersion? { counts.first?.version }

    package mutating func insert(_ version: InvalidationVersion) {
        let index = index(of: version)
        if index < counts.count, counts[index].version == version {
            counts[index].count += 1
        } else {
            counts.insert((version, 1), at: index)
        }
    }

    /// - Precondition: it was begun, and not ended as often.
    package mutating func remove(_ version: InvalidationVersion) {
        let index = index(of: version)
        precondition(index < counts.count && counts[index].version == version, "ends at \(version)")
        counts[index].count -= 1
        if counts[index].count == 0 { counts.remove(at: index) }
    }

    /// That of the first one that is not less.
    private func index(of version: InvalidationVersion) -> Int {
        counts.partitionPoint { $0.version < version }
    }
}
