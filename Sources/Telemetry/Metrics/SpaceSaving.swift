/// A bounded list of the most frequent keys in a stream (Metwally, Agrawal, El Abbadi: "Efficient
/// computation of frequent and top-k elements in data streams", 2005).
///
/// A key that is not in the list replaces the one with the least count and takes over its count. So
/// a count is too large by at most the least count, and no key with a higher frequency is missing.
package struct SpaceSaving: Sendable {
    /// The count of one key.
    package struct Counter: Hashable, Sendable {
        /// The key.
        package var key: UInt64
        /// The upper bound of the key's frequency.
        package var count: UInt64
        /// The part of ``count`` that may belong to other keys.
        package var error: UInt64
    }

    /// The counters, unordered.
    package private(set) var counters: [Counter] = []
    private let countersMax: Int

    /// Creates an empty list of at most `countersMax` keys.
    package init(countersMax: Int) {
        self.countersMax = countersMax
        counters.reserveCapacity(countersMax)
    }

    /// Counts `times` occurrences of a key; never allocates memory.
    package mutating func add(_ key: UInt64, times: UInt64 = 1) {
        var least = 0
        for place in counters.indices {
            if counters[place].key == key {
                counters[place].count &+= times
                return
            }
            if counters[place].count < counters[least].count { least = place }
        }
        guard counters.count == countersMax else {
            return counters.append(Counter(key: key, count: times, error: 0))
        }
        let former = counters[least].count
        counters[least] = Counter(key: key, count: former &+ times, error: former)
    }

    /// Halves every count, so that older occurrences weigh less, and removes counts of 0.
    package mutating func decay() {
        for place in counters.indices {
            counters[place].count /= 2
            counters[place].error /= 2
        }
        counters.removeAll { $0.count == 0 }
    }
}
