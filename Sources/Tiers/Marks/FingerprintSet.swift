import Ground

/// A set of name fingerprints, four bytes each; see ``URLName/fingerprint(_:)``.
///
/// Elements are sorted when the set is read, not when they are inserted.
package struct FingerprintSet: Hashable, Sendable {
    private var sorted: [UInt32] = []
    private var added: [UInt32] = []

    /// Creates an empty set.
    package init() {}

    /// Creates a set of the given fingerprints, in any order and with repetitions.
    package init(_ names: [UInt32]) { added = names }

    /// Inserts a fingerprint.
    package mutating func insert(_ name: UInt32) { added.append(name) }

    /// The elements in ascending order, each once.
    package var fingerprints: [UInt32] {
        mutating get {
            sort()
            return sorted
        }
    }

    /// True if the set contains the fingerprint.
    package mutating func contains(_ name: UInt32) -> Bool {
        sort()
        return sorted.sortedIndex(of: name) != nil
    }

    /// Adds the elements of `wanted` that are in this set to `found`; `wanted` must be ascending.
    ///
    /// Looks up a few elements one by one; for many, traverses both lists once.
    package mutating func intersect(_ wanted: [UInt32], into found: inout Set<UInt32>) {
        guard wanted.count * 16 > sorted.count + added.count else {
            for name in wanted where contains(name) { found.insert(name) }
            return
        }
        sort()
        var place = 0
        for name in wanted {
            while place < sorted.count, sorted[place] < name { place += 1 }
            guard place < sorted.count else { return }
            if sorted[place] == name { found.insert(name) }
        }
    }

    /// Merges the added elements into the sorted ones, without repetitions.
    private mutating func sort() {
        guard !added.isEmpty else { return }
        var all = sorted + added
        all.sort()
        added = []
        sorted = []
        sorted.reserveCapacity(all.count)
        for name in all where name != sorted.last { sorted.append(name) }
    }
}
