import Ground

/// The fingerprints of some names; see ``URLName/fingerprint(_:)``.
///
/// Four bytes for each. They are sorted when they are looked through, not when they come.
package struct NameSet: Hashable, Sendable {
    private var sorted: [UInt32] = []
    private var added: [UInt32] = []

    package init() {}

    package init(_ names: [UInt32]) { added = names }

    package mutating func insert(_ name: UInt32) { added.append(name) }

    /// Ascending, each once.
    package var names: [UInt32] {
        mutating get {
            sort()
            return sorted
        }
    }

    package mutating func contains(_ name: UInt32) -> Bool {
        sort()
        let place = sorted.sortedCount { $0 < name }
        return place < sorted.count && sorted[place] == name
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

extension [UInt32] {
    /// How many of the first elements are so; all that are not come behind them.
    fileprivate func sortedCount(where isBefore: (UInt32) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
