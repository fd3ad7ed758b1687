import Cluster
import Ground

/// What an observer of every disk and of the origin knows, and holds each read against.
struct InvalidationTruth: Sendable {
    struct PurgeFacts: Sendable {
        var isHard: Bool
        /// By key.
        var covers: [Bool]
        var issuedAt: Instant
        var name: RecordName
        /// The line of sets in which it became durable; nil before.
        var line: CountedLine?
        var durableAt: Instant?
        /// A receipt that somebody gave said then that all have confirmed.
        var confirmedAt: Instant?
        /// Runs of which it had to know.
        var confirmers: Set<ProcessID> = []
        var holders: Set<NodeID> = []
    }

    let fence: Interval
    /// When each version of each key came to be at the origin.
    private(set) var versions: [[Instant]]
    private(set) var purges: [PurgeFacts] = []
    private(set) var numbers: [RecordName: Int] = [:]
    /// In the order in which they became so.
    private(set) var durable: [Int] = []
    /// Of purges that are not durable yet.
    private var pending: [Int] = []
    /// The sets that were decided.
    private(set) var line: [CountedSet] = []
    private var votes: [CountRecord] = []

    init(keys: Int, fence: Interval, line: [CountedSet]) {
        self.fence = fence
        self.line = line
        versions = Array(repeating: [.zero], count: keys)
    }

    // MARK: The origin

    func version(of key: Int) -> Int { versions[key].count - 1 }

    mutating func edit(_ key: Int, at now: Instant) { versions[key].append(now) }

    // MARK: Purges

    mutating func issued(_ purge: PurgeFacts) {
        numbers[purge.name] = purges.count
        pending.append(purges.count)
        purges.append(purge)
    }

    /// A receipt says that all have confirmed; `known` are the runs of which it has to know.
    mutating func confirmed(_ purge: Int, known: Set<ProcessID>, at now: Instant) {
        guard purges[purge].confirmedAt == nil else { return }
        purges[purge].confirmedAt = now
        purges[purge].confirmers = known
    }

    /// A receipt promises a bound that is counted from then on.
    mutating func reported(_ purge: Int, majorityAt: Instant) {
        let durableAt = purges[purge].durableAt ?? majorityAt
        purges[purge].durableAt = min(durableAt, majorityAt)
    }

    /// `node` has synced the record, which it wrote itself if `isOwn`; from now on it names also
    /// `named`, none of which lies behind a gap.
    mutating func synced(
        _ record: InvalidationRecord, _ named: [RecordName], at node: NodeID, isOwn: Bool,
        now: Instant
    ) {
        for number in named.compactMap({ numbers[$0] }) { purges[number].holders.insert(node) }
        defer { weigh(now) }
        guard isOwn, case .count(let count) = record.invalidation.action else { return }
        if case .joined = count.body { joined(count.base) }
        if case .vote = count.body, count.base == line.last { votes.append(count) }
        decide()
    }

    /// A cluster is opened, or the operator has the count begin anew.
    private mutating func joined(_ set: CountedSet) {
        guard line.last.map({ $0.line.recovery < set.line.recovery }) ?? true else { return }
        line = [set]
        votes = []
    }

    /// `node` has synced that everything up to the position counts as had: it lacks nothing of it,
    /// for it asks the origin of everything that is older.
    mutating func synced(
        _ floor: StreamPosition, _ named: [RecordName], at node: NodeID, now: Instant
    ) {
        for number in named.compactMap({ numbers[$0] }) { purges[number].holders.insert(node) }
        for number in pending {
            let name = purges[number].name
            guard name.stream == floor.process, name.number <= floor.count else { continue }
            purges[number].holders.insert(node)
        }
        weigh(now)
    }

    /// It was counted, and is not any more.
    func isForgotten(_ node: NodeID) -> Bool {
        !(line.last?.contains(node) ?? false) && line.contains { $0.contains(node) }
    }

    /// It is one of the sets that were decided; or of another line, which may be that of a cluster
    /// whose nodes have all lost their directories.
    func isDecided(_ set: CountedSet) -> Bool {
        guard let first = line.first, set.line == first.line else { return true }
        return line.contains(set) || set.generation < first.generation
    }

    private mutating func decide() {
        guard let set = line.last else { return }
        let cast = votes.filter { $0.base == set }
        for ballot in Set(cast.map(\.ballot)).sorted() {
            let same = cast.filter { $0.ballot == ballot }
            guard set.isMajority(same.map(\.member), without: ballot.without),
                case .vote(let change, _)? = same.first?.body, let next = set.changed(by: change)
            else { continue }
            line.append(next)
            votes.removeAll { $0.base == set }
            return decide()
        }
    }

    private mutating func weigh(_ now: Instant) {
        guard let set = line.last else { return }
        pending.removeAll { number in
            guard set.isMajority(Array(purges[number].holders)) else { return false }
            purges[number].durableAt = min(purges[number].durableAt ?? now, now)
            purges[number].holders = []
            purges[number].line = set.line
            durable.append(number)
            return true
        }
    }

    // MARK: Reads

    /// Who is held against which promise.
    struct Reader {
        var process: ProcessID
        var applied: Set<Int>
        /// It takes itself for current, or counts: what all confirmed, it did.
        var isBound: Bool
    }

    /// The promise that a read breaks; nil if none.
    func fault(
        key: Int, version: Int, isFresh: Bool, by reader: Reader, at now: Instant
    ) -> String? {
        guard version + 1 < versions[key].count else { return nil }
        let end = versions[key][version + 1]
        for (number, purge) in purges.enumerated().reversed() {
            guard purge.issuedAt >= end else { return nil }
            guard purge.covers[key], purge.isHard || isFresh else { continue }
            let kind = purge.isHard ? "hard" : "soft"
            if reader.applied.contains(number) {
                return "older than a \(kind) purge that it had applied (\(number))"
            }
            if let confirmed = purge.confirmedAt, confirmed <= now,
                reader.isBound || purge.confirmers.contains(reader.process)
            {
                return "older than a \(kind) purge that all had confirmed (\(number))"
            }
            if let durable = purge.durableAt, durable + fence <= now {
                return "older than a \(kind) purge durable for a fence (\(number))"
            }
        }
        return nil
    }
}
