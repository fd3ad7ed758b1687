import Cluster
import Ground
import Logging
import NIOCore
import Serving
import Store
import Synchronization
import Telemetry
import Tiers

/// What a node does about invalidations: runs the decisions of `Cluster.InvalidationExchange` over
/// its marks, its journal, and the connections with its peers.
///
/// Told from any thread. What peers say waits in an inbox for the loop that keeps time, or for
/// whoever is next to change something: so one step takes in all that has come, and no loop that
/// serves clients waits for another. Events are taken in order, under one lock, and what they
/// invalidate is invalidated when the step is over. What is to be told to peers is written by
/// one thread at a time after that, in the order in which it was decided; those that wait for
/// receipts have a lock of their own, and the journal a thread.
final class InvalidationDesk: Sendable {
    /// Under which id the node is a member.
    let id: NodeID
    let process: ProcessID
    typealias Waiters = ReceiptWaiters<@Sendable () -> Void>
    typealias Condition = @Sendable (borrowing State) -> Bool

    private unowned let node: NodeCore
    private let loop: any EventLoop
    private let journal: JournalKeeper
    let state: Mutex<State>
    private let fence: FenceGate
    let applied = Atomic<UInt64>(0)
    /// What is to be taken in by the next step, in the order in which it came.
    let inbox = Mutex<[ExchangeEvent]>([])
    /// Who tells more does the step himself, and so tells no faster than that is done.
    private static let inboxMax = 1_024
    /// Locked alone or while ``state`` is, never the other way round.
    let receipts = Mutex(Receipts())
    private let outbox: PeerOutbox

    struct State {
        var exchange: InvalidationExchange
        var dice: Dice
        /// Questions of peers that this node lags behind.
        var lagging: [Lagging] = []
        /// Of this node's records up to these numbers all are synced here, and none is pending.
        var issuedUpTo: UInt64 = 0
        var settledUpTo: UInt64 = 0
        /// Who waits for something that a step may bring about.
        var waiting: [(isOver: Condition, done: @Sendable () -> Void)] = []
        /// With whom this node speaks, and on which connection.
        var lines: [NodeID: PeerConnection] = [:]
        var wakesAt: Instant?
        var isStopped = false
    }

    /// Who waits for receipts, and how far this node's records have come.
    struct Receipts {
        var waiters = Waiters()
        /// Of this node's records up to these numbers all are synced here, and nobody's word is
        /// outstanding; as of the last step.
        var known = (issued: UInt64(0), settled: UInt64(0))

        /// Nothing is to be waited for of this node's record `number`.
        func isOver(_ number: UInt64, isForAll: Bool) -> Bool {
            number <= (isForAll ? known.settled : known.issued)
        }
    }

    /// A question that is answered when this node has what its asker has.
    struct Lagging {
        let asker: NodeID
        /// It was answered otherwise by then.
        let until: Instant
        let done: @Sendable () -> Void
    }

    /// A node that starts; `loop` keeps its time.
    init(
        of node: NodeCore, _ start: InvalidationExchange.Start, journal: JournalKeeper,
        on loop: any EventLoop
    ) {
        self.node = node
        self.loop = loop
        self.journal = journal
        id = start.node
        process = start.process
        var random = SystemRandomNumberGenerator()
        let exchange = InvalidationExchange(start, now: SystemClock.now())
        fence = node.fence
        outbox = PeerOutbox(logger: node.logger)
        fence.window = exchange.window
        state = Mutex(State(exchange: exchange, dice: Dice(seed: random.next())))
    }

    /// To be called once, before anything else.
    func start() {
        change { $0.exchange.started(now: $1, using: &$0.dice, effects: &$2) }
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
            return (state.waiting.takeAll(), state.exchange.unsyncedBytes == 0)
        }
        for waiter in waiting { waiter.done() }
        if !isWritten { journal.abandon() }
        await journal.close()
        return isWritten
    }

    /// From its next start on the node is another member, and holds nothing for certain.
    func abandonMember() { journal.abandon() }

    /// To be called now and then.
    func followDisk() {
        journal.followDisk()
    }

    // MARK: Told

    func handle(_ event: ExchangeEvent) {
        change { $0.exchange.handle(event, now: $1, using: &$0.dice, effects: &$2) }
    }

    /// The same in a moment, before anything that is told or asked later; where very many wait, at
    /// once.
    func handleSoon(_ event: ExchangeEvent) {
        let count = inbox.withLock { inbox in
            inbox.append(event)
            return inbox.count
        }
        if count >= Self.inboxMax { change { _, _, _ in } }
        if count == 1 { loop.execute { [weak self] in self?.change { _, _, _ in } } }
    }

    /// Purges, unless that was asked for before under this id; without one it is given a new one.
    ///
    /// - Throws: `InvalidationFault`; nothing was invalidated.
    func issue(_ purge: Purge, id: [UInt8]?) throws(InvalidationFault) -> Issuance {
        let outcome = change(wakes: false) {
            state, now, effects -> Result<Issuance, InvalidationFault> in
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
    func changedLocally(_ purge: Purge) -> Stamp {
        handle(.changedLocally(purge))
        return node.marks.stamp
    }

    /// Begins to forget members that are gone for good, by the operator's word.
    ///
    /// - Throws: why that cannot be; nothing was begun.
    func forget(_ members: [NodeID]) throws(FenceKeeper.ForgetRefusal) {
        let outcome = change { state, now, effects -> Result<Void, FenceKeeper.ForgetRefusal> in
            Result { () throws(FenceKeeper.ForgetRefusal) in
                try state.exchange.forget(members, now: now, using: &state.dice, effects: &effects)
            }
        }
        try outcome?.get()
    }

    /// `done` is told, on any thread, when the record is synced here; with `isForAll` when nobody's
    /// word is outstanding who can be reached.
    ///
    /// - Returns: what ``waitNoLonger(_:)`` takes; nil if it was told at once.
    func whenKnown(
        _ name: RecordName, isForAll: Bool, done: @escaping @Sendable () -> Void
    ) -> Waiters.Ticket? {
        let ticket =
            name.stream == process
            ? receipts.withLock { receipts -> Waiters.Ticket? in
                if receipts.isOver(name.number, isForAll: isForAll) { return nil }
                return receipts.waiters.add(done, for: name, isForAll: isForAll)
            }
            : state.withLock { state -> Waiters.Ticket? in
                if Self.isOver(name, isForAll, state.exchange) { return nil }
                return receipts.withLock { $0.waiters.add(done, for: name, isForAll: isForAll) }
            }
        if ticket == nil { done() }
        return ticket
    }

    /// Nobody wants to be told any more.
    func waitNoLonger(_ ticket: Waiters.Ticket) {
        receipts.withLock { $0.waiters.remove(ticket) }
    }

    private static func isOver(
        _ name: RecordName, _ isForAll: Bool, _ exchange: borrowing InvalidationExchange
    ) -> Bool {
        guard let receipt = exchange.receipt(of: name) else { return true }
        if isForAll { return receipt.isSettled }
        let own = exchange.node
        return receipt.lines.contains { $0.node == own && $0.standing.isConfirmed }
    }

    // MARK: Members

    /// Returns when the node, which was told that it goes, is counted no longer, or will not be
    /// forgotten.
    func left() async {
        await wait { $0.exchange.isLeaveOver }
        outbox.finish()
    }

    /// Returns when the node is counted, and proven to know what was invalidated.
    func opened() async {
        await wait { [fence] in
            $0.exchange.isCounted && fence.isOpen(at: SystemClock.now())
        }
    }

    /// Returns after the step that brings it about, or when nothing is done any more.
    private func wait(until isOver: @escaping Condition) async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            let isOverNow = state.withLock { state in
                if state.isStopped || isOver(state) { return true }
                state.waiting.append((isOver, { done.resume() }))
                return false
            }
            if isOverNow { done.resume() }
        }
    }

    /// Who is believed to be here, and with whom there is which connection.
    ///
    /// In one step: nothing is asked on a connection of which the log does not know that all is to
    /// be told there anew.
    func follow(_ view: MemberView) {
        change { state, now, effects in
            let gone = state.lines.keys.filter { view.connections[$0] == nil }.sorted()
            let new = view.connections.filter { state.lines[$0.key] !== $0.value }
                .sorted { $0.key < $1.key }
            state.lines = view.connections
            let members = view.records.dropFirst().map {
                ExchangeMember($0.member.id, $0.member.process, .init($0.state))
            }
            let events =
                gone.map { ExchangeEvent.disconnected($0) } + [.membersChanged(members)]
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
    func change<R: Sendable>(
        wakes: Bool = true, _ step: (inout State, Instant, inout [InvalidationEffect]) -> R
    ) -> R? {
        var woken: [@Sendable () -> Void] = []
        let result = state.withLock { state -> R? in
            let (now, events) = (SystemClock.now(), takeInbox())
            guard !state.isStopped else { return nil }
            var effects: [InvalidationEffect] = []
            let wasCounting = state.exchange.standing != nil
            if !events.isEmpty {
                state.exchange.handle(events, now: now, using: &state.dice, effects: &effects)
            }
            let result = step(&state, now, &effects)
            if !wasCounting, state.exchange.standing != nil { node.hub?.followsCount() }
            // Before any mark: a question whose stamp is behind a mark must not find a count that
            // does not hold the purge, and go without it. Who finds this one waits for the lock.
            applied.store(state.exchange.appliedCount, ordering: .releasing)
            for effect in effects { run(effect, &state) }
            woken = wake(&state, wakes || !events.isEmpty)
            if !state.waiting.isEmpty {
                let over = state.waiting.map { $0.isOver(state) }
                woken += zip(state.waiting, over).filter(\.1).map(\.0.done)
                state.waiting = zip(state.waiting, over).filter { !$0.1 }.map(\.0)
            }
            schedule(&state)
            return result
        }
        outbox.write()
        for done in woken { done() }
        return result
    }

    private func takeInbox() -> [ExchangeEvent] { inbox.withLock { $0.takeAll() } }

    /// Says how far this node's records are; if somebody may have waited for what was done, gives
    /// those that wait no longer.
    private func wake(_ state: inout State, _ wakes: Bool) -> [@Sendable () -> Void] {
        let settled = state.exchange.isCompanyKnown ? state.settledUpTo : 0
        var woken = receipts.withLock { receipts -> [@Sendable () -> Void] in
            receipts.known = (state.issuedUpTo, settled)
            guard wakes else { return [] }
            var waiters = Waiters()
            swap(&waiters, &receipts.waiters)
            defer { receipts.waiters = waiters }
            return waiters.take { name, isForAll in
                name.stream == process
                    ? receipts.isOver(name.number, isForAll: isForAll)
                    : Self.isOver(name, isForAll, state.exchange)
            }
        }
        guard wakes else { return [] }
        if !state.lagging.isEmpty {
            woken += state.lagging.filter { !state.exchange.isBehind($0.asker) }.map(\.done)
            state.lagging = state.lagging.filter { state.exchange.isBehind($0.asker) }
        }
        return woken
    }

    private func schedule(_ state: inout State) {
        let next = state.exchange.nextTick
        if let wakesAt = state.wakesAt, wakesAt <= next { return }
        state.wakesAt = next
        let wait = max(.zero, next - SystemClock.now())
        loop.scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            self?.ticked(at: next)
        }
    }

    private func ticked(at time: Instant) {
        let isDue = state.withLock { state in
            guard state.wakesAt == time else { return false }
            state.wakesAt = nil
            return true
        }
        if isDue { handle(.ticked) }
    }

    private func run(_ effect: InvalidationEffect, _ state: inout State) {
        switch effect {
        case .apply(let record, let count): node.mark(record.invalidation.purge, count)
        case .applyLocally(let purge, let count): node.mark(purge, count)
        case .applyFloors(_, let count): node.markAllUnknown(count)
        case .write(let writes):
            journal.write(writes) { [weak self] in self?.handle($0) }
        case .send(let message, let peers):
            outbox.add(message, on: peers.compactMap { state.lines[$0] })
        case .issued(let number): state.issuedUpTo = number
        case .settled(let number): state.settledUpTo = number
        case .contradiction(let contradiction):
            node.logger.critical(
                "fenced until an operator decides: invalidations contradict each other",
                metadata: ["what": "\(contradiction)", "way_out": "nuthatch members recover"])
        case .window(let window): fence.window = window
        }
    }
}
