import Cluster
import Ground

/// What an observer of every disk knows: which sets were decided, and which purges are durable.
struct FenceTruth {
    /// The decided sets, from the opener's on.
    private(set) var line: [CountedSet] = []
    /// When each purge was first synced at a majority of the newest decided set, in that order.
    private(set) var durable: [(purge: Int, at: Instant)] = []
    private var votes: [CountRecord] = []
    /// Of purges that are not durable yet.
    private var holders: [Int: Set<NodeID>] = [:]
    private var isDurable: Set<Int> = []
    private(set) var decidedForgets = 0

    /// `node` has synced `content`; if it wrote it itself, `isOwn`.
    mutating func synced(
        _ content: WorldRecord.Content, at node: NodeID, isOwn: Bool, now: Instant
    ) {
        switch content {
        case .purge(let purge):
            guard !isDurable.contains(purge) else { break }
            holders[purge, default: []].insert(node)
        case .count(let record):
            guard isOwn else { break }
            if case .joined = record.body, line.isEmpty { line = [record.base] }
            if case .vote = record.body { votes.append(record) }
        }
        decide()
        weigh(now)
    }

    private mutating func decide() {
        guard let set = line.last else { return }
        let cast = votes.filter { $0.base == set }
        for ballot in Set(cast.map(\.ballot)).sorted() {
            let same = cast.filter { $0.ballot == ballot }
            guard set.isMajority(same.map(\.member), without: ballot.without),
                case .vote(let change, _)? = same.first?.body, let next = set.changed(by: change)
            else { continue }
            if case .forget = change { decidedForgets += 1 }
            line.append(next)
            return decide()
        }
    }

    private mutating func weigh(_ now: Instant) {
        guard let set = line.last else { return }
        for purge in holders.keys.sorted() {
            guard let nodes = holders[purge], set.isMajority(Array(nodes)) else { continue }
            durable.append((purge, now))
            holders[purge] = nil
            isDurable.insert(purge)
        }
    }
}

/// One record of the world's log.
struct WorldRecord: Hashable {
    enum Content: Hashable {
        case purge(Int)
        case count(CountRecord)
    }

    var process: ProcessID
    var number: UInt64
    var content: Content
}
