import Cluster
import Ground
import Logging
import NIOCore
import Serving
import Store
import Synchronization
import Telemetry
import Tiers

/// What a node does about invalidations: runs the decisions of `Cluster.InvalidationReplication`
/// over its marks, its journal, and the connections with its peers.
///
/// Told from any thread. What peers say waits in an inbox for the loop that keeps time, or for
/// whoever is next to change something: so one step takes in all that has come, and no loop that
/// serves clients waits for another. Events are taken in order, under one lock, and what they
/// invalidate is invalidated when the step is over. What is to be told to peers is written by
/// one thread at a time after that, in the order in which it was decided; those that wait for
/// receipts have a lock of their own, and the journal a thread.
final class PurgeCoordinator: Sendable {
    /// Under which id the node is a member.
    let id: NodeID
    let process: ProcessID
    typealias Waiters = ReceiptWaiters<@Sendable () -> Void>
    typealias Condition = @Sendable (borrowing State) -> Bool

    private unowned let node: NodeCore
    private let loop: any EventLoop
    private let journal: JournalStore
    let state: Mutex<State>
    private let fenceStatus: FenceStatus
    let appliedCounter = Atomic<UInt64>(0)
    /// What is to be taken in by the next step, in the order in which it came.
    let inbox = Mutex<[ReplicationEvent]>([])
    /// Who tells more does the step himself, and so tells no faster than that is done.
    private static let inboxMax = 1_024
    /// Locked alone or while ``state`` is, never the other way round.
    let receipts = Mutex(ReceiptState())
    private let outbox: PeerOutbox

    struct State {
        var exchange: InvalidationReplication
        var dice: SplitMix64
        /// Questions of peers that this node lags behind.
        var catchUpWaiters: [CatchUpWaiter] = []
        /// Of this node's records up to these numbers all are synced here, and none is pending.
        var issuedUpTo: UInt64 = 0
        var settledUpTo: UInt64 = 0
        /// Who waits for something that a step may bring about.
        var stepWaiters: [(isOver: Condition, done: @Sendable () -> Void)] = []
        /// With whom this node speaks, and on which connection.
        var connections: [NodeID: PeerConnection] = [:]
        var nextTickAt: Instant?
        var isStopped = false
    }

    /// Who waits for receipts, and how far this node's records have come.
    struct ReceiptState {
        var waiters = Waiters()
        /// Of this node's records up to these numbers all are synced here, and nobody's word is
        /// outstanding; as of the last step.
        var progress = (issued: UInt64(0), settled: UInt64(0))

        /// Nothing is to be waited for of this node's record `number`.
        func isConfirmed(_ number: UInt64, isForAll: Bool) -> Bool {
            number <= (isForAll ? progress.settled : progress.issued)
        }
    }

    /// A question that is answered when this node has what its asker has.
    struct CatchUpWaiter {
        let requester: NodeID
        /// It was answered otherwise by then.
        let deadline: Instant
        let done: @Sendable () -> Void
    }

    /// A node that starts; `loop` keeps its time.
    init(
        of node: NodeCore, _ start: InvalidationReplication.InitialState, journal: JournalStore,
        on loop: any EventLoop
    ) {
        self.node = node
        self.loop = loop
        self.journal = journal
        id = start.node
        process = start.process
        var random = SystemRandomNumberGenerator()
        let exchange = InvalidationReplication(start, now: SystemClock.now())
        fenceStatus = node.fence
        outbox = PeerOutbox(logger: node.logger)
        fenceStatus.window = exchange.window
        state = Mutex(State(exchange: exchange, dice: SplitMix64(seed: random.next())))
    }

    /// To be called once, before anything else.
    func start() {
        performStep { $0.exchange.started(now: $1, using: &$0.dice, effects: &$2) }
    }

    /// Does what was begun, and has on disk what was invalidated; nothing is done any more when it
    /// returns.
    ///
    /// False if one more attempt to write it has failed. Then the next start holds nothing for
    /// certain.
    func stop() async -> Bool {
        let failures = journal.failureCount
        await wait { [journal] in
            $0.exchange.unsyncedBytes == 0 || journal.failureCount != failures
        }
        let (waiting, isWritten) = state.withLock { state in
            state.isStopped = true
            return (state.stepWaiters.takeAll(), state.exchange.unsyncedBytes == 0)
        }
        for waiter in waiting { waiter.done() }
        if !isWritten { journal.abandon() }
        await journal.close()
        return isWritten
    }

    /// From its next start on the node is another member, and holds nothing for certain.
    func abandonIdentity() { journal.abandon() }

    /// To be called now and then.
    func checkDiskDirectory() {
        journal.checkDiskDirectory()
    }

    // MARK: Told

    func handle(_ event: ReplicationEvent) {
        performStep { $0.exchange.handle(event, now: $1, using: &$0.dice, effects: &$2) }
    }

    /// The same in a moment, before anything that is told or asked later; where very many wait, at
    /// once.
    func enqueue(_ event: ReplicationEvent) {
        let count = inbox.withLock { inbox in
            inbox.append(event)
            return inbox.count
        }
        if count >= Self.inboxMax { performStep { _, _, _ in } }
        if count == 1 { loop.execute { [weak self] in self?.performStep { _, _, _ in } } }
    }

    /// Purges, unless that was asked for before under this id; without one it is given a new one.
    ///
    /// - Throws: `InvalidationFault`; nothing was invalidated.
    func issue(_ purge: Purge, id: [UInt8]?) throws(InvalidationFault) -> IssueOutcome {
        let outcome = performStep(wakesWaiters: false) {
            state, now, effects -> Result<IssueOutcome, InvalidationFault> in
            let id = id ?? Array("\(NodeID(using: &state.dice))".utf8)
            let invalidation = Invalidation(id: id, .purge(purge))
            return Result { () throws(InvalidationFault) in
                try state.exchange.issue(
                    invalidation, now: now, using: &state.dice, effects: &effects)
            }
        }
        guard let outcome else { return .busy }
        return try outcome.get()
    }

    /// Invalidates here alone; gives what no request from before is stamped with.
    func invalidateLocally(_ purge: Purge) -> InvalidationVersion {
        handle(.purgedLocally(purge))
        return node.marks.version
    }

    /// Begins to forget members that are gone for good, by the operator's word.
    ///
    /// - Throws: why that cannot be; nothing was begun.
    func forget(_ members: [NodeID]) throws(FenceCoordinator.ForgetRefusal) {
        let outcome = performStep {
            state, now, effects -> Result<Void, FenceCoordinator.ForgetRefusal> in
            Result { () throws(FenceCoordinator.ForgetRefusal) in
                try state.exchange.forget(members, now: now, using: &state.dice, effects: &effects)
            }
        }
        try outcome?.get()
    }

    /// `done` is told, on any thread, when the record is synced here; with `isForAll` when nobody's
    /// word is outstanding who can be reached.
    ///
    /// - Returns: what ``waitNoLonger(_:)`` takes; nil if it was told at once.
    func whenConfirmed(
        _ name: RecordID, byAll: Bool, done: @escaping @Sendable () -> Void
    ) -> Waiters.Token? {
        let ticket =
            name.stream == process
            ? receipts.withLock { receipts -> Waiters.Token? in
                if receipts.isConfirmed(name.number, isForAll: byAll) { return nil }
                return receipts.waiters.add(done, for: name, awaitsAll: byAll)
            }
            : state.withLock { state -> Waiters.Token? in
                if Self.isConfirmed(name, byAll, state.exchange) { return nil }
                return receipts.withLock { $0.waiters.add(done, for: name, awaitsAll: byAll) }
            }
        if ticket == nil { done() }
        return ticket
    }

    /// Nobody wants to be told any more.
    func cancelWait(_ ticket: Waiters.Token) {
        receipts.withLock { $0.waiters.remove(ticket) }
    }

    private static func isConfirmed(
        _ name: RecordID, _ isForAll: Bool, _ exchange: borrowing InvalidationReplication
    ) -> Bool {
        guard let receipt = exchange.receipt(of: name) else { return true }
        if isForAll { return receipt.isSettled }
        let own = exchange.node
        return receipt.confirmations.contains { $0.node == own && $0.status.isConfirmed }
    }

    // MARK: Members

    /// Returns when the node, which was told that it goes, is counted no longer, or will not be
    /// forgotten.
    func waitUntilLeft() async {
        await wait { $0.exchange.isLeaveComplete }
        outbox.finish()
    }

    /// Returns when the node is counted, and proven to know what was invalidated.
    func waitUntilCurrent() async {
        await wait { [fenceStatus] in
            $0.exchange.isVoter && fenceStatus.isOpen(at: SystemClock.now())
        }
    }

    /// Returns after the step that brings it about, or when nothing is done any more.
    private func wait(until isOver: @escaping Condition) async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            let isOverNow = state.withLock { state in
                if state.isStopped || isOver(state) { return true }
                state.stepWaiters.append((isOver, { done.resume() }))
                return false
            }
            if isOverNow { done.resume() }
        }
    }

    /// Who is believed to be here, and with whom there is which connection.
    ///
    /// In one step: nothing is asked on a connection of which the log does not know that all is to
    /// be told there anew.
    func membershipChanged(_ view: MemberView) {
        performStep { state, now, effects in
            let gone = state.connections.keys.filter { view.connections[$0] == nil }.sorted()
            let new = view.connections.filter { state.connections[$0.key] !== $0.value }
                .sorted { $0.key < $1.key }
            state.connections = view.connections
            let members = view.records.dropFirst().map {
                ReplicationMember($0.member.id, $0.member.process, .init($0.state))
            }
            let events =
                gone.map { ReplicationEvent.disconnected($0) } + [.membersChanged(members)]
                + new.map { .connected($0.key, on: $0.value.id) }
            for event in events {
                state.exchange.handle(event, now: now, using: &state.dice, effects: &effects)
            }
        }
    }

    // MARK: Steps

    /// Takes in what has come, and after it does `step`; if that `wakes`, somebody may have waited
    /// for it.
    ///
    /// - Returns: what the step gives; nil if nothing is done any more.
    @discardableResult
    func performStep<R: Sendable>(
        wakesWaiters: Bool = true, _ step: (inout State, Instant, inout [InvalidationEffect]) -> R
    ) -> R? {
        var woken: [@Sendable () -> Void] = []
        let result = state.withLock { state -> R? in
            let (now, events) = (SystemClock.now(), drainInbox())
            guard !state.isStopped else { return nil }
            var effects: [InvalidationEffect] = []
            let wasCounting = state.exchange.voterConfiguration != nil
            if !events.isEmpty {
                state.exchange.handle(events, now: now, using: &state.dice, effects: &effects)
            }
            let result = step(&state, now, &effects)
            if !wasCounting, state.exchange.voterConfiguration != nil {
                node.hub?.voterSetAdopted()
            }
            // Before any mark: a question whose stamp is behind a mark must not find a count that
            // does not hold the purge, and go without it. Who finds this one waits for the lock.
            appliedCounter.store(state.exchange.appliedCount, ordering: .releasing)
            for effect in effects { perform(effect, &state) }
            woken = takeFinishedWaiters(&state, wakesWaiters || !events.isEmpty)
            if !state.stepWaiters.isEmpty {
                let over = state.stepWaiters.map { $0.isOver(state) }
                woken += zip(state.stepWaiters, over).filter(\.1).map(\.0.done)
                state.stepWaiters = zip(state.stepWaiters, over).filter { !$0.1 }.map(\.0)
            }
            schedule(&state)
            return result
        }
        outbox.write()
        for done in woken { done() }
        return result
    }

    private func drainInbox() -> [ReplicationEvent] { inbox.withLock { $0.takeAll() } }

    /// Says how far this node's records are; if somebody may have waited for what was done, gives
    /// those that wait no longer.
    private func takeFinishedWaiters(_ state: inout State, _ wakes: Bool) -> [@Sendable () -> Void]
    {
        let settled = state.exchange.isMembershipComplete ? state.settledUpTo : 0
        var woken = receipts.withLock { receipts -> [@Sendable () -> Void] in
            receipts.progress = (state.issuedUpTo, settled)
            guard wakes else { return [] }
            var waiters = Waiters()
            swap(&waiters, &receipts.waiters)
            defer { receipts.waiters = waiters }
            return waiters.removeCompleted { name, isForAll in
                name.stream == process
                    ? receipts.isConfirmed(name.number, isForAll: isForAll)
                    : Self.isConfirmed(name, isForAll, state.exchange)
            }
        }
        guard wakes else { return [] }
        if !state.catchUpWaiters.isEmpty {
            woken += state.catchUpWaiters.filter { !state.exchange.isBehind($0.requester) }.map(
                \.done)
            state.catchUpWaiters = state.catchUpWaiters.filter {
                state.exchange.isBehind($0.requester)
            }
        }
        return woken
    }

    private func schedule(_ state: inout State) {
        let next = state.exchange.nextTick
        if let wakesAt = state.nextTickAt, wakesAt <= next { return }
        state.nextTickAt = next
        let wait = max(.zero, next - SystemClock.now())
        loop.scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            self?.timerFired(at: next)
        }
    }

    private func timerFired(at time: Instant) {
        let isDue = state.withLock { state in
            guard state.nextTickAt == time else { return false }
            state.nextTickAt = nil
            return true
        }
        if isDue { handle(.ticked) }
    }

    private func perform(_ effect: InvalidationEffect, _ state: inout State) {
        switch effect {
        case .apply(let record, let count): node.applyPurge(record.invalidation.purge, count)
        case .applyLocally(let purge, let count): node.applyPurge(purge, count)
        case .applyFloors(_, let count): node.invalidateEverything(count)
        case .write(let writes):
            journal.write(writes) { [weak self] in self?.handle($0) }
        case .send(let message, let peers):
            outbox.add(message, on: peers.compactMap { state.connections[$0] })
        case .ownRecordsSynced(let number): state.issuedUpTo = number
        case .receiptsSettled(let number): state.settledUpTo = number
        case .reportConflict(let contradiction):
            node.logger.critical(
                "fenced until an operator decides: invalidations contradict each other",
                metadata: ["what": "\(contradiction)", "way_out": "nuthatch members recover"])
        case .publishWindow(let window): fenceStatus.window = window
        }
    }
}
