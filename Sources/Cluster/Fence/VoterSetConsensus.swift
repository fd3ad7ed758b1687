package import Ground

/// The voter set as one node knows it, and this node's part in changing it (Design, "The voter
/// set").
///
/// A set is changed when a majority of its members votes for one change, each vote a record in the
/// voter's own stream. The change is in force once these votes are synced there, for any node that
/// has read them or learns of the result. Every vote names what the voter has synced. The new set
/// is settled when a majority of it has all of that, and only then may the next change begin.
///
/// This type does not consider liveness; see ``FenceCoordinator``, which owns it.
package struct VoterSetConsensus: Sendable {
    /// The state that must survive a restart, beside the records that the log still holds.
    package struct PersistentState: Hashable, Sendable {
        /// The followed configuration; `nil` for a newcomer.
        package var configuration: VoterConfiguration?
        /// The number of times that the node has joined a lineage.
        package var joinCount: UInt64
        /// The records on the current set and, until that is settled, on the one before.
        package var records: [ConsensusRecord]

        /// Creates a state from its parts.
        package init(
            configuration: VoterConfiguration?, joinCount: UInt64, records: [ConsensusRecord]
        ) {
            self.configuration = configuration
            self.joinCount = joinCount
            self.records = records
        }
    }

    /// A contradiction that only the operator can resolve.
    package enum Conflict: Hashable, Sendable {
        /// One generation has two sets: members were removed on both sides of a partition.
        case conflictingVoterSets(VoterSet, VoterSet)
        /// Two clusters that were opened separately, and have both grown, have met.
        case separateClusters(VoterSet, VoterSet)
        /// One number of a stream has two contents.
        case conflictingRecords(StreamPosition)
    }

    let own: NodeID
    /// The followed configuration; `nil` for a newcomer.
    package internal(set) var configuration: VoterConfiguration?
    /// The lineage that this node follows by a synced record; until then ``configuration`` has no
    /// effect.
    var joinedLineage: VoterSetLineage?
    /// The number of joins, including one that is not synced yet.
    var joinCount: UInt64 = 0
    private var pendingLineage: VoterSetLineage?
    /// The contradiction that was found, if any; it closes the fence.
    package internal(set) var conflict: Conflict?
    /// The time from which contacts are later than the settling of the set before the current one.
    var jointSince: Instant
    /// When this node learned of the set.
    var adoptedAt: Instant
    /// When this node learned that the set is settled.
    var settledAt: Instant?
    /// The set before the current one, as far as known; unlike that of ``configuration``, it stays
    /// after the set is settled.
    var previousSet: VoterSet?
    /// The consensus records that still matter; see ``PersistentState/records``.
    var records: [ConsensusRecord] = []
    /// This node's highest promise on the set, including one that is not synced yet.
    package internal(set) var promisedBallot: Ballot?
    /// This node's highest vote on the set, including one that is not synced yet.
    package internal(set) var acceptedVote: Vote?
    /// This node's proposal in progress, if any.
    package internal(set) var proposal: Proposal?
    /// True if the vote was repeated; see ``repeatVote(synced:records:)``.
    package internal(set) var hasRepeatedVote = false
    /// The last view of each other member.
    private(set) var views = SortedTable<NodeID, VoterSetView>()
    /// The synced positions of all members as last reported, including this node.
    private(set) var syncedPositions = SortedTable<NodeID, PositionVector>()

    /// A change that this node proposes.
    package struct Proposal: Hashable, Sendable {
        /// The ballot of the attempt.
        package var ballot: Ballot
        /// The proposed change.
        package var change: VoterSetChange
        /// The time at which the attempt expires.
        package var deadline: Instant
        /// True if the operator ordered the change with members excluded.
        package var isOperatorOrdered: Bool
    }

    private static let viewsMax = 512
    private static let recordsMax = 4_096

    /// Creates the state of a node that starts.
    ///
    /// - Parameters:
    ///   - own: This node.
    ///   - persistentState: The persisted state, or `nil` if there is none.
    ///   - log: The consensus records of all members that the log holds, in any order.
    ///   - now: The current time.
    package init(
        own: NodeID, persistentState: PersistentState?, replaying log: [ConsensusRecord],
        now: Instant
    ) {
        self.own = own
        jointSince = now
        adoptedAt = now
        if let persistentState, let configuration = persistentState.configuration {
            adopt(configuration, now: now)
            joinedLineage = configuration.set.lineage
            joinCount = persistentState.joinCount
            records = persistentState.records
            restoreOwnVotes()
        }
        // Twice: a record may lie before the one that shows which set it is about.
        for record in log + log { apply(record, now: now) }
    }

    /// The state that must survive a restart, as of now.
    package var persistentState: PersistentState {
        PersistentState(configuration: configuration, joinCount: joinCount, records: records)
    }

    /// Returns true if the persistent state equals that of `other`.
    func hasSamePersistentState(as other: VoterSetConsensus) -> Bool {
        configuration == other.configuration && joinCount == other.joinCount
            && records == other.records
    }

    /// True if this node is a member of its voter set.
    package var isVoter: Bool { configuration?.set.contains(own) ?? false }

    /// True if this node alone is the cluster that it opened, and no vote was cast.
    var isNewCluster: Bool {
        guard let set = configuration?.set, set.generation == 1 else { return false }
        return acceptedVote == nil && !records.contains { $0.vote != nil }
    }

    // MARK: Input

    /// Records the view and synced positions that `member` reported at one moment, and adopts a
    /// newer configuration from them.
    ///
    /// - Returns: False if there is no capacity for another member; then the report proves nothing.
    package mutating func recordView(
        _ view: VoterSetView, synced: [StreamPosition], of member: NodeID, now: Instant
    ) -> Bool {
        guard views[member] != nil || views.count < Self.viewsMax else { return false }
        views[member] = view
        syncedPositions.update(member, or: PositionVector()) { $0.merge(synced) }
        guard let theirs = view.configuration else { return true }
        adoptIfNewer(theirs, isNewCluster: theirs.set.generation == 1 && !view.hasVoted, now: now)
        // No member votes on a set that is not settled.
        if view.hasVoted { markSettled(theirs.set, now: now) }
        updateSettled(now: now)
        return true
    }

    /// Records what this node has synced, which may settle the set.
    package mutating func recordOwnPositions(_ positions: [StreamPosition], now: Instant) {
        syncedPositions.update(own, or: PositionVector()) { $0.merge(positions) }
        updateSettled(now: now)
    }

    /// Removes a stream that nodes no longer name.
    mutating func removeStream(_ process: ProcessID) {
        syncedPositions.updateAll { $1.remove(process) }
    }

    /// Drops the views and positions of all nodes other than `members` and this node.
    mutating func retainViews(of members: Set<NodeID>) {
        for member in views.keys where !members.contains(member) && member != own {
            views[member] = nil
            syncedPositions[member] = nil
        }
    }

    /// Applies a consensus record: another node's once it is read, this node's own once it is
    /// synced.
    ///
    /// Ignores joins of other nodes, and records on sets of a lineage that this node does not
    /// follow.
    package mutating func apply(_ record: ConsensusRecord, now: Instant) {
        if case .joined(let previous) = record.body {
            return applyJoin(VoterConfiguration(record.base, after: previous), record, now: now)
        }
        // Only its own record moves a node from one lineage to another.
        guard record.base.lineage == configuration?.set.lineage else { return }
        adoptIfNewer(VoterConfiguration(record.base), isNewCluster: false, now: now)
        markSettled(record.base, now: now)
        retain(record)
        if record.member == own { restoreOwnVotes() }
        tallyVotes(now: now)
    }

    /// Applies this node's own latest join, by which it follows a lineage; ignores other joins.
    private mutating func applyJoin(
        _ joined: VoterConfiguration, _ record: ConsensusRecord, now: Instant
    ) {
        guard record.member == own, record.ballot.round >= joinCount else { return }
        // A record that this process did not write is of an earlier process.
        if record.ballot.round > joinCount, configuration?.set.lineage != joined.set.lineage {
            adopt(joined, now: now)
        }
        joinCount = record.ballot.round
        joinedLineage = joined.set.lineage
    }

    /// Keeps a record on the current or previous set, in place of earlier promises of its member;
    /// beyond the maximum number the oldest record of another node is dropped.
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

    /// Makes the record share the storage of the current set.
    ///
    /// Records are compared with the set often, and arrays with one storage compare equal without a
    /// look at their elements.
    private mutating func shareSet(at place: Int) {
        if let set = configuration?.set, records[place].base == set { records[place].base = set }
    }

    /// Returns true for a record on the current set or, until that is settled, on the one before.
    private func isRelevant(_ record: ConsensusRecord) -> Bool {
        record.base == configuration?.set || record.base == configuration?.previous
    }

    /// Drops the records on sets that are neither the current nor the previous one.
    mutating func dropOldRecords() {
        records = records.filter(isRelevant)
        for place in records.indices { shareSet(at: place) }
    }

    /// Restores this node's promise and vote on the set from its records.
    mutating func restoreOwnVotes() {
        for record in records where record.member == own && record.base == configuration?.set {
            promisedBallot = max(promisedBallot ?? record.ballot, record.ballot)
            guard let vote = record.vote else { continue }
            if acceptedVote.map({ $0.ballot < vote.ballot }) ?? true { acceptedVote = vote }
        }
    }

    // MARK: Orders of the operator

    /// Opens a lineage of this node alone, which replaces its own and every other that it meets;
    /// has no effect on a node that follows none.
    mutating func recover(now: Instant) {
        guard let lineage = configuration?.set.lineage,
            lineage.recovery < VoterSet.generationMax
        else { return }
        conflict = nil
        adopt(
            VoterConfiguration(VoterSet(foundedBy: own, recovery: lineage.recovery + 1)), now: now)
    }

    /// Opens a cluster of this node alone, which must follow no voter set.
    mutating func bootstrap(now: Instant) {
        precondition(
            configuration == nil, "opens a cluster in \(String(describing: configuration))")
        adopt(VoterConfiguration(VoterSet(foundedBy: own)), now: now)
    }

    /// Returns, once, the record that must be synced before this node follows the lineage it found;
    /// `nil` if none is needed, or during a conflict.
    mutating func takeJoinRecord() -> ConsensusRecord? {
        guard let configuration, conflict == nil else { return nil }
        let lineage = configuration.set.lineage
        guard joinedLineage != lineage, pendingLineage != lineage else { return nil }
        pendingLineage = lineage
        joinCount += 1
        return ConsensusRecord(
            base: configuration.set, member: own, ballot: Ballot(round: joinCount, proposer: own),
            body: .joined(previous: configuration.previous))
    }

    // MARK: Derived state

    /// True if this node follows its set's lineage by a synced record.
    var hasJoined: Bool { joinedLineage != nil && joinedLineage == configuration?.set.lineage }

    /// The contacts that prove this node current; `nil`, which closes the fence, before it has
    /// joined a lineage or during a conflict.
    package var quorumRequirement: Fence.QuorumRequirement? {
        guard let configuration, hasJoined, conflict == nil else { return nil }
        let joint = previousSet.map {
            Fence.QuorumRequirement.JointSet(members: $0.members, since: jointSince)
        }
        return Fence.QuorumRequirement(
            voters: configuration.set.members, settledAt: settledAt, joint: joint)
    }

    /// Returns true if `member` is known to follow a later set than `set`.
    func hasSuperseded(_ set: VoterSet, _ member: NodeID) -> Bool {
        let theirs = member == own ? configuration?.set : views[member]?.configuration?.set
        guard let theirs else { return false }
        guard theirs.lineage == set.lineage else {
            return theirs.lineage.recovery > set.lineage.recovery
        }
        return theirs.generation > set.generation
    }

    /// Returns this node's view of the voter set, with `isCurrent` as given and without a nominee.
    package func view(isCurrent: Bool) -> VoterSetView {
        VoterSetView(
            configuration: configuration, hasVoted: acceptedVote != nil, isCurrent: isCurrent)
    }
}
