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
