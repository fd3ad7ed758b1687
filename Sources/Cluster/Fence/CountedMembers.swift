package import Ground

/// Who is counted, as one node knows it, and this node's part in changing it.
///
/// A set is changed by the votes of a majority of its members for one change, each vote a record in
/// its member's own stream. The change is in force once those are synced there, at whoever has read
/// them or is told. Every vote names what the voter has synced; the new set is settled when a
/// majority of it has all that, and only then may the next change begin.
///
/// Nothing here asks whether anybody is alive; see ``FenceKeeper``, which owns this.
package struct CountedMembers: Sendable {
    /// What has to outlive a restart beside the records that the log still holds.
    package struct Memory: Hashable, Sendable {
        package var standing: CountStanding?
        /// How often the node has joined a line of sets.
        package var joins: UInt64
        /// On the set; until it is settled, on the one before too.
        package var records: [CountRecord]

        package init(standing: CountStanding?, joins: UInt64, records: [CountRecord]) {
            self.standing = standing
            self.joins = joins
            self.records = records
        }
    }

    /// What a node finds out that only the operator can mend.
    package enum Contradiction: Hashable, Sendable {
        /// One generation with two sets: members were forgotten on two sides of a split.
        case twoSets(CountedSet, CountedSet)
        /// Two clusters that were opened separately, and have both grown, have met.
        case twoClusters(CountedSet, CountedSet)
        /// One number of a stream with two contents.
        case twoRecords(StreamPosition)
    }

    let own: NodeID
    /// Nil for a newcomer.
    package internal(set) var standing: CountStanding?
    /// The line that this node follows by a record that is synced here; before that its standing
    /// moves nothing.
    var joined: CountedLine?
    /// Joins so far, the one that is not synced yet included.
    var joins: UInt64 = 0
    private var joining: CountedLine?
    package internal(set) var contradiction: Contradiction?
    /// Contacts from then on are later than the settling of the set before ``standing``'s.
    var since: Instant
    /// When this node learnt of the set.
    var adoptedAt: Instant
    /// When this node learnt that the set is settled.
    var settledAt: Instant?
    var before: CountedSet?
    /// See ``Memory/records``.
    var records: [CountRecord] = []
    /// This node's own highest promise and vote on the set, from before they are synced on.
    package internal(set) var promised: CountBallot?
    package internal(set) var voted: CountVote?
    package internal(set) var attempt: Attempt?
    /// See ``repeatVote(synced:issue:)``.
    package internal(set) var hasRepeatedVote = false
    /// What the others said last.
    private(set) var views = SortedTable<NodeID, CountView>()
    /// What the others have synced, as far as they said; this node itself included.
    private(set) var holdings = SortedTable<NodeID, KnownPositions>()

    /// A change that this node tries to bring about.
    package struct Attempt: Hashable, Sendable {
        package var ballot: CountBallot
        package var wish: CountChange
        package var endsAt: Instant
        package var isOperators: Bool
    }

    private static let viewsMax = 512
    private static let recordsMax = 4_096

    /// A node that starts, with what it remembers and every record of the count that its log holds,
    /// its own and others', in any order.
    package init(own: NodeID, memory: Memory?, replaying log: [CountRecord], now: Instant) {
        self.own = own
        since = now
        adoptedAt = now
        if let standing = memory?.standing {
            adopt(standing, now: now)
            joined = standing.set.line
            joins = memory?.joins ?? 0
            records = memory?.records ?? []
            recallOwn()
        }
        // Twice: a record may lie before the one that shows what it is about.
        for record in log + log { recorded(record, now: now) }
    }

    package var memory: Memory {
        Memory(standing: standing, joins: joins, records: records)
    }

    /// What has to outlive a restart is the same.
    func hasMemory(of other: CountedMembers) -> Bool {
        standing == other.standing && joins == other.joins && records == other.records
    }

    /// This node is one of the counted.
    package var isCounted: Bool { standing?.set.contains(own) ?? false }

    /// Nobody has ever counted anybody here, and this node alone is the cluster that it opened.
    var isNewborn: Bool {
        guard let set = standing?.set, set.generation == 1 else { return false }
        return voted == nil && !records.contains { $0.vote != nil }
    }

    // MARK: Taking in

    /// What `member` says of the count, and has synced, as of one moment.
    ///
    /// False if there is no room: then what it says proves nothing.
    package mutating func took(
        _ view: CountView, holds: [StreamPosition], of member: NodeID, now: Instant
    ) -> Bool {
        guard views[member] != nil || views.count < Self.viewsMax else { return false }
        views[member] = view
        holdings.update(member, or: KnownPositions()) { $0.take(holds) }
        guard let theirs = view.standing else { return true }
        follow(theirs, isNewborn: theirs.set.generation == 1 && !view.hasVoted, now: now)
        // Nobody votes on a set that is not settled.
        if view.hasVoted { learnSettled(theirs.set, now: now) }
        settle(now: now)
        return true
    }

    package mutating func ownSynced(_ positions: [StreamPosition], now: Instant) {
        holdings.update(own, or: KnownPositions()) { $0.take(positions) }
        settle(now: now)
    }

    /// Nobody names a stream any more.
    mutating func forget(_ process: ProcessID) {
        holdings.updateAll { $1.forget(process) }
    }

    /// Members that are neither counted nor connected are remembered no longer.
    mutating func keepViews(of members: Set<NodeID>) {
        for member in views.keys where !members.contains(member) && member != own {
            views[member] = nil
            holdings[member] = nil
        }
    }

    /// A record of the count: another's once it is read, this node's own once it is synced.
    package mutating func recorded(_ record: CountRecord, now: Instant) {
        if case .joined(let previous) = record.body {
            return recordedJoin(CountStanding(record.base, after: previous), record, now: now)
        }
        // Only its own word moves a node from one line to another.
        guard record.base.line == standing?.set.line else { return }
        follow(CountStanding(record.base), isNewborn: false, now: now)
        learnSettled(record.base, now: now)
        keep(record)
        if record.member == own { recallOwn() }
        decide(now: now)
    }

    private mutating func recordedJoin(
        _ line: CountStanding, _ record: CountRecord, now: Instant
    ) {
        guard record.member == own, record.ballot.round >= joins else { return }
        // One that this process did not write is of an earlier one.
        if record.ballot.round > joins, standing?.set.line != line.set.line {
            adopt(line, now: now)
        }
        joins = record.ballot.round
        joined = line.set.line
    }

    private mutating func keep(_ record: CountRecord) {
        guard isOfInterest(record), !records.contains(record) else { return }
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
        if let set = standing?.set, records[place].base == set { records[place].base = set }
    }

    private func isOfInterest(_ record: CountRecord) -> Bool {
        record.base == standing?.set || record.base == standing?.previous
    }

    mutating func dropOldRecords() {
        records = records.filter(isOfInterest)
        for place in records.indices { shareSet(at: place) }
    }

    /// What this node has promised and given on the set, as far as records say.
    mutating func recallOwn() {
        for record in records where record.member == own && record.base == standing?.set {
            promised = max(promised ?? record.ballot, record.ballot)
            guard let vote = record.vote else { continue }
            if voted.map({ $0.ballot < vote.ballot }) ?? true { voted = vote }
        }
    }

    // MARK: The operator's word

    /// Opens a line in the place of this node's, and of every other that it meets: this node alone.
    mutating func recover(now: Instant) {
        guard let line = standing?.set.line, line.recovery < CountedSet.countMax else { return }
        contradiction = nil
        adopt(CountStanding(CountedSet(openedBy: own, recovery: line.recovery + 1)), now: now)
    }

    /// Opens a cluster: this node alone.
    mutating func open(now: Instant) {
        precondition(standing == nil, "opens a cluster in \(String(describing: standing))")
        adopt(CountStanding(CountedSet(openedBy: own)), now: now)
    }

    /// The record to be synced before this node follows the line that it has found; once.
    mutating func takeJoin() -> CountRecord? {
        guard let standing, contradiction == nil else { return nil }
        let line = standing.set.line
        guard joined != line, joining != line else { return nil }
        joining = line
        joins += 1
        return CountRecord(
            base: standing.set, member: own, ballot: CountBallot(round: joins, owner: own),
            body: .joined(previous: standing.previous))
    }

    // MARK: What it means

    /// This node follows its set's line by a record that is synced.
    var hasJoined: Bool { joined != nil && joined == standing?.set.line }

    /// Nil closes the fence.
    package var demand: Fence.Demand? {
        guard let standing, hasJoined, contradiction == nil else { return nil }
        let joint = before.map { Fence.Demand.Joint(members: $0.members, since: since) }
        return Fence.Demand(set: standing.set.members, settledAt: settledAt, joint: joint)
    }

    /// A member has said, or is this node and knows, that `set` has been followed by another.
    func hasLeft(_ set: CountedSet, _ member: NodeID) -> Bool {
        let theirs = member == own ? standing?.set : views[member]?.standing?.set
        guard let theirs else { return false }
        guard theirs.line == set.line else { return theirs.line.recovery > set.line.recovery }
        return theirs.generation > set.generation
    }

    package func view(isCurrent: Bool) -> CountView {
        CountView(standing: standing, hasVoted: voted != nil, isCurrent: isCurrent)
    }
}
