/// The keys that come most often among all that come, in bounded room (Metwally, Agrawal, El
/// Abbadi: "Efficient computation of frequent and top-k elements in data streams", 2005).
///
/// A key that is not counted takes the place of the one that is counted least, and its count: so a
/// count is too large by at most the least one, and no key that came more often is missing.
package struct SpaceSaving: Sendable {
    package struct Counter: Hashable, Sendable {
        package var key: UInt64
        package var count: UInt64
        /// At most so much of the count is others'.
        package var error: UInt64
    }

    /// In no order.
    package private(set) var counters: [Counter] = []
    private let countersMax: Int

    package init(countersMax: Int) {
        self.countersMax = countersMax
        counters.reserveCapacity(countersMax)
    }

    /// The key has come so often; takes no memory.
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

    /// What is long ago counts less: halves every count.
    package mutating func decay() {
        for place in counters.indices {
            counters[place].count /= 2
            counters[place].error /= 2
        }
        counters.removeAll { $0.count == 0 }
    }
}
