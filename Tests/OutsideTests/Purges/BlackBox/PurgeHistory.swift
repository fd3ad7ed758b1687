/// What a client saw of purges and reads, and what follows from it: a value, whose times are
/// seconds on the client's clock.
struct PurgeHistory {
    /// A purge that was answered.
    struct Purge {
        let key: Int
        /// What the origin had when it was asked for.
        let version: Int
        /// When the receipt was there that said that all have it; nil if it said something else.
        let confirmedAt: Double?
        /// From when on no node serves what it covers, confirmed or not; nil without a promise.
        let boundedAt: Double?
    }

    /// A whole answer with a version of a key.
    struct Read {
        let key: Int
        let version: Int
        let node: Int
        let askedAt: Double
    }

    private(set) var purges: [Purge] = []
    private(set) var reads = 0
    /// Reads by the promise that was looked at: after a receipt of all, after a bound.
    private(set) var held = (confirmed: 0, bounded: 0)
    /// Nodes that stood still, and until when since when.
    private var standstills: [(node: Int, from: Double, to: Double)] = []

    mutating func add(_ purge: Purge) { purges.append(purge) }

    /// A node did nothing between these times.
    mutating func stood(_ node: Int, from: Double, to: Double) {
        standstills.append((node, from, to))
    }

    /// Takes in a read; the promise that it breaks, or nil.
    mutating func add(_ read: Read) -> String? {
        reads += 1
        // What is asked of a node that stands still is decided when it goes on.
        let stood = standstills.last {
            $0.node == read.node && $0.from < read.askedAt && read.askedAt < $0.to
        }
        let decidedAfter = stood?.to ?? read.askedAt
        for purge in purges.reversed() where purge.key == read.key {
            let isConfirmed = purge.confirmedAt.map { $0 < decidedAfter } ?? false
            let isBounded = purge.boundedAt.map { $0 < decidedAfter } ?? false
            guard isConfirmed || isBounded else { continue }
            if isConfirmed { held.confirmed += 1 } else { held.bounded += 1 }
            guard read.version < purge.version else { return nil }
            let promise = isConfirmed ? "all had confirmed" : "the bound had passed"
            return "node \(read.node) gave version \(read.version) of key \(read.key), asked at "
                + "\(read.askedAt), decided after \(decidedAfter): \(promise) of a purge with "
                + "version \(purge.version)"
        }
        return nil
    }
}
