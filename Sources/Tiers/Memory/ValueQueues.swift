/// All entries of a shard, in the order of their values.
///
/// There is one first-in, first-out queue per step of weight / cost.
/// The *gain* of a queue is what its entries are worth above the inflation at which they were
/// queued. The gain is constant within a queue and inflation never falls, so the head of a queue is
/// the least of it, and the least of all is found among the heads. Values wrap around: each due
/// value lies less than 2^63 ahead of ``inflation``, and only that distance is compared.
///
/// Invariant: the heads' due values are not behind ``inflation``.
struct ValueQueues {
    /// No entry.
    static let none = UInt32.max

    /// By id; those of no entry keep their place.
    var entries: [QueuedEntry] = []
    /// The value of the entry popped last, and the gains of those refused since.
    private(set) var inflation: UInt64 = 0

    private var heads: [UInt32]
    private var tails: [UInt32]
    /// The value of each queue's head; meaningless where ``occupied`` has no bit.
    private var headValues: [UInt64]
    private var occupied: InlineArray<3, UInt64> = [0, 0, 0]

    /// Four a doubling of cost / weight, which is below 2^42 in units of 1/512 byte.
    private static let queueCount = 42 * 4
    /// The weight of an entry which was asked for once after its admission, twice it for twice, …;
    /// that of a newcomer is 1.
    private static let hitWeight: UInt64 = 5

    init() {
        heads = Array(repeating: Self.none, count: Self.queueCount)
        tails = heads
        headValues = Array(repeating: 0, count: Self.queueCount)
    }

    /// Queues an entry that is in no queue, by its cost and by how often it was asked for.
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

    /// Takes an entry out of its queue.
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

    /// The queue whose head has the least value, and how far that lies ahead of ``inflation``; nil
    /// if there is no entry.
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

    /// The entry at the head of a queue that is not empty.
    func head(of queue: Int) -> UInt32 { heads[queue] }

    /// Takes the head out of the queue that ``least()`` has named; its value becomes the inflation.
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

    /// What an entry of this cost and frequency is worth above the inflation.
    static func gain(cost: UInt32, frequency: UInt8) -> UInt64 {
        gain(of: queue(cost: cost, frequency: frequency))
    }

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

    /// The queue for cost / weight: its logarithm to base 2 in quarters, linear within an octave.
    private static func queue(cost: UInt32, frequency: UInt8) -> Int {
        let weight = frequency == 0 ? 1 : hitWeight * UInt64(frequency)
        let ratio = (UInt64(max(cost, 1)) << 9) / weight
        let octave = 63 - ratio.leadingZeroBitCount
        let quarter = octave >= 2 ? ratio >> UInt64(octave - 2) & 3 : 0
        return octave * 4 + Int(quarter)
    }

    /// 2^50 / (cost / weight), in the middle of the step: 2^octave × (9 + 2 × quarter) / 8.
    private static func gain(of queue: Int) -> UInt64 {
        ((1 << 53) / UInt64(9 + 2 * (queue & 3))) >> UInt64(queue >> 2)
    }
}

/// What the queues keep of one entry: 32 bytes.
struct QueuedEntry {
    var hash: UInt64
    /// ``ValueQueues/inflation`` at the moment at which the entry was queued.
    var queuedAt: UInt64 = 0
    /// In bytes.
    var cost: UInt32
    /// Neighbours in the queue; ``ValueQueues/none`` at its ends.
    var previous = ValueQueues.none
    var next = ValueQueues.none
    var queue: UInt8 = 0
    /// The frequency by which ``queue`` was chosen.
    var frequency: UInt8 = 0

    init(hash: UInt64, cost: UInt32) {
        self.hash = hash
        self.cost = cost
    }
}
