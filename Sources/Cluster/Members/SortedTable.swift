import Ground

/// A map that is gone through in the order of its keys, so that two runs of one seed do the same.
///
/// For some hundreds of keys: finding is a binary search, adding moves what lies behind.
package struct SortedTable<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    /// Ascending, each once.
    package private(set) var keys: [Key] = []
    /// Beside ``keys``.
    package private(set) var values: [Value] = []

    package init() {}

    var count: Int { keys.count }
    package var isEmpty: Bool { keys.isEmpty }

    /// Nil removes.
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

    /// Changes every value where it stands.
    mutating func updateAll(_ change: (Key, inout Value) -> Void) {
        for index in keys.indices { change(keys[index], &values[index]) }
    }

    /// Changes the value of `key` where it stands; of a key that is not there, `initial`.
    mutating func update(_ key: Key, or initial: Value, _ change: (inout Value) -> Void) {
        let index = index(of: key)
        if !hasKey(key, at: index) {
            keys.insert(key, at: index)
            values.insert(initial, at: index)
        }
        change(&values[index])
    }

    package mutating func removeAll() {
        keys.removeAll()
        values.removeAll()
    }

    private func hasKey(_ key: Key, at index: Int) -> Bool {
        index < keys.count && keys[index] == key
    }

    /// Where `key` stands or would stand.
    private func index(of key: Key) -> Int { keys.partitionPoint { $0 < key } }
}
