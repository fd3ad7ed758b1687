import Ground

/// A map that iterates in the order of its keys, so that two runs of one seed do the same.
///
/// Made for some hundreds of keys: a lookup is a binary search, an insertion moves all later
/// elements.
package struct SortedTable<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    /// The keys, ascending and unique.
    package private(set) var keys: [Key] = []
    /// The values, parallel to ``keys``.
    package private(set) var values: [Value] = []

    /// Creates an empty map.
    package init() {}

    var count: Int { keys.count }
    /// True if there are no keys.
    package var isEmpty: Bool { keys.isEmpty }

    /// The value of `key`; setting `nil` removes the key.
    package subscript(key: Key) -> Value? {
        get {
            let index = index(of: key)
            return hasKey(key, at: index) ? values[index] : nil
        }
        set {
            let index = index(of: key)
            switch (hasKey(key, at: index), newValue) {
            case (true, let value?): values[index] = value
            case (true, nil):
                keys.remove(at: index)
                values.remove(at: index)
            case (false, let value?):
                keys.insert(key, at: index)
                values.insert(value, at: index)
            case (false, nil): break
            }
        }
    }

    /// Changes every value in place.
    mutating func updateAll(_ change: (Key, inout Value) -> Void) {
        for index in keys.indices { change(keys[index], &values[index]) }
    }

    /// Changes the value of `key` in place, starting from `initial` if the key is absent.
    mutating func update(_ key: Key, or initial: Value, _ change: (inout Value) -> Void) {
        let index = index(of: key)
        if !hasKey(key, at: index) {
            keys.insert(key, at: index)
            values.insert(initial, at: index)
        }
        change(&values[index])
    }

    /// Removes all keys.
    package mutating func removeAll() {
        keys.removeAll()
        values.removeAll()
    }

    private func hasKey(_ key: Key, at index: Int) -> Bool {
        index < keys.count && keys[index] == key
    }

    /// Returns the index of `key`, or where it would be inserted.
    private func index(of key: Key) -> Int { keys.partitionPoint { $0 < key } }
}
