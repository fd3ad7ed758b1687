package import Ground

/// Who is counted, as one node knows it, and this node's part in changing it.
///
/// A set is changed by the votes of a majority of its members for one change, each vote a record in
/// its member's own stream. The change is in force once those are synced there, at whoever has read
/// them or is told. Every vote names what the voter has synced; the new set is settled when a
/// majority of it has all that, and only then may the next change begin.
///
/// Nothing here asks whether anybody is alive; see ``FenceCoordinator``, which owns this.
package struct VoterSetConsensus: Sendable {
    /// What has to outlive a restart beside the records that the log still holds.
    package struct PersistentState: Hashable, Sendable {
        package var configuration: VoterConfiguration?
        /// How often the node has joined a line of sets.
        package var joinCount: UInt64
        /// On the set; until it is settled, on the one before too.
        package var records: [ConsensusRecord]

        package init(standing: VoterConfiguration?, joins: UInt64, records: [ConsensusRecord]) {
            self.configuration = standing
            self.joinCount = joins
            self.records = records
        }
    }

    /// What a node finds out that only the operator can mend.
    package enum Conflict: Hashable, Sendable {
        /// One generation with two sets: members were forgotten on two sides of a split.
        case conflictingVoterSets(VoterSet, VoterSet)
        /// Two clusters that were opened separately, and have both grown, have met.
        case separateClusters(VoterSet, VoterSet)
        /// One number of a stream with two contents.
        case conflictingRecords(StreamPosition)
    }

    let own: NodeID
    /// Nil for a newcomer.
    package internal(set) var configuration: VoterConfiguration?
    /// The line that this node follows by a record that is synced here; before that its standing
    /// moves nothing.
    var joinedLineage: VoterSetLineage?
    /// Joins so far, the one that is not synced yet included.
    var joinCount: UInt64 = 0
    private var pendingLineage: VoterSetLineage?
    package internal(set) var conflict: Conflict?
    /// Contacts from then on are later than the settling of the set before ``standing``'s.
    var jointSince: Instant
    /// When this node learnt of the set.
    var adoptedAt: Instant
    /// When this node learnt that the set is settled.
    var settledAt: Instant?
    var previousSet: VoterSet?
    /// See ``Entry/records``.
    var records: [ConsensusRecord] = []
    /// This node's own highest promise and vote on the set, from before they are synced on.
    package internal(set) var promisedBallot: Ballot?
    package internal(set) var acceptedVote: Vote?
    package internal(set) var proposal: Proposal?
    /// See ``repeatVote(synced:issue:)``.
    package internal(set) var hasRepeatedVote = false
    /// What the others said last.
    private(set) var views = SortedTable<NodeID, VoterSetView>()
    /// What the others have synced, as far as they said; this node itself included.
    private(set) var syncedPositions = SortedTable<NodeID, PositionVector>()

    /// A change that this node tries to bring about.
    package struct Proposal: Hashable, Sendable {
        package var ballot: Ballot
        package var change: VoterSetChange
        package var deadline: Instant
        package var isOperatorOrdered: Bool
    }

    private static let viewsMax = 512
    private static let recordsMax = 4_096

    /// A node that starts, with what it remembers and every record of the count that its log holds,
    /// its own and others', in any order.
    package init(
        own: NodeID, memory: PersistentState?, replaying log: [ConsensusRecord], now: Instant
    ) {
        self.own = own
        jointSince = now
        adoptedAt = now
        if let standing = memory?.configuration {
            adopt(standing, now: now)
            joinedLineage = standing.set.lineage
            joinCount = memory?.joinCount ?? 0
            records = memory?.records ?? []
            restoreOwnVotes()
        }
        // Twice: a record may lie before the one that shows what it is about.
        for record in log + log { apply(record, now: now) }
    }

    package var persistentState: PersistentState {
        PersistentState(standing: configuration, joins: joinCount, records: records)
    }

    /// What has to outlive a restart is the same.
    func hasMemory(of other: VoterSetConsensus) -> Bool {
        configuration == other.configuration && joinCount == other.joinCount
            && records == other.records
    }

    /// This node is one of the counted.
    package var isVoter: Bool { configuration?.set.contains(own) ?? false }

    /// Nobody has ever counted anybody here, and this node alone is the cluster that it opened.
    var isNewCluster: Bool {
        guard let set = configuration?.set, set.generation == 1 else { return false }
        return acceptedVote == nil && !records.contains { $0.vote != nil }
    }

    // MARK: Taking in

    /// What `member` says of the count, and has synced, as of one moment.
    ///
    /// False if there is no room: then what it says proves nothing.
    package mutating func recordView(
        _ view: VoterSetView, synced: [StreamPosition], of member: NodeID, now: Instant
    ) -> Bool {
        guard views[member] != nil || views.count < Self.viewsMax else { return false }
        views[member] = view
        syncedPositions.update(member, or: PositionVector()) { $0.merge(synced) }
        guard let theirs = view.configuration else { return true }
        adoptIfNewer(theirs, isNewCluster: theirs.set.generation == 1 && !view.hasVoted, now: now)
        // Nobody votes on a set that is not settled.
        if view.hasVoted { markSettled(theirs.set, now: now) }
        updateSettled(now: now)
        return true
    }

    package mutating func recordOwnPositions(_ positions: [StreamPosition], now: Instant) {
        syncedPositions.update(own, or: PositionVector()) { $0.merge(positions) }
        updateSettled(now: now)
    }

    /// Nobody names a stream any more.
    mutating func removeStream(_ process: ProcessID) {
        syncedPositions.updateAll { $1.remove(process) }
    }

    /// Members that are neither counted nor connected are remembered no longer.
    mutating func retainViews(of members: Set<NodeID>) {
        for member in views.keys where !members.contains(member) && member != own {
            views[member] = nil
            syncedPositions[member] = nil
        }
    }

    /// A record of the count: another's once it is read, this node's own once it is synced.
    package mutating func apply(_ record: ConsensusRecord, now: Instant) {
        if case .joined(let previous) = record.body {
            return applyJoin(VoterConfiguration(record.base, after: previous), record, now: now)
        }
        // Only its own word moves a node from one line to another.
        guard record.base.lineage == configuration?.set.lineage else { return }
        adoptIfNewer(VoterConfiguration(record.base), isNewCluster: false, now: now)
        markSettled(record.base, now: now)
        retain(record)
        if record.member == own { restoreOwnVotes() }
        tallyVotes(now: now)
    }

    private mutating func applyJoin(
        _ line: VoterConfiguration, _ record: ConsensusRecord, now: Instant
    ) {
        guard record.member == own, record.ballot.round >= joinCount else { return }
        // One that this process did not write is of an earlier one.
        if record.ballot.round > joinCount, configuration?.set.lineage != line.set.lineage {
            adopt(line, now: now)
        }
        joinCount = record.ballot.round
        joinedLineage = line.set.lineage
    }

    private mutating func retain(_ record: ConsensusRecord) {
        guard isRelevant(record), !records.contains(record) else { return }
        if record.isPromise {
            records.removeAll {
                $0.isPromise && $0.member == record.member && $0.ballot < record.ballot
            }
        }
        if records.count >= Self.recordsMax,
            let oldest = records.firstIndex(where: { $0.member != own })
        {
            records.remove(at: oldest)
        }
        records.append(record)
        shareSet(at: records.count - 1)
    }

    /// Of the set there is one copy in memory: records are held against it again and again, and
    /// arrays of one storage are the same without a look at their elements.
    private mutating func shareSet(at place: Int) {
        if let set = configuration?.set, records[place].base == set { records[place].base = set }
    }

    private func isRelevant(_ record: ConsensusRecord) -> Bool {
        record.base == configuration?.set || record.base == configuration?.previous
    }

    mutating func dropOldRecords() {
        records = records.filter(isRelevant)
        for place in records.indices { shareSet(at: place) }
    }

    /// What this node has promised and given on the set, as far as records say.
    mutating func restoreOwnVotes() {
        for record in records where record.member == own && record.base == configuration?.set {
            promisedBallot = max(promisedBallot ?? record.ballot, record.ballot)
            guard let vote = record.vote else { continue }
            if acceptedVote.map({ $0.ballot < vote.ballot }) ?? true { acceptedVote = vote }
        }
    }

    // MARK: The operator's word

    /// Opens a line in the place of this node's, and of every other that it meets: this node alone.
    mutating func recover(now: Instant) {
        guard let line = configuration?.set.lineage, line.recovery < VoterSet.generationMax else {
            return
        }
        conflict = nil
        adopt(VoterConfiguration(VoterSet(foundedBy: own, recovery: line.recovery + 1)), now: now)
    }

    /// Opens a cluster: this node alone.
    mutating func bootstrap(now: Instant) {
        precondition(
            configuration == nil, "opens a cluster in \(String(describing: configuration))")
        adopt(VoterConfiguration(VoterSet(foundedBy: own)), now: now)
    }

    /// The record to be synced before this node follows the line that it has found; once.
    mutating func takeJoinRecord() -> ConsensusRecord? {
        guard let configuration, conflict == nil else { return nil }
        let line = configuration.set.lineage
        guard joinedLineage != line, pendingLineage != line else { return nil }
        pendingLineage = line
        joinCount += 1
        return ConsensusRecord(
            base: configuration.set, member: own, ballot: Ballot(round: joinCount, proposer: own),
            body: .joined(previous: configuration.previous))
    }

    // MARK: What it means

    /// This node follows its set's line by a record that is synced.
    var hasJoined: Bool { joinedLineage != nil && joinedLineage == configuration?.set.lineage }

    /// Nil closes the fence.
    package var quorumRequirement: Fence.QuorumRequirement? {
        guard let configuration, hasJoined, conflict == nil else { return nil }
        let joint = previousSet.map {
            Fence.QuorumRequirement.JointSet(members: $0.members, since: jointSince)
        }
        return Fence.QuorumRequirement(
            voters: configuration.set.members, settledAt: settledAt, joint: joint)
    }

    /// A member has said, or is this node and knows, that `set` has been followed by another.
    func hasSuperseded(_ set: VoterSet, _ member: NodeID) -> Bool {
        let theirs = member == own ? configuration?.set : views[member]?.configuration?.set
        guard let theirs else { return false }
        guard theirs.lineage == set.lineage else {
            return theirs.lineage.recovery > set.lineage.recovery
        }
        return theirs.generation > set.generation
    }

    package func view(isCurrent: Bool) -> VoterSetView {
        VoterSetView(standing: configuration, hasVoted: acceptedVote != nil, isCurrent: isCurrent)
    }
}
