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
