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
/// Told from any thread. Events are taken one after the other under one lock, and what follows is
/// done under it too, in order: when an event has been told, what it invalidates is invalidated.
final class InvalidationDesk: Sendable {
    /// Under which id the node is a member.
    let id: NodeID
    let process: ProcessID
    typealias Waiters = ReceiptWaiters<@Sendable () -> Void>

    private unowned let node: NodeCore
    private let loop: any EventLoop
    private let journal: JournalKeeper
    private let state: Mutex<State>
    private let fence: FenceGate
    private let applied = Atomic<UInt64>(0)

    private struct State {
        var exchange: InvalidationExchange
        var dice: Dice
        /// Those that wait for a receipt.
        var waiters = Waiters()
        /// Questions of peers that this node lags behind.
        var lagging: [Lagging] = []
        /// Those that wait until the node is counted no longer.
        var leavers: [@Sendable () -> Void] = []
        /// Those that wait until the fence is open.
        var openers: [@Sendable () -> Void] = []
        /// With whom this node speaks, and on which connection.
        var lines: [NodeID: PeerConnection] = [:]
        var wakesAt: Instant?
        var isStopped = false
    }

    /// A question that is answered when this node has what its asker has.
    private struct Lagging {
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
        fence.window = exchange.window
        state = Mutex(State(exchange: exchange, dice: Dice(seed: random.next())))
    }

    /// To be called once, before anything else.
    func start() {
        change { $0.exchange.started(now: $1, using: &$0.dice, effects: &$2) }
    }

    /// Does what was begun; nothing is done any more when it returns.
    func stop() async {
        let waiters = state.withLock { state in
            state.isStopped = true
            defer { (state.leavers, state.openers) = ([], []) }
            return state.leavers + state.openers
        }
        for done in waiters { done() }
        await journal.close()
    }

    /// From its next start on the node is another member, and holds nothing for certain.
    func abandonMember() { journal.abandon() }

    /// To be called now and then.
    func followDisk() {
        journal.followDisk()
    }

    // MARK: Read from any thread

    /// Changes with every invalidation.
    var appliedCount: UInt64 { applied.load(ordering: .acquiring) }

    /// Records that were applied since the start, those that are held, and members that count.
    var figures: (applied: UInt64, held: Int, counted: Int) {
        state.withLock {
            // A change is not made before it is settled.
            let standing = $0.exchange.standing
            let counted = (standing?.previous ?? standing?.set)?.members.count ?? 0
            return ($0.exchange.appliedCount, $0.exchange.heldCount, counted)
        }
    }
    var isCounting: Bool { figures.counted > 0 }
    /// Majorities are of this node, too.
    var isCounted: Bool { state.withLock { $0.exchange.isCounted } }

    func receipt(of name: RecordName) -> Receipt? {
        state.withLock { $0.exchange.receipt(of: name) }
    }

    func record(withID id: [UInt8]) -> RecordName? {
        state.withLock { $0.exchange.record(withID: id) }
    }

    /// The receipts of the purges that came last, at most `countMax`, the newest first.
    func lastPurges(_ countMax: Int) -> [Receipt] {
        state.withLock { state in
            state.exchange.lastPurges(countMax).compactMap { state.exchange.receipt(of: $0) }
        }
    }

    /// How many of this node's records somebody has yet to confirm.
    var receiptsPending: Int { state.withLock { Int(clamping: $0.exchange.receiptsPending) } }

    /// By member, how many invalidations are synced here that it has not confirmed.
    func lags(of nodes: [NodeID]) -> [NodeID: UInt64] {
        state.withLock { state in
            Dictionary(uniqueKeysWithValues: nodes.map { ($0, state.exchange.lag(of: $0)) })
        }
    }

    /// Counted and connected members, this node included.
    func table(at now: Instant) -> [FenceKeeper.Line] {
        state.withLock { $0.exchange.table(at: now) }
    }

    // MARK: Told

    func handle(_ event: ExchangeEvent) {
        change { $0.exchange.handle(event, now: $1, using: &$0.dice, effects: &$2) }
    }

    /// Purges, unless that was asked for before under this id; without one it is given a new one.
    ///
    /// - Throws: `InvalidationFault`; nothing was invalidated.
    func issue(_ purge: Purge, id: [UInt8]?) throws(InvalidationFault) -> Issuance {
        var outcome = Result<Issuance, InvalidationFault>.success(.busy)
        change { state, now, effects in
            let id = id ?? Array("\(NodeID(using: &state.dice))".utf8)
            let invalidation = Invalidation(id: id, .purge(purge))
            do throws(InvalidationFault) {
                outcome = .success(
                    try state.exchange.issue(
                        invalidation, now: now, using: &state.dice, effects: &effects))
            } catch {
                outcome = .failure(error)
            }
        }
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
        var refusal: FenceKeeper.ForgetRefusal?
        change { state, now, effects in
            do throws(FenceKeeper.ForgetRefusal) {
                try state.exchange.forget(
                    members, now: now, using: &state.dice, effects: &effects)
            } catch {
                refusal = error
            }
        }
        if let refusal { throw refusal }
    }

    /// `done` is told, on any thread, when the record is synced here; with `isForAll` when nobody's
    /// word is outstanding who can be reached.
    ///
    /// - Returns: what ``waitNoLonger(_:)`` takes; nil if it was told at once.
    func whenKnown(
        _ name: RecordName, isForAll: Bool, done: @escaping @Sendable () -> Void
    ) -> Waiters.Ticket? {
        let ticket = state.withLock { state -> Waiters.Ticket? in
            if Self.isOver(name, isForAll, state.exchange) { return nil }
            return state.waiters.add(done, for: name, isForAll: isForAll)
        }
        if ticket == nil { done() }
        return ticket
    }

    /// Nobody wants to be told any more.
    func waitNoLonger(_ ticket: Waiters.Ticket) {
        state.withLock { $0.waiters.remove(ticket) }
    }

    private static func isOver(
        _ name: RecordName, _ isForAll: Bool, _ exchange: borrowing InvalidationExchange
    ) -> Bool {
        guard let receipt = exchange.receipt(of: name) else { return true }
        if isForAll { return receipt.isSettled }
        let own = exchange.node
        return receipt.lines.contains { $0.node == own && $0.standing.isConfirmed }
    }

    // MARK: Questions

    /// What `peer` has to know before a question; nil if `connection` is no longer that on which
    /// this node speaks with it, so that nothing may be asked there.
    ///
    /// This node's own records up to `pushed` went over the connection before. When it is sent,
    /// ``told(_:to:)`` is to be told.
    func untold(to peer: NodeID, pushed: UInt64, on connection: PeerConnection) -> Untold? {
        state.withLock { state -> Untold? in
            guard state.lines[peer] === connection else { return nil }
            state.exchange.pushed(upTo: pushed, to: peer)
            return state.exchange.untold(to: peer)
        }
    }

    /// `untold` was sent to `peer`.
    func told(_ untold: Untold, to peer: NodeID) {
        state.withLock { $0.exchange.told(untold, to: peer) }
    }

    /// Takes in what came with a question.
    func took(_ question: PeerQuestion, from peer: NodeID) {
        guard !question.knowledge.isEmpty || !question.invalidations.isEmpty else { return }
        let records = question.invalidations.compactMap { InvalidationRecord.read($0.span) }
        handle(.question(knowledge: question.knowledge, records: records, from: peer))
    }

    /// This node lacks something that `peer` has told of.
    func isBehind(_ peer: NodeID) -> Bool {
        state.withLock { $0.exchange.isBehind(peer) }
    }

    /// `done` is told, on any thread, when this node has all that `peer` has told of; if that is
    /// not so within `limit`, it may never be told.
    func whenCaughtUp(
        with peer: NodeID, within limit: Interval, done: @escaping @Sendable () -> Void
    ) {
        let isCaughtUp = state.withLock { state in
            guard state.exchange.isBehind(peer) else { return true }
            let now = SystemClock.now()
            let pastCount = state.lagging.prefix { $0.until <= now }.count
            state.lagging.removeFirst(pastCount)
            state.lagging.append(Lagging(asker: peer, until: now + limit, done: done))
            return false
        }
        if isCaughtUp { done() }
    }

    // MARK: Members

    /// Returns when the node, which was told that it goes, is counted no longer, or will not be
    /// forgotten.
    func left() async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            let hasLeft = state.withLock { state in
                if state.exchange.isLeaveOver || state.isStopped { return true }
                state.leavers.append { done.resume() }
                return false
            }
            if hasLeft { done.resume() }
        }
    }

    /// Returns when the node is counted, and proven to know what was invalidated.
    func opened() async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            let isOpen = state.withLock { state in
                if isProven(state) || state.isStopped { return true }
                state.openers.append { done.resume() }
                return false
            }
            if isOpen { done.resume() }
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

    private func isProven(_ state: borrowing State) -> Bool {
        state.exchange.isCounted && fence.isOpen(at: SystemClock.now())
    }

    // MARK: Steps

    private func change(_ step: (inout State, Instant, inout [InvalidationEffect]) -> Void) {
        var woken: [@Sendable () -> Void] = []
        state.withLock { state in
            guard !state.isStopped else { return }
            var effects: [InvalidationEffect] = []
            let wasCounting = state.exchange.standing != nil
            step(&state, SystemClock.now(), &effects)
            if !wasCounting, state.exchange.standing != nil { node.hub?.followsCount() }
            // Before any mark: a question whose stamp is behind a mark must not find a count that
            // does not hold the purge, and go without it. Who finds this one waits for the lock.
            applied.store(state.exchange.appliedCount, ordering: .releasing)
            for effect in effects { run(effect, &state) }
            let isAwaited = !state.leavers.isEmpty || !state.waiters.isEmpty
            if !effects.isEmpty || isAwaited { woken = Self.wake(&state) }
            if !state.openers.isEmpty, isProven(state) {
                woken += state.openers
                state.openers = []
            }
            schedule(&state)
        }
        for done in woken { done() }
    }

    private static func wake(_ state: inout State) -> [@Sendable () -> Void] {
        var woken: [@Sendable () -> Void] = []
        if !state.waiters.isEmpty {
            var waiters = Waiters()
            swap(&waiters, &state.waiters)
            woken = waiters.take { isOver($0, $1, state.exchange) }
            state.waiters = waiters
        }
        if !state.lagging.isEmpty {
            woken += state.lagging.filter { !state.exchange.isBehind($0.asker) }.map(\.done)
            state.lagging = state.lagging.filter { state.exchange.isBehind($0.asker) }
        }
        if state.exchange.isLeaveOver {
            woken += state.leavers
            state.leavers = []
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
            journal.write(writes) { [weak self] in self?.handle($0.event) }
        case .send(let message, let peers):
            for peer in peers { state.lines[peer]?.say(message) }
        case .issued, .settled: break
        case .contradiction(let contradiction):
            node.logger.critical(
                "fenced until an operator decides: invalidations contradict each other",
                metadata: ["what": "\(contradiction)", "way_out": "nuthatch members recover"])
        case .window(let window): fence.window = window
        }
    }
}
