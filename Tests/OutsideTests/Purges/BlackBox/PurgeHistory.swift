/// The purges and reads that clients saw, and a check of the guarantees.
///
/// A value, whose times are seconds on the clients' clock.
struct PurgeHistory {
    /// A purge with its response.
    struct Purge {
        let key: Int
        /// The origin's version when the purge was requested.
        let version: Int
        /// The time of the receipt that all nodes have confirmed; `nil` if it reports something
        /// else.
        let confirmedAt: Double?
        /// The time from which no node serves what the purge covers, confirmed or not; `nil` if
        /// unknown.
        let boundedAt: Double?
    }

    /// A complete response with a version of a key.
    struct Read {
        let key: Int
        let version: Int
        let node: Int
        let askedAt: Double
    }

    private(set) var purges: [Purge] = []
    private(set) var reads = 0
    /// The number of checked reads by guarantee: after a receipt of all nodes, after a bound.
    private(set) var held = (confirmed: 0, bounded: 0)
    /// The periods in which nodes were suspended.
    private var standstills: [(node: Int, from: Double, to: Double)] = []

    mutating func add(_ purge: Purge) { purges.append(purge) }

    /// Records that a node was suspended between these times.
    mutating func stood(_ node: Int, from: Double, to: Double) {
        standstills.append((node, from, to))
    }

    /// Records a read, and returns the violation of a guarantee, or `nil`.
    mutating func add(_ read: Read) -> String? {
        reads += 1
        // A request to a suspended node is decided when the node resumes.
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
