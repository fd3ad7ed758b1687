/// A map that is gone through in the order of its keys, so that two runs of one seed do the same.
///
/// For some hundreds of keys: finding is a binary search, adding moves what lies behind.
struct SortedTable<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    /// Ascending, each once.
    private(set) var keys: [Key] = []
    /// Beside ``keys``.
    private(set) var values: [Value] = []

    var count: Int { keys.count }
    var isEmpty: Bool { keys.isEmpty }

    /// Nil removes.
    subscript(key: Key) -> Value? {
        get {
            let index = place(of: key)
            return holds(key, at: index) ? values[index] : nil
        }
        set {
            let index = place(of: key)
            switch (holds(key, at: index), newValue) {
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
        let index = place(of: key)
        if !holds(key, at: index) {
            keys.insert(key, at: index)
            values.insert(initial, at: index)
        }
        change(&values[index])
    }

    mutating func removeAll() {
        keys.removeAll()
        values.removeAll()
    }

    private func holds(_ key: Key, at index: Int) -> Bool {
        index < keys.count && keys[index] == key
    }

    /// Where `key` stands or would stand.
    private func place(of key: Key) -> Int {
        var (low, high) = (0, keys.count)
        while low < high {
            let middle = (low + high) / 2
            if keys[middle] < key { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
