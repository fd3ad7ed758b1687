/// LRU, or FIFO if hits do not promote: the yardsticks.
///
/// Keys are 0..<`keys`.
package struct LRUEvictionPolicy: EvictionPolicy {
    private let capacityBytes: Int
    private let promotes: Bool
    private var bytes = 0
    private var sizes: [Int]
    /// Neighbours in a ring through `root`; a key which is not cached is its own neighbour.
    private var newer: [Int]
    private var older: [Int]
    private let root: Int

    package init(capacityBytes: Int, keys: Int, promotes: Bool) {
        self.capacityBytes = capacityBytes
        self.promotes = promotes
        sizes = Array(repeating: 0, count: keys)
        newer = Array(0...keys)
        older = newer
        root = keys
    }

    package mutating func request(_ key: UInt32, size: Int) -> Bool {
        let key = Int(key)
        if newer[key] != key {
            guard promotes else { return true }
            unlink(key)
            push(key)
            return true
        }
        guard size <= capacityBytes else { return false }
        while bytes + size > capacityBytes {
            let victim = newer[root]
            unlink(victim)
            bytes -= sizes[victim]
        }
        sizes[key] = size
        bytes += size
        push(key)
        return false
    }

    private mutating func push(_ key: Int) {
        let newest = older[root]
        newer[newest] = key
        older[key] = newest
        newer[key] = root
        older[root] = key
    }

    private mutating func unlink(_ key: Int) {
        newer[older[key]] = newer[key]
        older[newer[key]] = older[key]
        newer[key] = key
        older[key] = key
    }
}
