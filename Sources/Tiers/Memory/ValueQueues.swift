/// The entries of a shard in the order of their values, in one first-in, first-out queue per step
/// of weight / cost.
///
/// The *gain* of a queue is the value of its entries above the inflation at which they were queued.
/// It is constant within a queue and inflation never falls, so the head of a queue has its least
/// value, and the least of all values is found among the heads. Values wrap around: each value is
/// less than 2^63 ahead of ``inflation``, and only this distance is compared.
///
/// Invariant: the values of the heads are not behind ``inflation``.
struct ValueQueues {
    /// The value of a link that points to no entry.
    static let none = UInt32.max

    /// The entries by id; free ids keep their element.
    var entries: [QueuedEntry] = []
    /// The value of the last entry popped, plus the gains of entries rejected since.
    private(set) var inflation: UInt64 = 0

    private var heads: [UInt32]
    private var tails: [UInt32]
    /// The value of each queue's head; meaningless where ``occupied`` has no bit.
    private var headValues: [UInt64]
    private var occupied: InlineArray<3, UInt64> = [0, 0, 0]

    /// Four per doubling of cost / weight, which is below 2^42 in units of 1/512 byte.
    private static let queueCount = 42 * 4
    /// The weight of an entry per request after its admission; that of a new entry is 1.
    private static let hitWeight: UInt64 = 5

    init() {
        heads = Array(repeating: Self.none, count: Self.queueCount)
        tails = heads
        headValues = Array(repeating: 0, count: Self.queueCount)
    }

    /// Queues an entry that is in no queue, by its cost and frequency.
    mutating func append(_ entry: UInt32, frequency: UInt8) {
        let queue = Self.queue(cost: entries[Int(entry)].cost, frequency: frequency)
        let tail = tails[queue]
        entries[Int(entry)].queuedAt = inflation
        entries[Int(entry)].previous = tail
        entries[Int(entry)].next = Self.none
        entries[Int(entry)].queue = UInt8(queue)
        entries[Int(entry)].frequency = frequency
        tails[queue] = entry
        guard tail == Self.none else {
            entries[Int(tail)].next = entry
            return
        }
        setHead(of: queue, to: entry)
    }

    /// Removes an entry from its queue.
    mutating func unlink(_ entry: UInt32) {
        let facts = entries[Int(entry)]
        let queue = Int(facts.queue)
        if facts.next == Self.none {
            tails[queue] = facts.previous
        } else {
            entries[Int(facts.next)].previous = facts.previous
        }
        if facts.previous == Self.none {
            setHead(of: queue, to: facts.next)
        } else {
            entries[Int(facts.previous)].next = facts.next
        }
    }

    /// Returns the queue whose head has the least value, and the distance of that value from
    /// ``inflation``; `nil` if there are no entries.
    func least() -> (queue: Int, distance: UInt64)? {
        var least: Int?
        var leastDistance = UInt64.max
        for word in 0..<3 {
            var bits = occupied[word]
            while bits != 0 {
                let queue = word * 64 + bits.trailingZeroBitCount
                bits &= bits &- 1
                let distance = headValues[queue] &- inflation
                guard distance < leastDistance else { continue }
                least = queue
                leastDistance = distance
            }
        }
        return least.map { ($0, leastDistance) }
    }

    /// Returns the head of a queue that is not empty.
    func head(of queue: Int) -> UInt32 { heads[queue] }

    /// Removes the head of the queue that ``least()`` has returned; its value becomes the
    /// inflation.
    mutating func popHead(of queue: Int) {
        inflation = headValues[queue]
        unlink(heads[queue])
    }

    /// Raises the inflation.
    ///
    /// - Precondition: by less than the distance of the ``least()``.
    mutating func raiseInflation(by gain: UInt64) {
        inflation &+= gain
    }

    /// Returns the value above inflation of an entry with this cost and frequency.
    static func gain(cost: UInt32, frequency: UInt8) -> UInt64 {
        gain(of: queue(cost: cost, frequency: frequency))
    }

    /// Sets the head of a queue and its value; ``none`` marks the queue as empty.
    private mutating func setHead(of queue: Int, to entry: UInt32) {
        heads[queue] = entry
        let bit: UInt64 = 1 << UInt64(queue & 63)
        guard entry != Self.none else {
            occupied[queue >> 6] &= ~bit
            return
        }
        occupied[queue >> 6] |= bit
        headValues[queue] = entries[Int(entry)].queuedAt &+ Self.gain(of: queue)
    }

    /// Returns the queue for cost / weight: its binary logarithm in quarters, linear within an
    /// octave.
    private static func queue(cost: UInt32, frequency: UInt8) -> Int {
        let weight = frequency == 0 ? 1 : hitWeight * UInt64(frequency)
        let ratio = (UInt64(max(cost, 1)) << 9) / weight
        let octave = 63 - ratio.leadingZeroBitCount
        let quarter = octave >= 2 ? ratio >> UInt64(octave - 2) & 3 : 0
        return octave * 4 + Int(quarter)
    }

    /// Returns 2^50 / (cost / weight) at the middle of the step: 2^octave × (9 + 2 × quarter) / 8.
    private static func gain(of queue: Int) -> UInt64 {
        ((1 << 53) / UInt64(9 + 2 * (queue & 3))) >> UInt64(queue >> 2)
    }
}

/// The queue data of one entry: 32 bytes.
struct QueuedEntry {
    var hash: UInt64
    /// The ``ValueQueues/inflation`` at the time the entry was queued.
    var queuedAt: UInt64 = 0
    /// The cost in bytes.
    var cost: UInt32
    /// The entry before this one in the queue; ``ValueQueues/none`` for the head.
    var previous = ValueQueues.none
    /// The entry after this one in the queue, or the next free id; ``ValueQueues/none`` for the
    /// last.
    var next = ValueQueues.none
    /// The number of the entry's queue; meaningless while it is in none.
    var queue: UInt8 = 0
    /// The frequency for which ``queue`` was chosen.
    var frequency: UInt8 = 0

    init(hash: UInt64, cost: UInt32) {
        self.hash = hash
        self.cost = cost
    }
}
