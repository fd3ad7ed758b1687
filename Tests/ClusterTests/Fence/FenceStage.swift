import Cluster
import Ground
import Testing

/// A node's fence, with members whose messages the test chooses.
struct FenceStage {
    static let start = Instant(nanoseconds: 1_000_000_000_000)
    static let fence = Interval.seconds(10)

    var coordinator: FenceCoordinator
    var now = FenceStage.start
    private var dice = SplitMix64(seed: 5)
    /// The records that wait to be synced.
    private(set) var issued: [ConsensusRecord] = []
    /// The rounds that were requested.
    private(set) var rounds: [UInt64] = []
    /// The members that were asked, in order.
    private(set) var asked: [NodeID] = []

    /// A node in the settled set of the voters `counted`, which reaches some members and has
    /// replies from others.
    init(
        own: UInt64 = 1, counted: [UInt64], reaching reached: [UInt64] = [],
        contacting others: [UInt64] = [], replaying log: [ConsensusRecord] = []
    ) {
        var settings = Fence.Settings()
        settings.duration = Self.fence
        settings.removeAfter = .seconds(60)
        let memory = VoterSetConsensus.PersistentState(
            configuration: VoterConfiguration(Self.set(counted)), joinCount: 1, records: [])
        coordinator = FenceCoordinator(
            own: Self.node(own), persistentState: memory, replaying: log, mayBootstrap: false,
            settings: settings, firstRound: 100, now: Self.start)
        if !reached.isEmpty { reach(reached) }
        if !others.isEmpty { contact(others) }
    }

    /// A node that has never been in a cluster.
    init(newcomer own: UInt64) {
        coordinator = FenceCoordinator(
            own: Self.node(own), persistentState: nil, replaying: [], mayBootstrap: true,
            settings: Fence.Settings(), firstRound: 100, now: Self.start)
    }

    static func node(_ number: UInt64) -> NodeID { NodeID(low: number, high: 0) }

    /// A set with these voters and the generation that it has if they were added one by one.
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

    var isCurrent: Bool { coordinator.window.isCurrent(at: now) }
    var set: VoterSet? { coordinator.consensus.configuration?.set }

    @discardableResult
    mutating func happens(_ event: FenceEvent) -> FenceOutput {
        coordinator.handle(event, now: now, using: &dice)
        return note()
    }

    @discardableResult
    private mutating func note() -> FenceOutput {
        let news = coordinator.takeNews()
        issued += news.records
        rounds += news.roundRequests.map(\.round)
        asked += news.roundRequests.flatMap(\.members)
        return news
    }

    mutating func pass(_ interval: Interval) {
        let end = now + interval
        while true {
            let tick = max(now, coordinator.nextTick)
            guard tick < end else { break }
            now = tick
            happens(.ticked)
        }
        now = end
    }

    mutating func reach(_ numbers: [UInt64]) {
        happens(.reachableMembersChanged(numbers.map(Self.node)))
    }

    /// The number of a round that starts now.
    mutating func ask() -> UInt64 { coordinator.round(at: now) }

    /// Delivers the reply of `number` to `round`, with this node's own view unless given otherwise.
    mutating func answer(
        _ round: UInt64?, by number: UInt64, holds: [StreamPosition] = [],
        configuration: VoterConfiguration? = nil, hasVoted: Bool = false, isCurrent: Bool = true
    ) {
        let view = VoterSetView(
            configuration: configuration ?? coordinator.consensus.configuration, hasVoted: hasVoted,
            isCurrent: isCurrent)
        let response = FenceResponse(round: round, synced: holds, view: view)
        happens(.responseReceived(response, Self.node(number)))
    }

    /// Starts a round and delivers the replies of these members at once.
    mutating func contact(_ numbers: [UInt64]) {
        let round = ask()
        for number in numbers { answer(round, by: number) }
    }

    /// Delivers replies of these members, who are then silent for longer than any fence.
    mutating func meet(_ numbers: [UInt64]) {
        reach(numbers)
        contact(numbers)
        reach([])
        pass(.seconds(60))
    }

    /// Starts a round and delivers the reply of `other`, which has this number.
    mutating func hear(_ other: FenceStage, as number: UInt64) {
        let (view, holds) = other.coordinator.view(at: other.now)
        let response = FenceResponse(round: ask(), synced: holds, view: view)
        happens(.responseReceived(response, Self.node(number)))
    }

    /// Takes the records issued by this node, as synced.
    mutating func takeSynced() -> [ConsensusRecord] {
        defer { issued = [] }
        return issued
    }

    /// Syncs and reads the records issued by this node.
    mutating func sync() {
        while !issued.isEmpty { happens(.consensusRecordRead(issued.removeFirst())) }
    }

    /// Reads a promise or vote of `number` in the ballot of this node's attempt.
    mutating func record(_ number: UInt64, like own: ConsensusRecord, voted: Vote? = nil) {
        var body = own.body
        if case .promise = body { body = .promise(voted: voted) }
        happens(
            .consensusRecordRead(
                ConsensusRecord(
                    base: own.base, member: Self.node(number), ballot: own.ballot, body: body)))
    }

    /// Returns this node's synced promise, and its vote after the promises of `members`.
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
        try coordinator.removeVoters(numbers.map(Self.node), now: now, using: &dice)
        note()
    }
}

extension FenceCoordinator {
    /// Takes the effects since the last call.
    mutating func takeNews() -> FenceOutput {
        defer { output = FenceOutput() }
        return output
    }
}
