import Cluster
import Ground

/// The knowledge of an observer of every disk and of the origin, against which each read is
/// checked.
struct InvalidationOracle: Sendable {
    /// The facts about one purge.
    struct PurgeFacts: Sendable {
        var isHard: Bool
        /// True for the keys that the purge covers, by key.
        var covers: [Bool]
        var issuedAt: Instant
        /// The id of the purge's record.
        var name: RecordID
        /// The lineage of voter sets in which the purge became durable; `nil` before.
        var line: VoterSetLineage?
        /// When the purge became durable, or a receipt first reported a majority; `nil` before.
        var durableAt: Instant?
        /// When a receipt first reported that all members have confirmed; `nil` before.
        var confirmedAt: Instant?
        /// The processes that the receipt had to consider.
        var confirmers: Set<ProcessID> = []
        /// The nodes that have synced the purge, until it is durable.
        var holders: Set<NodeID> = []
    }

    /// The bound after which a durable purge must be effective everywhere.
    let fence: Interval
    /// The times at which each version of each key appeared at the origin.
    private(set) var versions: [[Instant]]
    /// All purges, in the order of their issue; the index is the number of a purge.
    private(set) var purges: [PurgeFacts] = []
    /// The numbers of the purges, by record.
    private(set) var purgeNumbers: [RecordID: Int] = [:]
    /// The durable purges, in the order in which they became durable.
    private(set) var durablePurges: [Int] = []
    /// The purges that are not durable yet.
    private var pending: [Int] = []
    /// The voter sets that were decided.
    private(set) var decidedSets: [VoterSet] = []
    /// The synced votes for a successor of the last decided set.
    private var votes: [ConsensusRecord] = []

    init(keys: Int, fence: Interval, line: [VoterSet]) {
        self.fence = fence
        self.decidedSets = line
        versions = Array(repeating: [.zero], count: keys)
    }

    // MARK: The origin

    /// Returns the present version of an object at the origin.
    func version(of key: Int) -> Int { versions[key].count - 1 }

    /// Adds a version of an object at the origin.
    mutating func update(_ key: Int, at now: Instant) { versions[key].append(now) }

    // MARK: Purges

    /// Records a purge that was issued, and returns its number.
    mutating func issued(_ purge: PurgeFacts) -> Int {
        let number = purges.count
        purgeNumbers[purge.name] = number
        pending.append(number)
        purges.append(purge)
        return number
    }

    /// Records a receipt that reports confirmation by all; `known` are the processes it has to
    /// consider.
    mutating func recordConfirmed(_ purge: Int, known: Set<ProcessID>, at now: Instant) {
        guard purges[purge].confirmedAt == nil else { return }
        purges[purge].confirmedAt = now
        purges[purge].confirmers = known
    }

    /// Records a receipt that reports a majority; the bound is counted from the earliest of these
    /// times.
    mutating func recordReportedMajority(_ purge: Int, majorityAt: Instant) {
        let durableAt = purges[purge].durableAt ?? majorityAt
        purges[purge].durableAt = min(durableAt, majorityAt)
    }

    /// Records that `node` has synced `record`, which is its own if `isOwn`.
    ///
    /// From now on the node lists the records in `named` to others too, none of which follows a
    /// gap.
    mutating func recordSynced(
        _ record: InvalidationRecord, _ named: [RecordID], at node: NodeID, isOwn: Bool,
        now: Instant
    ) {
        for number in named.compactMap({ purgeNumbers[$0] }) { purges[number].holders.insert(node) }
        defer { updateDurable(now) }
        guard isOwn, case .consensus(let count) = record.invalidation.action else { return }
        if case .joined = count.body { lineageOpened(count.base) }
        if case .vote = count.body, count.base == decidedSets.last { votes.append(count) }
        tallyVotes()
    }

    /// Restarts the voter sets after a bootstrap or a recovery by the operator.
    private mutating func lineageOpened(_ set: VoterSet) {
        guard decidedSets.last.map({ $0.lineage.recovery < set.lineage.recovery }) ?? true else {
            return
        }
        decidedSets = [set]
        votes = []
    }

    /// Records that `node` has synced a floor.
    ///
    /// Everything up to the floor counts as held, since the node revalidates all older entries.
    mutating func recordSynced(
        _ floor: StreamPosition, _ named: [RecordID], at node: NodeID, now: Instant
    ) {
        for number in named.compactMap({ purgeNumbers[$0] }) { purges[number].holders.insert(node) }
        for number in pending {
            let name = purges[number].name
            guard name.stream == floor.process, name.number <= floor.count else { continue }
            purges[number].holders.insert(node)
        }
        updateDurable(now)
    }

    /// Returns true if the node was a voter and no longer is.
    func isFormerVoter(_ node: NodeID) -> Bool {
        !(decidedSets.last?.contains(node) ?? false) && decidedSets.contains { $0.contains(node) }
    }

    /// Returns true if `set` was decided, or belongs to another lineage.
    ///
    /// Another lineage may be that of a cluster whose nodes have all lost their directories.
    func isDecided(_ set: VoterSet) -> Bool {
        guard let first = decidedSets.first, set.lineage == first.lineage else { return true }
        return decidedSets.contains(set) || set.generation < first.generation
    }

    /// Adds the voter sets for which a majority of the last one has voted.
    private mutating func tallyVotes() {
        guard let set = decidedSets.last else { return }
        let cast = votes.filter { $0.base == set }
        for ballot in Set(cast.map(\.ballot)).sorted() {
            let same = cast.filter { $0.ballot == ballot }
            guard set.isMajority(same.map(\.member), excluding: ballot.excluded),
                case .vote(let change, _)? = same.first?.body, let next = set.applying(by: change)
            else { continue }
            decidedSets.append(next)
            votes.removeAll { $0.base == set }
            return tallyVotes()
        }
    }

    /// Records the purges as durable that a majority of the decided voter set holds.
    private mutating func updateDurable(_ now: Instant) {
        guard let set = decidedSets.last else { return }
        pending.removeAll { number in
            guard set.isMajority(Array(purges[number].holders)) else { return false }
            purges[number].durableAt = min(purges[number].durableAt ?? now, now)
            purges[number].holders = []
            purges[number].line = set.lineage
            durablePurges.append(number)
            return true
        }
    }

    // MARK: Reads

    /// The state of a reading node against which the guarantees are checked.
    struct ReadContext {
        var process: ProcessID
        /// The numbers of the purges that the process has applied.
        var applied: Set<Int>
        /// True if the node counts as current, or is a voter: it must have what all have confirmed.
        var isBound: Bool
    }

    /// Returns the guarantee that is broken by serving `version` of `key`, as fresh if `isFresh`;
    /// `nil` if none is.
    func violation(
        key: Int, version: Int, isFresh: Bool, by reader: ReadContext, at now: Instant
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

/// A checker of one process's replication state against the knowledge of the oracle.
struct ReplicationChecker: Sendable {
    /// The fence window last published to the shell.
    var window = FenceWindow(closedAt: .zero)
    /// The positions claimed as synced that were found on disk.
    private var proven = PositionVector()
    /// The number of durable purges that were found to be known, in the order in which they became
    /// durable.
    private var checkedCount = 0
    /// The lineage of voter sets in which they were durable.
    private var lineage: VoterSetLineage?

    /// Returns the rule that the replication of `node` breaks after an event; `nil` if none.
    mutating func violation(
        of node: SimulatedReplica, against truth: InvalidationOracle, now: Instant
    ) -> String? {
        guard let exchange = node.replication else { return nil }
        if window != exchange.window { return "a window that nobody was told of" }
        if let set = exchange.voterConfiguration?.set, !truth.isDecided(set) {
            return "follows \(set), which was not decided"
        }
        if lineage != exchange.voterConfiguration?.set.lineage {
            (lineage, checkedCount) = (exchange.voterConfiguration?.set.lineage, 0)
        }
        guard window.isCurrent(at: node.clock.reading(at: now)) else { return nil }
        while checkedCount < truth.durablePurges.count {
            let purge = truth.purges[truth.durablePurges[checkedCount]]
            guard let durableAt = purge.durableAt, durableAt + truth.fence <= now else { break }
            let isKnown =
                node.applied.contains(truth.durablePurges[checkedCount])
                || node.validated.covers(purge.name.position)
            guard isKnown || lineage != purge.line else {
                return "current without purge \(truth.durablePurges[checkedCount])"
            }
            checkedCount += 1
        }
        return nil
    }

    /// Returns a claim of a synced position that the disk does not support; `nil` if none.
    ///
    /// To be called at a start and after each synced batch.
    mutating func unsyncedClaim(in node: SimulatedReplica) -> String? {
        let storage = node.storage
        let kept = PositionVector(storage.floors + storage.retired)
        for position in node.replication?.syncedPositions ?? [] where !proven.covers(position) {
            for number in (proven.count(of: position.process) + 1)...position.count {
                let name = RecordID(stream: position.process, number: number)
                guard storage.synced.contains(name) || kept.covers(name.position) else {
                    return "\(position) covers what is not synced"
                }
            }
            proven.merge([position])
        }
        return nil
    }
}
