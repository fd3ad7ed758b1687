package import Ground

/// How many hold something that is stamped so, by stamp.
package struct StampCounts: Sendable {
    /// In the order of the stamps; no count is 0.
    private var counts: [(stamp: Stamp, count: Int)] = []

    package init() {}

    /// Nil if nobody holds anything.
    package var least: Stamp? { counts.first?.stamp }

    package mutating func begin(_ stamp: Stamp) {
        let index = index(of: stamp)
        if index < counts.count, counts[index].stamp == stamp {
            counts[index].count += 1
        } else {
            counts.insert((stamp, 1), at: index)
        }
    }

    /// - Precondition: it was begun, and not ended as often.
    package mutating func end(_ stamp: Stamp) {
        let index = index(of: stamp)
        precondition(index < counts.count && counts[index].stamp == stamp, "ends at \(stamp)")
        counts[index].count -= 1
        if counts[index].count == 0 { counts.remove(at: index) }
    }

    /// That of the first one that is not less.
    private func index(of stamp: Stamp) -> Int { counts.sortedCount { $0.stamp < stamp } }
}
