import Cluster
import Ground

/// One node of a search: the production consensus and fence, with a disk that survives a crash.
///
/// `VoterSetConsensus` and `Fence` are the production code. In place of `FenceCoordinator`, which
/// proposes by time and only while the fence is open, any node proposes anything at any time. Time
/// is the node's count of events: the fence is longer than any run, so no contact expires.
struct VoterModelNode: Sendable {
    /// A write of a node; writes are synced in order.
    enum WrittenItem: Hashable, Sendable {
        case purge
        case record(ConsensusRecord)
    }

    /// An event at a node.
    enum Event: Hashable, Sendable {
        /// The purge was issued here, or read.
        case purged
        /// The first pending write was synced.
        case synced
        case read(ConsensusRecord)
        case responseReceived(FenceResponse, by: NodeID)
        /// A member responded, and the response is delayed.
        case delayedResponseSent(FenceResponse, by: NodeID)
        case delayedResponseReceived
        case proposalStarted(VoterSetChange)
        case removalOrdered(VoterSetChange, without: [NodeID])
        case voteRepeated
        /// The purge is durable from now on, and this node is checked for it.
        case observed
        /// The purge is durable from now on, and another node is checked for it.
        case notObserved
    }

    /// A response in transit.
    private struct DelayedResponse: Hashable, Sendable {
        var answer: FenceResponse
        var member: NodeID
        var askedAt: Instant
    }

    /// The fence duration, longer than any run.
    static let fence = Interval.seconds(3_600)
    /// The position of the only purge.
    static let purge = StreamPosition(process: ProcessID(high: 1, low: 1), count: 1)

    let own: NodeID
    /// The set that all nodes follow at the beginning, which stays the stored one.
    private let first: VoterSet
    private let mutation: VoterModelMutation?
    /// True if the node is, or may become, the one that is checked for the purge.
    private var isCandidate: Bool
    private(set) var consensus: VoterSetConsensus
    /// The writes that are not synced, in order.
    private(set) var pendingWrites: [WrittenItem] = []
    /// True if the node has applied the purge.
    private(set) var hasApplied = false
    /// True if the node has synced the purge.
    private(set) var hasSynced = false
    /// The nodes known to have synced the purge.
    private var holders: Set<NodeID> = []
    /// The fence, from when the purge is durable; earlier contacts say nothing about it.
    private var fence: Fence?
    /// The node's time when the purge became durable; `nil` before, and if another node is checked.
    private var durableAt: Instant?
    private var delayedResponse: DelayedResponse?
    /// The node's time, which each event advances.
    private var now = Instant(nanoseconds: 1)

    /// Creates a node that follows a settled set.
    init(own: NodeID, following first: VoterSet, isCandidate: Bool, flaw: VoterModelMutation?) {
        self.own = own
        self.first = first
        self.isCandidate = isCandidate
        self.mutation = flaw
        consensus = Self.start(own, first, [], now)
    }

    /// Returns the consensus of a process that follows `first` and replays `log`.
    private static func start(
        _ own: NodeID, _ first: VoterSet, _ log: [ConsensusRecord], _ now: Instant
    ) -> VoterSetConsensus {
        let memory = VoterSetConsensus.PersistentState(
            configuration: VoterConfiguration(first), joinCount: 1, records: [])
        return VoterSetConsensus(own: own, persistentState: memory, replaying: log, now: now)
    }

    // MARK: Events

    /// Handles an event and returns the write that it has synced; `nil` if none.
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

    /// Returns the node after a crash and a restart, with `log` as its log and the first set as its
    /// stored state.
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

    /// Advances the node's time by one event.
    private mutating func tick() { now = now + Interval(nanoseconds: 1) }

    /// Completes the first pending write and returns it; `nil` if there is none.
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

    /// Begins a round with a member, and returns its `response` as one in transit.
    private mutating func request(_ response: FenceResponse, _ member: NodeID) -> DelayedResponse {
        var response = response
        response.round = fence?.beginRound(at: now) ?? 0
        return DelayedResponse(answer: response, member: member, askedAt: now)
    }

    /// Handles a response, unless the consensus rejects its view.
    private mutating func receive(_ late: DelayedResponse) {
        let (response, member) = (late.answer, late.member)
        guard consensus.recordView(response.view, synced: response.synced, of: member, now: now)
        else { return }
        if !response.synced.isEmpty { holders.insert(member) }
        fence?.responseReceived(response.round ?? 0, by: member, synced: response.synced, now: now)
    }

    /// Starts a proposal and queues its records; with `gone`, one by a majority of the others.
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

    /// Repeats the vote for the node's set, if it may be repeated.
    private mutating func repeatVote() {
        guard consensus.repeatVoteDeadline(after: .zero) != nil else { return }
        var issue: [ConsensusRecord] = []
        consensus.repeatVote(synced: hasSynced ? [Self.purge] : [], records: &issue)
        pendingWrites += issue.map { .record($0) }
    }

    /// Begins to check the node for the purge, with a new fence.
    private mutating func observe() {
        var settings = Fence.Settings()
        settings.duration = Self.fence
        if mutation == .contactTimedFromResponse { settings.mutations = .contactTimedFromResponse }
        durableAt = durableAt ?? now
        fence = Fence(own: own, settings: settings, firstRound: 1, now: now)
        fence?.applied(hasApplied ? [Self.purge] : [])
    }

    /// Performs what follows every event, as `FenceCoordinator` does.
    private mutating func finish() {
        var issue: [ConsensusRecord] = []
        if consensus.isVoteDue {
            let named = hasSynced && mutation != .settledWithoutPositions ? [Self.purge] : []
            consensus.vote(synced: named, isCurrent: true, records: &issue)
        }
        pendingWrites += issue.map { .record($0) }
        fence?.update(consensus.quorumRequirement, now: now)
    }

    // MARK: Observed state

    /// The response that the node sends to a request.
    var response: FenceResponse {
        FenceResponse(
            round: nil, synced: hasSynced ? [Self.purge] : [], view: consensus.view(isCurrent: true)
        )
    }

    var hasDelayedResponse: Bool { delayedResponse != nil }

    /// True if the node would count as current one fence after the purge became durable, without
    /// having applied it.
    var violatesFence: Bool {
        guard let fence, let durableAt, !hasApplied else { return false }
        return durableAt + Self.fence < fence.window.currentUntil
    }

    /// The state that determines the node's future; nodes with equal keys behave equally.
    ///
    /// Of times it contains only whether contacts are as late as the quorum requires.
    struct Key: Hashable {
        var own: NodeID
        /// The set that the node still has stored after a crash.
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

    /// The key of the node's present state.
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

    /// The relative times of contacts; empty once the purge is applied, as contacts no longer
    /// matter.
    private var contactAges: [NodeID: UInt8] {
        guard let fence, !hasApplied else { return [:] }
        var ages: [NodeID: UInt8] = [:]
        for member in (0..<VoterModelTables.nodesMax).map(VoterModelTables.node) {
            ages[member] = fence.lastContact(of: member).map(age)
        }
        return ages
    }

    /// Returns which conditions of the quorum a contact at `instant` meets; 0 if it precedes the
    /// durability of the purge.
    private func age(_ instant: Instant) -> UInt8 {
        guard let demand = consensus.quorumRequirement, let durableAt, durableAt < instant else {
            return 0
        }
        let isSinceSettled = demand.settledAt.map { $0 <= instant } ?? false
        let isSinceJoint = demand.joint.map { $0.since <= instant } ?? false
        return 1 + (isSinceSettled ? 2 : 0) + (isSinceJoint ? 4 : 0)
    }
}
