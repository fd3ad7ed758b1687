package import Ground

/// Marks for URLs of which it is yet to be seen whether anything can be covered by them; most name
/// what nobody has stored.
///
/// **Law.** A mark may go if no entry that is older, and has its URL in its key or its tags, can be
/// found any more: when each request under way, and each entry on its way from one place to
/// another, is stamped no earlier than the mark, and after that neither memory nor any file of the
/// disk that a start might read has an entry under this name. For whatever comes into memory or to
/// the disk later was asked for later: of an origin, or of a peer, which answers a question only
/// when it has applied all that this node had applied by then; or it was held when it was looked,
/// under its names. That order counts, for what is put in its place ends its lease after that.
package struct UnconfirmedMarks: Sendable {
    /// One of them.
    package struct UnconfirmedMark: Hashable, Sendable {
        package let fingerprint: UInt32
        /// Where it is in the table.
        package let slot: MarkTable.Slot
        package let version: InvalidationVersion
    }

    /// In the order of their stamps.
    private var marks: [UnconfirmedMark] = []

    package init() {}

    package var count: Int { marks.count }

    package mutating func insert(
        _ name: [UInt8], _ slot: MarkTable.Slot, _ version: InvalidationVersion
    ) {
        marks.append(
            UnconfirmedMark(
                fingerprint: URLName.fingerprint(name[...]), slot: slot, version: version))
    }

    /// Takes those that are no later than `stamp`.
    package mutating func remove(upTo version: InvalidationVersion) -> [UnconfirmedMark] {
        let count = marks.firstIndex { $0.version > version } ?? marks.count
        defer { marks.removeFirst(count) }
        return Array(marks[..<count])
    }

    /// Takes the older half of them.
    package mutating func removeOldestHalf() -> [UnconfirmedMark] {
        guard let middle = marks.dropFirst(marks.count / 2).first else { return [] }
        return remove(upTo: middle.version)
    }
}
