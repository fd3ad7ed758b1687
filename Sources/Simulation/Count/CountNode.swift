import Cluster
import Ground

/// One node of a search: the product's count and fence, and a disk that outlives a crash.
///
/// `CountedMembers` and `Fence` are those that nodes run. In the place of `FenceKeeper`, which
/// proposes by time and only while the fence is open, anybody proposes anything at any time. Time
/// is the node's own count of events: the fence is longer than any run, so no contact lapses.
struct CountNode: Sendable {
    /// What a node writes, in the order in which it is synced.
    enum Item: Hashable, Sendable {
        case purge
        case record(CountRecord)
    }

    enum Event: Hashable, Sendable {
        /// The purge was issued here, or read.
        case purged
        /// The first of what waits is on disk.
        case synced
        case read(CountRecord)
        case answered(FenceAnswer, by: NodeID)
        /// A member answers, and the answer is on its way.
        case answeredLate(FenceAnswer, by: NodeID)
        case lateHeard
        case began(CountChange)
        case ordered(CountChange, without: [NodeID])
        case repeatsVote
        /// The purge is durable from now on, and this node is held against it.
        case watched
        /// The purge is durable from now on, and another node is held against it.
        case passedOver
    }

    /// An answer that is on its way.
    private struct Late: Hashable, Sendable {
        var answer: FenceAnswer
        var member: NodeID
        var askedAt: Instant
    }

    static let fence = Interval.seconds(3_600)
    static let purge = StreamPosition(process: ProcessID(high: 1, low: 1), count: 1)

    let own: NodeID
    private let first: CountedSet
    private let flaw: CountFlaw?
    /// It is held against the purge, or may come to be.
    private var isCandidate: Bool
    private(set) var counted: CountedMembers
    private(set) var waiting: [Item] = []
    private(set) var hasApplied = false
    private(set) var hasSynced = false
    /// Who has said that the purge is synced there.
    private var holders: Set<NodeID> = []
    /// From when the purge is durable on; before that a contact says nothing of it.
    private var fence: Fence?
    private var durableAt: Instant?
    private var late: Late?
    private var now = Instant(nanoseconds: 1)

    /// A node that follows a settled set.
    init(own: NodeID, following first: CountedSet, isCandidate: Bool, flaw: CountFlaw?) {
        self.own = own
        self.first = first
        self.isCandidate = isCandidate
        self.flaw = flaw
        counted = Self.start(own, first, [], now)
    }

    private static func start(
        _ own: NodeID, _ first: CountedSet, _ log: [CountRecord], _ now: Instant
    ) -> CountedMembers {
        let memory = CountedMembers.Memory(
            standing: CountStanding(first), joins: 1, records: [])
        return CountedMembers(own: own, memory: memory, replaying: log, now: now)
    }

    // MARK: Events

    /// Takes in what happened; what was synced by it is handed back.
    mutating func handle(_ event: Event) -> Item? {
        tick()
        var item: Item?
        switch event {
        case .purged:
            hasApplied = true
            waiting.append(.purge)
            fence?.applied([Self.purge])
        case .synced: item = sync()
        case .read(let record): counted.recorded(record, now: now)
        case .answered(let answer, let member):
            let late = ask(answer, member)
            tick()
            hear(late)
        case .answeredLate(let answer, let member): late = ask(answer, member)
        case .lateHeard:
            if let late { hear(late) }
            late = nil
        case .began(let change): begin(change)
        case .repeatsVote: repeatVote()
        case .ordered(let change, let gone): begin(change, without: gone)
        case .watched: watch()
        case .passedOver: isCandidate = false
        }
        finish()
        return item
    }

    /// The node after a crash: of its log there is `log`, and it remembers the first set.
    func restarted(replaying log: [CountRecord]) -> CountNode {
        var node = CountNode(
            own: own, following: first, isCandidate: isCandidate, flaw: flaw)
        node.now = now
        node.tick()
        node.counted = Self.start(own, first, log, node.now)
        node.hasApplied = hasSynced
        node.hasSynced = hasSynced
        node.durableAt = durableAt
        if hasSynced {
            node.holders = [own]
            node.counted.ownSynced([Self.purge], now: node.now)
        }
        if durableAt != nil { node.watch() }
        node.finish()
        return node
    }

    private mutating func tick() { now = now + Interval(nanoseconds: 1) }

    private mutating func sync() -> Item? {
        guard !waiting.isEmpty else { return nil }
        let item = waiting.removeFirst()
        switch item {
        case .purge:
            hasSynced = true
            holders.insert(own)
            counted.ownSynced([Self.purge], now: now)
        case .record(let record): counted.recorded(record, now: now)
        }
        return item
    }

    /// A question that is sent now, and answered at once.
    private mutating func ask(_ answer: FenceAnswer, _ member: NodeID) -> Late {
        var answer = answer
        answer.round = fence?.beginRound(at: now) ?? 0
        return Late(answer: answer, member: member, askedAt: now)
    }

    private mutating func hear(_ late: Late) {
        let (answer, member) = (late.answer, late.member)
        guard counted.took(answer.view, holds: answer.holds, of: member, now: now) else { return }
        if !answer.holds.isEmpty { holders.insert(member) }
        fence?.answered(answer.round ?? 0, by: member, named: answer.holds, now: now)
    }

    private mutating func begin(_ change: CountChange, without gone: [NodeID] = []) {
        var issue: [CountRecord] = []
        if !gone.isEmpty { counted.settle(without: gone, now: now) }
        counted.attempt(change, without: gone, until: .distantFuture, issue: &issue)
        waiting += issue.map { .record($0) }
        guard flaw == .unpromised, let record = issue.first else { return }
        for member in record.base.members where member != own {
            var promise = record
            promise.member = member
            counted.recorded(promise, now: now)
        }
    }

    private mutating func repeatVote() {
        guard counted.voteIsRepeated(after: .zero) != nil else { return }
        var issue: [CountRecord] = []
        counted.repeatVote(synced: hasSynced ? [Self.purge] : [], issue: &issue)
        waiting += issue.map { .record($0) }
    }

    private mutating func watch() {
        var settings = Fence.Settings()
        settings.fence = Self.fence
        if flaw == .timedFromAnswer { settings.flaws = .contactTimedFromAnswer }
        durableAt = durableAt ?? now
        fence = Fence(own: own, settings: settings, firstRound: 1, now: now)
        fence?.applied(hasApplied ? [Self.purge] : [])
    }

    /// What follows from every event, as in `FenceKeeper`.
    private mutating func finish() {
        var issue: [CountRecord] = []
        if counted.isVoteDue {
            let named = hasSynced && flaw != .unsettled ? [Self.purge] : []
            counted.vote(synced: named, isCurrent: true, issue: &issue)
        }
        waiting += issue.map { .record($0) }
        fence?.update(counted.demand, now: now)
    }

    // MARK: What it says, and what it is

    var answer: FenceAnswer {
        FenceAnswer(
            round: nil, holds: hasSynced ? [Self.purge] : [], view: counted.view(isCurrent: true))
    }

    var hasLateAnswer: Bool { late != nil }

    /// It would be proven current a fence after the purge was durable, and lacks it.
    var breaksPromise: Bool {
        guard let fence, let durableAt, !hasApplied else { return false }
        return durableAt + Self.fence < fence.window.currentUntil
    }

    /// All that decides what a node does from here on; two nodes with one key do the same.
    ///
    /// Of instants there is which contacts are as late as those of the demand.
    struct Key: Hashable {
        var own: NodeID
        /// What it remembers after a crash.
        var first: CountedSet
        var standing: CountStanding?
        var records: Set<CountRecord>
        var promised: CountBallot?
        var voted: CountVote?
        var attempt: CountedMembers.Attempt?
        var hasRepeatedVote: Bool
        var isContradicted: Bool
        var joint: [NodeID]?
        var waiting: [Item]
        var hasApplied: Bool
        var hasSynced: Bool
        var holders: Set<NodeID>
        var isWatched: Bool
        var contacts: [NodeID: UInt8]
        var lateAnswer: FenceAnswer?
        var lateMember: NodeID?
        var lateAge: UInt8?
    }

    var key: Key {
        let memory = counted.memory
        var lateAnswer = late?.answer
        lateAnswer?.round = nil
        return Key(
            own: own, first: first, standing: memory.standing,
            records: Set(memory.records), promised: counted.promised, voted: counted.voted,
            attempt: counted.attempt, hasRepeatedVote: counted.hasRepeatedVote,
            isContradicted: counted.contradiction != nil,
            joint: isCandidate ? counted.demand?.joint?.members : nil, waiting: waiting,
            hasApplied: hasApplied, hasSynced: hasSynced, holders: holders,
            isWatched: durableAt != nil,
            contacts: contactAges, lateAnswer: lateAnswer, lateMember: late?.member,
            lateAge: late.map { age($0.askedAt) })
    }

    /// Who has applied the purge can break no promise, whatever its contacts are.
    private var contactAges: [NodeID: UInt8] {
        guard let fence, !hasApplied else { return [:] }
        var ages: [NodeID: UInt8] = [:]
        for member in (0..<CountTables.nodesMax).map(CountTables.node) {
            ages[member] = fence.lastContact(of: member).map(age)
        }
        return ages
    }

    private func age(_ instant: Instant) -> UInt8 {
        guard let demand = counted.demand, let durableAt, durableAt < instant else { return 0 }
        let isSinceSettled = demand.settledAt.map { $0 <= instant } ?? false
        let isSinceJoint = demand.joint.map { $0.since <= instant } ?? false
        return 1 + (isSinceSettled ? 2 : 0) + (isSinceJoint ? 4 : 0)
    }
}
