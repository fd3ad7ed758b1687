package import Ground

/// The marks for URLs that are not yet known to cover any entry; most name URLs that are not
/// stored.
///
/// **Invariant.** A mark may be removed once no older entry with its URL in key or tags can be
/// found any more. That holds when, first, every request under way and every entry in transit
/// between tiers has at least the mark's version, and, after that, neither memory nor any disk file
/// that a start might read has an entry with this name. For every entry that reaches memory or disk
/// later was requested later, either from an origin or from a peer, which replies to a query only
/// after it has applied all invalidations that this node had applied by then; or it was stored
/// during the search, under its names. The order of the two steps matters, because an entry in
/// transit releases its version only after it has been stored.
package struct UnconfirmedMarks: Sendable {
    /// One mark in the list.
    package struct UnconfirmedMark: Hashable, Sendable {
        /// The fingerprint of the URL's name.
        package let fingerprint: UInt32
        /// The slot of the mark in the table.
        package let slot: MarkTable.Slot
        /// The version of the mark.
        package let version: InvalidationVersion
    }

    /// The marks in the order of their versions.
    private var marks: [UnconfirmedMark] = []

    /// Creates an empty list.
    package init() {}

    /// The number of marks.
    package var count: Int { marks.count }

    /// Appends a mark for a URL's `name`; its version must not be earlier than those in the list.
    package mutating func insert(
        _ name: [UInt8], _ slot: MarkTable.Slot, _ version: InvalidationVersion
    ) {
        marks.append(
            UnconfirmedMark(
                fingerprint: URLName.fingerprint(name[...]), slot: slot, version: version))
    }

    /// Removes and returns the marks up to `version`.
    package mutating func remove(upTo version: InvalidationVersion) -> [UnconfirmedMark] {
        let count = marks.firstIndex { $0.version > version } ?? marks.count
        defer { marks.removeFirst(count) }
        return Array(marks[..<count])
    }

    /// Removes and returns the oldest marks, up to the version of the one at the index
    /// ``count`` / 2: more than half of them.
    package mutating func removeOldestHalf() -> [UnconfirmedMark] {
        guard let middle = marks.dropFirst(marks.count / 2).first else { return [] }
        return remove(upTo: middle.version)
    }
}

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
