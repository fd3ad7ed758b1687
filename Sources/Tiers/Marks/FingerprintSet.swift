import Ground

/// The fingerprints of some names; see ``URLName/fingerprint(_:)``.
///
/// Four bytes for each. They are sorted when they are looked through, not when they come.
package struct FingerprintSet: Hashable, Sendable {
    private var sorted: [UInt32] = []
    private var added: [UInt32] = []

    package init() {}

    package init(_ names: [UInt32]) { added = names }

    package mutating func insert(_ name: UInt32) { added.append(name) }

    /// Ascending, each once.
    package var fingerprints: [UInt32] {
        mutating get {
            sort()
            return sorted
        }
    }

    package mutating func contains(_ name: UInt32) -> Bool {
        sort()
        return sorted.sortedIndex(of: name) != nil
    }

    /// Adds to `found` what is here of `wanted`, which ascends.
    ///
    /// Few are looked for one by one, many with one walk over both.
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
