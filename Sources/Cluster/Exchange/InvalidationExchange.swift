package import Ground

/// All that a node decides about invalidations: its log, its fence and the counted members, as one
/// thing with one order of events and effects.
///
/// The shell tells what happened, does what comes out in order before it serves anything else, and
/// asks. What the fence is told to be applied is in the effects of the same event, ahead of the
/// ``InvalidationEffect/window(_:)`` that may open for it.
///
/// Invariants: while ``window`` is current everything that a majority of the counted members named
/// in answer to questions within the last fence was given out as applied; the fence is told of a
/// record of the count only when it is synced where it was written.
package struct InvalidationExchange: Sendable {
    package struct Settings: Hashable, Sendable {
        package var log = InvalidationLog.Settings()
        package var fence = Fence.Settings()
        /// The most bytes of records in one answer to who asks for some; at least one is given.
        package var repairBytesMax = 48 << 10

        package init() {}
    }

    /// What a node starts with.
    package struct Start: Sendable {
        package var node: NodeID
        /// Drawn for this run.
        package var process: ProcessID
        package var settings = Settings()
        /// What the disk had.
        package var kept = KeptLog()
        /// What ``LogNote/memory(_:)`` had last put on disk.
        package var memory: CountedMembers.Memory?
        /// The log is neither damaged nor lost, and the directory holds nothing that was ever
        /// served under a count.
        package var mayOpen = false
        /// Drawn by dice.
        package var firstRound: UInt64

        package init(node: NodeID, process: ProcessID, firstRound: UInt64) {
            self.node = node
            self.process = process
            self.firstRound = firstRound
        }
    }

    let settings: Settings
    var log: InvalidationLog
    var keeper: FenceKeeper
    var remembered: CountedMembers
    /// The contradiction that was told last.
    var told: CountedMembers.Contradiction?
    /// ``CountedLine/recovery`` of the line that was followed last.
    var recovery: UInt64?
    var published: FenceWindow
    var formation = Formation()

    /// A node that starts at `now`.
    package init(_ start: Start, now: Instant) {
        settings = start.settings
        var logSettings = settings.log
        logSettings.fence = settings.fence.fence ?? logSettings.fence
        logSettings.forgetAfter = settings.fence.forgetAfter
        log = InvalidationLog(
            node: start.node, process: start.process, settings: logSettings, kept: start.kept,
            now: now)
        let records = start.kept.records.compactMap(\.countRecord)
        keeper = FenceKeeper(
            own: start.node, memory: start.memory, replaying: records, mayOpen: start.mayOpen,
            settings: settings.fence, firstRound: start.firstRound, now: now)
        remembered = keeper.counted
        recovery = remembered.standing?.set.line.recovery
        published = keeper.window
    }

    /// To be called once, before anything else: what follows from what was kept.
    package mutating func started(
        now: Instant, using dice: inout Dice, effects: inout [InvalidationEffect]
    ) {
        let retired = log.retired.positions
        let applied = log.streams.streams.compactMap { log.appliedPosition(of: $0.process) }
        tell(.applied(applied + retired), now, &dice)
        tell(.synced(log.positions), now, &dice)
        for position in retired { tell(.retired(position), now, &dice) }
        if keeper.counted.hasJoined { log.writes.add(.memory(keeper.counted.memory)) }
        finish(now, &dice, &effects)
        published = window
        effects.append(.window(window))
    }

    // MARK: Events

    /// Takes in what happened at `now` and appends what is to be done.
    package mutating func handle(
        _ event: ExchangeEvent, now: Instant, using dice: inout Dice,
        effects: inout [InvalidationEffect]
    ) {
        handle([event], now: now, using: &dice, effects: &effects)
    }

    /// The same of several, in their order.
    package mutating func handle(
        _ events: [ExchangeEvent], now: Instant, using dice: inout Dice,
        effects: inout [InvalidationEffect]
    ) {
        let answers = events.compactMap { take($0, now, &dice, &effects) }
        finish(now, &dice, &effects)
        for (answer, node) in answers { effects.append(.send(answer, to: [node])) }
    }

    /// Takes in an event; gives what is to be answered, and to whom.
    private mutating func take(
        _ event: ExchangeEvent, _ now: Instant, _ dice: inout Dice,
        _ effects: inout [InvalidationEffect]
    ) -> (InvalidationMessage, NodeID)? {
        switch event {
        case .ticked:
            log.ticked(now: now, effects: &effects)
            tell(.ticked, now, &dice)
        case .message(let message, let node):
            return take(message, node, now, &dice, &effects).map { ($0, node) }
        case .question(let knowledge, let records, let node):
            log.received(records, from: node, now: now, effects: &effects)
            log.told(knowledge, by: node, now: now, effects: &effects)
        case .connected(let node, let connection):
            log.connected(node, on: connection, now: now, effects: &effects)
            tell(.reached(log.lines.keys), now, &dice)
            keeper.ask(node, now: now)
        case .disconnected(let node):
            log.disconnected(node, now: now, effects: &effects)
            tell(.reached(log.lines.keys), now, &dice)
        case .membersChanged(let members):
            log.membersChanged(members, now: now, effects: &effects)
            tell(.departed(members.filter { $0.presence == .left }.map(\.node)), now, &dice)
        case .synced: log.synced(now: now, effects: &effects)
        case .writeFailed: log.writeFailed(now: now)
        case .full(let positions): log.giveUp(positions, now: now, effects: &effects)
        case .changedLocally(let purge): log.applyLocally(purge, effects: &effects)
        case .mayForm(let rule): formation.rule = rule
        case .leaveRequested: tell(.leaveRequested, now, &dice)
        case .recovers: tell(.recovers, now, &dice)
        }
        return nil
    }

    /// Takes what a peer says; what is to be answered is of after that.
    private mutating func take(
        _ message: InvalidationMessage, _ node: NodeID, _ now: Instant, _ dice: inout Dice,
        _ effects: inout [InvalidationEffect]
    ) -> InvalidationMessage? {
        switch message {
        case .push(let records):
            log.received(records, from: node, now: now, effects: &effects)
        case .confirm(let positions, let members, let view):
            // First the count: who confirms after voting on a later set says so.
            tell(.heard(FenceAnswer(round: nil, holds: positions, view: view), node), now, &dice)
            followCount(now, &effects)
            log.confirmed(positions, members: members, by: node, now: now, effects: &effects)
        case .told(let positions): log.told(positions, by: node, now: now, effects: &effects)
        case .ask(let ranges):
            let bytesMax = settings.repairBytesMax
            return .repair(log.answer(to: ranges, of: node, bytesMax: bytesMax))
        case .repair(let answer): log.answered(answer, from: node, now: now, effects: &effects)
        case .round(let round, let theirs):
            let catchUp = log.catchUp(of: node)
            let view = view(at: now)
            if ExchangeDigest.of(catchUp, view.standing) == theirs {
                return .unchanged(round: round, digest: theirs, view: view)
            }
            let answer = FenceAnswer(round: round, holds: catchUp.positions, view: view)
            return .answer(answer, retired: catchUp.retired)
        case .answer(let answer, let retired):
            let catchUp = CatchUp(positions: answer.holds, retired: retired)
            heard(answer, catchUp, node, now, &dice, &effects)
        case .unchanged(let round, let theirs, var view):
            // Of what this node had when it asked, and has no more, it cannot say what it was.
            guard theirs == digest else { break }
            view.standing = standing
            let catchUp = log.catchUp
            let answer = FenceAnswer(round: round, holds: catchUp.positions, view: view)
            heard(answer, catchUp, node, now, &dice, &effects)
        }
        return nil
    }

    /// What this node has synced and which count it follows; see ``ExchangeDigest``.
    var digest: UInt64 { ExchangeDigest.of(log.catchUp, standing) }

    private mutating func heard(
        _ answer: FenceAnswer, _ catchUp: CatchUp, _ node: NodeID, _ now: Instant,
        _ dice: inout Dice, _ effects: inout [InvalidationEffect]
    ) {
        log.caughtUp(catchUp, from: node, now: now, effects: &effects)
        carry(now, &dice)
        var answer = answer
        answer.holds += catchUp.retired
        tell(.heard(answer, node), now, &dice)
    }

    /// Gives `invalidation` the next number of this node, unless its id is known.
    ///
    /// - Throws: ``InvalidationFault``; nothing has happened.
    package mutating func issue(
        _ invalidation: Invalidation, now: Instant, using dice: inout Dice,
        effects: inout [InvalidationEffect]
    ) throws(InvalidationFault) -> Issuance {
        if case .count = invalidation.action { throw .id }
        let issuance = try log.issue(invalidation, now: now, effects: &effects)
        finish(now, &dice, &effects)
        return issuance
    }

    /// Begins to forget members by the operator's word.
    ///
    /// - Throws: ``FenceKeeper/ForgetRefusal``; nothing was begun.
    package mutating func forget(
        _ members: [NodeID], now: Instant, using dice: inout Dice,
        effects: inout [InvalidationEffect]
    ) throws(FenceKeeper.ForgetRefusal) {
        try keeper.forget(members, now: now, using: &dice)
        finish(now, &dice, &effects)
    }

    /// What has to go with the next question to `node`; nil if there is no connection with it.
    package func untold(to node: NodeID) -> Untold? { log.untold(to: node) }

    /// `untold`, with what goes ahead of it, was sent to `node`; not to be told if it was refused.
    package mutating func told(_ untold: Untold, to node: NodeID) { log.told(untold, to: node) }

    /// This node's own records up to `number` are on their way to `node`, ahead of whatever it is
    /// asked from now on; not to be told of what the connection has refused.
    package mutating func pushed(upTo number: UInt64, to node: NodeID) {
        log.pushed(upTo: number, to: node)
    }
}
