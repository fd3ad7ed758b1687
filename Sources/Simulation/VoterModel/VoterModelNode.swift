import Cluster
import Ground

/// One node of a search: the product's count and fence, and a disk that outlives a crash.
///
/// `VoterSetConsensus` and `Fence` are those that nodes run. In the place of `FenceCoordinator`,
/// which proposes by time and only while the fence is open, anybody proposes anything at any time.
/// Time is the node's own count of events: the fence is longer than any run, so no contact lapses.
struct VoterModelNode: Sendable {
    /// What a node writes, in the order in which it is synced.
    enum WrittenItem: Hashable, Sendable {
        case purge
        case record(ConsensusRecord)
    }

    enum Event: Hashable, Sendable {
        /// The purge was issued here, or read.
        case purged
        /// The first of what waits is on disk.
        case synced
        case read(ConsensusRecord)
        case responseReceived(FenceResponse, by: NodeID)
        /// A member answers, and the answer is on its way.
        case delayedResponseSent(FenceResponse, by: NodeID)
        case delayedResponseReceived
        case proposalStarted(VoterSetChange)
        case removalOrdered(VoterSetChange, without: [NodeID])
        case voteRepeated
        /// The purge is durable from now on, and this node is held against it.
        case observed
        /// The purge is durable from now on, and another node is held against it.
        case notObserved
    }

    /// An answer that is on its way.
    private struct DelayedResponse: Hashable, Sendable {
        var answer: FenceResponse
        var member: NodeID
        var askedAt: Instant
    }

    static let fence = Interval.seconds(3_600)
    static let purge = StreamPosition(process: ProcessID(high: 1, low: 1), count: 1)

    let own: NodeID
    private let first: VoterSet
    private let mutation: VoterModelMutation?
    /// It is held against the purge, or may come to be.
    private var isCandidate: Bool
    private(set) var consensus: VoterSetConsensus
    private(set) var pendingWrites: [WrittenItem] = []
    private(set) var hasApplied = false
    private(set) var hasSynced = false
    /// Who has said that the purge is synced there.
    private var holders: Set<NodeID> = []
    /// From when the purge is durable on; before that a contact says nothing of it.
    private var fence: Fence?
    private var durableAt: Instant?
    private var delayedResponse: DelayedResponse?
    private var now = Instant(nanoseconds: 1)

    /// A node that follows a settled set.
    init(own: NodeID, following first: VoterSet, isCandidate: Bool, flaw: VoterModelMutation?) {
        self.own = own
        self.first = first
        self.isCandidate = isCandidate
        self.mutation = flaw
        consensus = Self.start(own, first, [], now)
    }

    private static func start(
        _ own: NodeID, _ first: VoterSet, _ log: [ConsensusRecord], _ now: Instant
    ) -> VoterSetConsensus {
        let memory = VoterSetConsensus.PersistentState(
            standing: VoterConfiguration(first), joins: 1, records: [])
        return VoterSetConsensus(own: own, memory: memory, replaying: log, now: now)
    }

    // MARK: Events

    /// Takes in what happened; what was synced by it is handed back.
    mutating func handle(_ event: Event) -> WrittenItem? {
        tick()
        var item: WrittenItem?
        switch event {
        case .purged:
            hasApplied = true
            pendingWrites.append(.purge)
            fence?.applied([Self.purge])
        case .synced: item = sync()
        case .read(let record): consensus.apply(record, now: now)
        case .responseReceived(let response, let member):
            let late = request(response, member)
            tick()
            receive(late)
        case .delayedResponseSent(let response, let member):
            delayedResponse = request(response, member)
        case .delayedResponseReceived:
            if let delayedResponse { receive(delayedResponse) }
            delayedResponse = nil
        case .proposalStarted(let change): startProposal(change)
        case .voteRepeated: repeatVote()
        case .removalOrdered(let change, let gone): startProposal(change, without: gone)
        case .observed: observe()
        case .notObserved: isCandidate = false
        }
        finish()
        return item
    }

    /// The node after a crash: of its log there is `log`, and it remembers the first set.
    func restarted(replaying log: [ConsensusRecord]) -> VoterModelNode {
        var node = VoterModelNode(
            own: own, following: first, isCandidate: isCandidate, flaw: mutation)
        node.now = now
        node.tick()
        node.consensus = Self.start(own, first, log, node.now)
        node.hasApplied = hasSynced
        node.hasSynced = hasSynced
        node.durableAt = durableAt
        if hasSynced {
            node.holders = [own]
            node.consensus.recordOwnPositions([Self.purge], now: node.now)
        }
        if durableAt != nil { node.observe() }
        node.finish()
        return node
    }

    private mutating func tick() { now = now + Interval(nanoseconds: 1) }

    private mutating func sync() -> WrittenItem? {
        guard !pendingWrites.isEmpty else { return nil }
        let item = pendingWrites.removeFirst()
        switch item {
        case .purge:
            hasSynced = true
            holders.insert(own)
            consensus.recordOwnPositions([Self.purge], now: now)
        case .record(let record): consensus.apply(record, now: now)
        }
        return item
    }

    /// A question that is sent now, and answered at once.
    private mutating func request(_ response: FenceResponse, _ member: NodeID) -> DelayedResponse {
        var response = response
        response.round = fence?.beginRound(at: now) ?? 0
        return DelayedResponse(answer: response, member: member, askedAt: now)
    }

    private mutating func receive(_ late: DelayedResponse) {
        let (response, member) = (late.answer, late.member)
        guard consensus.recordView(response.view, synced: response.synced, of: member, now: now)
        else { return }
        if !response.synced.isEmpty { holders.insert(member) }
        fence?.responseReceived(response.round ?? 0, by: member, synced: response.synced, now: now)
    }

    private mutating func startProposal(_ change: VoterSetChange, without gone: [NodeID] = []) {
        var issue: [ConsensusRecord] = []
        if !gone.isEmpty { consensus.updateSettled(excluding: gone, now: now) }
        consensus.startProposal(change, excluding: gone, until: .distantFuture, records: &issue)
        pendingWrites += issue.map { .record($0) }
        guard mutation == .voteWithoutPromises, let record = issue.first else { return }
        for member in record.base.members where member != own {
            var promise = record
            promise.member = member
            consensus.apply(promise, now: now)
        }
    }

    private mutating func repeatVote() {
        guard consensus.repeatVoteDeadline(after: .zero) != nil else { return }
        var issue: [ConsensusRecord] = []
        consensus.repeatVote(synced: hasSynced ? [Self.purge] : [], records: &issue)
        pendingWrites += issue.map { .record($0) }
    }

    private mutating func observe() {
        var settings = Fence.Settings()
        settings.duration = Self.fence
        if mutation == .contactTimedFromResponse { settings.mutations = .contactTimedFromResponse }
        durableAt = durableAt ?? now
        fence = Fence(own: own, settings: settings, firstRound: 1, now: now)
        fence?.applied(hasApplied ? [Self.purge] : [])
    }

    /// What follows from every event, as in `FenceCoordinator`.
    private mutating func finish() {
        var issue: [ConsensusRecord] = []
        if consensus.isVoteDue {
            let named = hasSynced && mutation != .settledWithoutPositions ? [Self.purge] : []
            consensus.vote(synced: named, isCurrent: true, records: &issue)
        }
        pendingWrites += issue.map { .record($0) }
        fence?.update(consensus.quorumRequirement, now: now)
    }

    // MARK: What it says, and what it is

    var response: FenceResponse {
        FenceResponse(
            round: nil, holds: hasSynced ? [Self.purge] : [], view: consensus.view(isCurrent: true))
    }

    var hasLateAnswer: Bool { delayedResponse != nil }

    /// It would be proven current a fence after the purge was durable, and lacks it.
    var violatesFence: Bool {
        guard let fence, let durableAt, !hasApplied else { return false }
        return durableAt + Self.fence < fence.window.currentUntil
    }

    /// All that decides what a node does from here on; two nodes with one key do the same.
    ///
    /// Of instants there is which contacts are as late as those of the demand.
    struct Key: Hashable {
        var own: NodeID
        /// What it remembers after a crash.
        var first: VoterSet
        var standing: VoterConfiguration?
        var records: Set<ConsensusRecord>
        var promised: Ballot?
        var voted: Vote?
        var attempt: VoterSetConsensus.Proposal?
        var hasRepeatedVote: Bool
        var isContradicted: Bool
        var joint: [NodeID]?
        var waiting: [WrittenItem]
        var hasApplied: Bool
        var hasSynced: Bool
        var holders: Set<NodeID>
        var isWatched: Bool
        var contacts: [NodeID: UInt8]
        var lateAnswer: FenceResponse?
        var lateMember: NodeID?
        var lateAge: UInt8?
    }

    var key: Key {
        let memory = consensus.persistentState
        var lateAnswer = delayedResponse?.answer
        lateAnswer?.round = nil
        return Key(
            own: own, first: first, standing: memory.configuration,
            records: Set(memory.records), promised: consensus.promisedBallot,
            voted: consensus.acceptedVote,
            attempt: consensus.proposal, hasRepeatedVote: consensus.hasRepeatedVote,
            isContradicted: consensus.conflict != nil,
            joint: isCandidate ? consensus.quorumRequirement?.joint?.members : nil,
            waiting: pendingWrites,
            hasApplied: hasApplied, hasSynced: hasSynced, holders: holders,
            isWatched: durableAt != nil,
            contacts: contactAges, lateAnswer: lateAnswer, lateMember: delayedResponse?.member,
            lateAge: delayedResponse.map { age($0.askedAt) })
    }

    /// Who has applied the purge can break no promise, whatever its contacts are.
    private var contactAges: [NodeID: UInt8] {
        guard let fence, !hasApplied else { return [:] }
        var ages: [NodeID: UInt8] = [:]
        for member in (0..<VoterModelTables.nodesMax).map(VoterModelTables.node) {
            ages[member] = fence.lastContact(of: member).map(age)
        }
        return ages
    }

    private func age(_ instant: Instant) -> UInt8 {
        guard let demand = consensus.quorumRequirement, let durableAt, durableAt < instant else {
            return 0
        }
        let isSinceSettled = demand.settledAt.map { $0 <= instant } ?? false
        let isSinceJoint = demand.joint.map { $0.since <= instant } ?? false
        return 1 + (isSinceSettled ? 2 : 0) + (isSinceJoint ? 4 : 0)
    }
}
