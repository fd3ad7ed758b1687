import Cluster
import Ground
import Testing

/// One node's fence, and members that say what a test lets them say.
struct FenceStage {
    static let start = Instant(nanoseconds: 1_000_000_000_000)
    static let fence = Interval.seconds(10)

    var keeper: FenceCoordinator
    var now = FenceStage.start
    private var dice = SplitMix64(seed: 5)
    /// Records that wait to be synced.
    private(set) var issued: [ConsensusRecord] = []
    /// Rounds that were asked for.
    private(set) var rounds: [UInt64] = []
    /// Members that were asked, in that order.
    private(set) var asked: [NodeID] = []

    /// A node with this number in a settled set of those numbers, which reaches some and has their
    /// answers.
    init(
        own: UInt64 = 1, counted: [UInt64], reaching reached: [UInt64] = [],
        contacting others: [UInt64] = [], replaying log: [ConsensusRecord] = []
    ) {
        var settings = Fence.Settings()
        settings.duration = Self.fence
        settings.removeAfter = .seconds(60)
        let memory = VoterSetConsensus.PersistentState(
            configuration: VoterConfiguration(Self.set(counted)), joinCount: 1, records: [])
        keeper = FenceCoordinator(
            own: Self.node(own), persistentState: memory, replaying: log, mayBootstrap: false,
            settings: settings, firstRound: 100, now: Self.start)
        if !reached.isEmpty { reach(reached) }
        if !others.isEmpty { contact(others) }
    }

    /// A node that has never been in a cluster.
    init(newcomer own: UInt64) {
        keeper = FenceCoordinator(
            own: Self.node(own), persistentState: nil, replaying: [], mayBootstrap: true,
            settings: Fence.Settings(), firstRound: 100, now: Self.start)
    }

    static func node(_ number: UInt64) -> NodeID { NodeID(low: number, high: 0) }

    /// Its generation is as if the numbers had been counted one by one.
    static func set(_ numbers: [UInt64], later: UInt64 = 0) -> VoterSet {
        let members = numbers.map(node)
        guard
            let set = VoterSet(
                founder: members[0], generation: UInt64(numbers.count) + later, members: members)
        else { preconditionFailure("a set of \(numbers)") }
        return set
    }

    static func purge(_ number: UInt64) -> StreamPosition {
        StreamPosition(process: ProcessID(high: 9, low: 9), count: number)
    }

    var isCurrent: Bool { keeper.window.isCurrent(at: now) }
    var set: VoterSet? { keeper.consensus.configuration?.set }

    @discardableResult
    mutating func happens(_ event: FenceEvent) -> FenceOutput {
        keeper.handle(event, now: now, using: &dice)
        return note()
    }

    @discardableResult
    private mutating func note() -> FenceOutput {
        let news = keeper.takeNews()
        issued += news.records
        rounds += news.roundRequests.map(\.round)
        asked += news.roundRequests.flatMap(\.members)
        return news
    }

    mutating func pass(_ interval: Interval) {
        let end = now + interval
        while true {
            let tick = max(now, keeper.nextTick)
            guard tick < end else { break }
            now = tick
            happens(.ticked)
        }
        now = end
    }

    mutating func reach(_ numbers: [UInt64]) {
        happens(.reachableMembersChanged(numbers.map(Self.node)))
    }

    /// The number of a question that is sent now.
    mutating func ask() -> UInt64 { keeper.round(at: now) }

    /// What `number` says in answer to `round`; it believes what this node believes but for what is
    /// given.
    mutating func answer(
        _ round: UInt64?, by number: UInt64, holds: [StreamPosition] = [],
        standing: VoterConfiguration? = nil, hasVoted: Bool = false, isCurrent: Bool = true
    ) {
        let view = VoterSetView(
            configuration: standing ?? keeper.consensus.configuration, hasVoted: hasVoted,
            isCurrent: isCurrent)
        let response = FenceResponse(round: round, synced: holds, view: view)
        happens(.responseReceived(response, Self.node(number)))
    }

    /// Asks now, and has the answers at once.
    mutating func contact(_ numbers: [UInt64]) {
        let round = ask()
        for number in numbers { answer(round, by: number) }
    }

    /// Has answers of others, who then say nothing for longer than any fence.
    mutating func meet(_ numbers: [UInt64]) {
        reach(numbers)
        contact(numbers)
        reach([])
        pass(.seconds(60))
    }

    /// Asks `other`, which has this number, and has its answer at once.
    mutating func hear(_ other: FenceStage, as number: UInt64) {
        let (view, holds) = other.keeper.view(at: other.now)
        let response = FenceResponse(round: ask(), synced: holds, view: view)
        happens(.responseReceived(response, Self.node(number)))
    }

    /// What this node has issued, which is synced.
    mutating func takeSynced() -> [ConsensusRecord] {
        defer { issued = [] }
        return issued
    }

    /// What this node has issued is synced, and read by it.
    mutating func sync() {
        while !issued.isEmpty { happens(.consensusRecordRead(issued.removeFirst())) }
    }

    /// `number` promises or votes in the ballot of this node's attempt.
    mutating func record(_ number: UInt64, like own: ConsensusRecord, voted: Vote? = nil) {
        var body = own.body
        if case .promise = body { body = .promise(voted: voted) }
        happens(
            .consensusRecordRead(
                ConsensusRecord(
                    base: own.base, member: Self.node(number), ballot: own.ballot, body: body)))
    }

    /// This node's call for votes, and its vote once `members` have promised theirs; both synced.
    mutating func vote(with members: [UInt64]) throws -> (
        call: ConsensusRecord, vote: ConsensusRecord
    ) {
        let call = try #require(issued.first)
        sync()
        for member in members { record(member, like: call) }
        let vote = try #require(issued.first)
        sync()
        return (call, vote)
    }

    mutating func forget(_ numbers: [UInt64]) throws(FenceCoordinator.RemovalRefusal) {
        try keeper.removeVoters(numbers.map(Self.node), now: now, using: &dice)
        note()
    }
}

extension FenceCoordinator {
    /// What is to be done since it was taken last.
    mutating func takeNews() -> FenceOutput {
        defer { output = FenceOutput() }
        return output
    }
}
