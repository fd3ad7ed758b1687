package import Cluster
package import Ground
package import Logging
package import NIOCore
import Platform
import Serving
package import Store
import Synchronization
import Telemetry
import Tiers

/// The coordinator of a node's invalidations, which applies the decisions of
/// `Cluster.InvalidationReplication` to its marks, its journal and its connections with peers.
///
/// Thread-safe. Messages of peers wait in an inbox for the loop that keeps time, or for the next
/// thread that changes something. So one step handles all that have arrived, and no loop that
/// serves clients waits for another. Events are handled in order under one lock, and their
/// invalidations hold when the step ends. Messages to peers are written afterwards by one thread at
/// a time, in the order of the decisions. Waiters for receipts have a lock of their own, and the
/// journal a thread.
package final class PurgeCoordinator: Sendable {
    /// The id under which the node is a member.
    package let id: NodeID
    /// The id of this run of the node.
    package let process: ProcessID
    /// The waiters for receipts.
    package typealias Waiters = ReceiptWaiters<@Sendable () -> Void>
    /// A condition on the state, for which callers wait.
    typealias Condition = @Sendable (borrowing State) -> Bool

    private let tiers: CacheTiers
    let logger: Logger
    /// The function called, under the main lock, when a node without a voter set adopts one.
    private let onVoterSet = Mutex<(@Sendable () -> Void)?>(nil)
    private let loop: any EventLoop
    private let journal: JournalStore
    /// The replication and its waiters.
    let state: Mutex<State>
    let fenceStatus: FenceStatus
    /// The number of applied invalidations, readable without the lock.
    let appliedCounter = Atomic<UInt64>(0)
    /// The events for the next step, in the order of arrival.
    let inbox = Mutex<[ReplicationEvent]>([])
    /// The number of waiting events at which a sender performs the step itself, which limits its
    /// rate.
    private static let inboxMax = 1_024
    /// The waiters for receipts; locked alone or inside ``state``, never the other way round.
    private let receipts: Mutex<PendingReceipts>
    /// The throttle of invalidations that client requests cause.
    let throttle = Mutex(InvalidationThrottle())
    /// The rate limit of log lines about the fence.
    let fenceReport = Mutex(FenceLogLimiter())
    /// The messages to peers that are not written yet.
    let outbox: PeerOutbox

    /// The state under the main lock.
    struct State {
        /// The replication of invalidations.
        var exchange: InvalidationReplication
        var dice: SplitMix64
        /// The queries of peers that this node lags behind, in the order of arrival.
        var catchUpQueue = CatchUpQueue()
        /// The number up to which all of this node's records are synced here.
        var issuedUpTo: UInt64 = 0
        /// The number up to which none of this node's receipts is pending.
        var settledUpTo: UInt64 = 0
        /// The callers that wait for a condition on the state.
        var stepWaiters: [(isOver: Condition, done: @Sendable () -> Void)] = []
        /// The connection with each peer.
        var connections: [NodeID: PeerConnection] = [:]
        /// The time of the scheduled tick; `nil` if none is scheduled.
        var nextTickAt: Instant?
        /// True once no further step is performed.
        var isStopped = false
    }

    /// Creates a coordinator for a node that starts.
    ///
    /// - Parameters:
    ///   - start: the state to start with, and the journal to write to.
    ///   - tiers: the tiers that invalidations apply to.
    ///   - fence: the fence that the coordinator opens and closes.
    ///   - logger: the node's log.
    ///   - loop: the loop that runs the timer.
    package init(
        _ start: InvalidationStartState, tiers: CacheTiers, fence: FenceStatus, logger: Logger,
        on loop: any EventLoop
    ) {
        self.tiers = tiers
        self.logger = logger
        self.loop = loop
        journal = start.journal
        id = start.memberID
        process = start.state.process
        receipts = Mutex(PendingReceipts(process: process))
        var random = SystemRandomNumberGenerator()
        let exchange = InvalidationReplication(start.state, now: SystemClock.now())
        fenceStatus = fence
        outbox = PeerOutbox(logger: logger)
        fenceStatus.window = exchange.window
        state = Mutex(State(exchange: exchange, dice: SplitMix64(seed: random.next())))
    }

    /// Starts the replication; must be called once, before anything else.
    package func start() {
        performStep { $0.exchange.started(now: $1, using: &$0.dice, effects: &$2) }
    }

    /// Waits until all invalidations are synced to disk or a write fails, and then stops for good:
    /// later events and purges are ignored, and waits for receipts do not end.
    ///
    /// - Returns: false if a write has failed; the journal is then marked as lost, so that the next
    ///   start assumes that it lacks invalidations.
    package func stop() async -> Bool {
        let failures = journal.failureCount
        await wait { [journal] in
            $0.exchange.unsyncedBytes == 0 || journal.failureCount != failures
        }
        let (waiting, isWritten) = state.withLock { state in
            state.isStopped = true
            return (state.stepWaiters.takeAll(), state.exchange.unsyncedBytes == 0)
        }
        for waiter in waiting { waiter.done() }
        if !isWritten { await withCheckedContinuation { end in journal.abandon { end.resume() } } }
        await journal.close()
        return isWritten
    }

    /// Registers the function that is called when a node without a voter set adopts one; it must
    /// not call the coordinator.
    func observeVoterSet(_ listener: @escaping @Sendable () -> Void) {
        onVoterSet.withLock { $0 = listener }
    }

    /// Marks the journal as lost, so that the next start becomes another member.
    func abandonIdentity() { journal.abandon() }

    /// Begins a new journal if the disk tier has opened another directory; called periodically.
    package func checkDiskDirectory() {
        journal.checkDiskDirectory()
    }

    // MARK: Events

    /// Handles an event at once, after the waiting ones; ignored after ``stop()``.
    package func handle(_ event: ReplicationEvent) {
        performStep { $0.exchange.handle(event, now: $1, using: &$0.dice, effects: &$2) }
    }

    /// Queues an event for the next step, which follows soon on the coordinator's loop; performs
    /// that step at once if ``inboxMax`` events are waiting.
    func enqueue(_ event: ReplicationEvent) {
        let count = inbox.withLock { inbox in
            inbox.append(event)
            return inbox.count
        }
        if count >= Self.inboxMax { performStep { _, _, _ in } }
        if count == 1 { loop.execute { [weak self] in self?.performStep { _, _, _ in } } }
    }

    /// Applies a purge on this node and queues it for all others, unless one was issued under this
    /// id before.
    ///
    /// - Parameters:
    ///   - purge: the purge.
    ///   - id: the client's id of the purge; `nil` for a new one.
    ///
    /// - Returns: the outcome; `busy`, and nothing was invalidated, if the log accepts nothing at
    ///   present or the coordinator has stopped.
    /// - Throws: `InvalidationFault`; nothing was invalidated.
    package func issue(_ purge: Purge, id: [UInt8]?) throws(InvalidationFault) -> IssueOutcome {
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

    /// Invalidates on this node alone; nothing is invalidated after ``stop()``.
    ///
    /// - Returns: the invalidation version afterwards; requests from before have a lower one.
    package func invalidateLocally(_ purge: Purge) -> InvalidationVersion {
        handle(.purgedLocally(purge))
        return tiers.marks.version
    }

    /// Begins to remove members from the voter set at an operator's request; ignored after
    /// ``stop()``.
    ///
    /// - Throws: the reason for a refusal; nothing has changed then.
    package func forget(_ members: [NodeID]) throws(FenceCoordinator.RemovalRefusal) {
        let outcome = performStep {
            state, now, effects -> Result<Void, FenceCoordinator.RemovalRefusal> in
            Result { () throws(FenceCoordinator.RemovalRefusal) in
                try state.exchange.forget(members, now: now, using: &state.dice, effects: &effects)
            }
        }
        try outcome?.get()
    }

    /// Calls `done` when a record is synced here or, with `byAll`, confirmed by all reachable
    /// members.
    ///
    /// - Parameters:
    ///   - name: the record; one of another node that is not held here counts as confirmed.
    ///   - byAll: true to wait for all reachable members, and until the node knows all members.
    ///   - done: called on any thread, possibly before this returns.
    ///
    /// - Returns: the token for ``cancelWait(_:)``; `nil` if `done` was called at once.
    package func whenConfirmed(
        _ name: RecordID, byAll: Bool, done: @escaping @Sendable () -> Void
    ) -> Waiters.Token? {
        let ticket =
            name.stream == process
            ? receipts.withLock { receipts -> Waiters.Token? in
                if receipts.progress.covers(name.number, isForAll: byAll) { return nil }
                return receipts.waiters.add(done, for: name, awaitsAll: byAll)
            }
            : state.withLock { state -> Waiters.Token? in
                if Self.isConfirmed(name, byAll, state.exchange) { return nil }
                return receipts.withLock { $0.waiters.add(done, for: name, awaitsAll: byAll) }
            }
        if ticket == nil { done() }
        return ticket
    }

    /// Cancels a wait for a receipt; does nothing if it is over.
    package func cancelWait(_ ticket: Waiters.Token) {
        receipts.withLock { $0.waiters.remove(ticket) }
    }

    /// Returns true if a record is synced here or, with `isForAll`, confirmed by all reachable
    /// members; also if it is not held.
    private static func isConfirmed(
        _ name: RecordID, _ isForAll: Bool, _ exchange: borrowing InvalidationReplication
    ) -> Bool {
        guard let receipt = exchange.receipt(of: name) else { return true }
        if isForAll { return receipt.isSettled }
        let own = exchange.node
        return receipt.confirmations.contains { $0.node == own && $0.status.isConfirmed }
    }

    // MARK: Steps

    /// Handles the waiting events, performs `step` and all effects, and wakes waiters.
    ///
    /// - Parameters:
    ///   - wakesWaiters: false if `step` cannot complete a receipt or let this node catch up.
    ///   - step: the change; receives the state, the time and the list of effects.
    ///
    /// - Returns: the result of `step`; `nil` after the stop.
    @discardableResult
    func performStep<R: Sendable>(
        wakesWaiters: Bool = true, _ step: (inout State, Instant, inout [InvalidationEffect]) -> R
    ) -> R? {
        var woken: [@Sendable () -> Void] = []
        let result = state.withLock { state -> R? in
            let (now, events) = (SystemClock.now(), inbox.withLock { $0.takeAll() })
            guard !state.isStopped else { return nil }
            var effects: [InvalidationEffect] = []
            let wasCounting = state.exchange.voterConfiguration != nil
            if !events.isEmpty {
                state.exchange.handle(events, now: now, using: &state.dice, effects: &effects)
            }
            let result = step(&state, now, &effects)
            if !wasCounting, state.exchange.voterConfiguration != nil {
                onVoterSet.withLock { $0 }?()
            }
            // Before any mark: a query with a version behind a mark must not find a count without
            // the purge and go without it. A query that finds this count waits for the lock.
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

    /// Updates the progress of this node's records and, if `wakes`, removes and returns the waiters
    /// for receipts and the queries of peers that need not wait any longer.
    private func takeFinishedWaiters(_ state: inout State, _ wakes: Bool) -> [@Sendable () -> Void]
    {
        let settled = state.exchange.isMembershipComplete ? state.settledUpTo : 0
        let woken = receipts.withLock { receipts -> [@Sendable () -> Void] in
            receipts.progress = .init(issued: state.issuedUpTo, settled: settled)
            guard wakes else { return [] }
            return receipts.takeConfirmed { Self.isConfirmed($0, $1, state.exchange) }
        }
        // The function copies the replication: not without need.
        guard wakes, !state.catchUpQueue.isEmpty else { return woken }
        return woken + state.catchUpQueue.takeReady(isBehind: state.exchange.isBehind)
    }

    /// Schedules the next tick, unless one is scheduled that is not later.
    private func schedule(_ state: inout State) {
        let next = state.exchange.nextTick
        if let wakesAt = state.nextTickAt, wakesAt <= next { return }
        state.nextTickAt = next
        let wait = max(.zero, next - SystemClock.now())
        loop.scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            self?.timerFired(at: next)
        }
    }

    /// Handles a tick if it is the scheduled one.
    private func timerFired(at time: Instant) {
        let isDue = state.withLock { state in
            guard state.nextTickAt == time else { return false }
            state.nextTickAt = nil
            return true
        }
        if isDue { handle(.ticked) }
    }

    /// Performs an effect of the replication.
    private func perform(_ effect: InvalidationEffect, _ state: inout State) {
        switch effect {
        case .apply(let record, let count): apply(record.invalidation.purge, count)
        case .applyLocally(let purge, let count): apply(purge, count)
        case .applyFloors(_, let count): verify(tiers.invalidateEverything(), count)
        case .write(let writes):
            journal.write(writes) { [weak self] in self?.handle($0) }
        case .send(let message, let peers):
            outbox.add(message, on: peers.compactMap { state.connections[$0] })
        case .ownRecordsSynced(let number): state.issuedUpTo = number
        case .receiptsSettled(let number): state.settledUpTo = number
        case .reportConflict(let contradiction):
            logger.critical(
                "fenced until an operator intervenes: invalidations contradict each other",
                metadata: ["what": "\(contradiction)", "way_out": "nuthatch members recover"])
        case .publishWindow(let window): fenceStatus.window = window
        }
    }

    /// Applies a purge to the tiers; `nil` advances the invalidation version and covers nothing.
    private func apply(_ purge: Purge?, _ count: UInt64) {
        let version = tiers.invalidate(
            purge?.targets ?? [], isSoft: purge?.mode == .soft, now: SystemClock.now)
        verify(version, count)
    }

    /// Checks, in debug builds, that the marks have counted as many invalidations as the log.
    private func verify(_ version: InvalidationVersion, _ count: UInt64) {
        assert(version.count == count, "the log counts \(count), and marks \(version.count)")
    }
}

/// The waiters for receipts, and the progress of this node's own records.
struct PendingReceipts {
    /// How far this node's records are confirmed, as of the last step.
    struct Progress {
        /// The number up to which this node's records are synced here.
        var issued: UInt64 = 0
        /// The number up to which all reachable members have confirmed this node's records; 0 while
        /// members may be unknown.
        var settled: UInt64 = 0

        /// Returns true if this node's record `number` is synced or, with `isForAll`, confirmed.
        func covers(_ number: UInt64, isForAll: Bool) -> Bool {
            number <= (isForAll ? settled : issued)
        }
    }

    /// The stream of this node's records.
    let process: ProcessID
    var waiters = PurgeCoordinator.Waiters()
    var progress = Progress()

    /// Creates an empty collection for the node whose records are in the stream `process`.
    init(process: ProcessID) {
        self.process = process
    }

    /// Removes and returns the waiters for confirmed records; `isConfirmed` decides on the records
    /// of other nodes.
    mutating func takeConfirmed(
        others isConfirmed: (_ name: RecordID, _ isForAll: Bool) -> Bool
    ) -> [@Sendable () -> Void] {
        let (process, progress) = (process, progress)
        return waiters.removeCompleted { name, isForAll in
            name.stream == process
                ? progress.covers(name.number, isForAll: isForAll) : isConfirmed(name, isForAll)
        }
    }
}
