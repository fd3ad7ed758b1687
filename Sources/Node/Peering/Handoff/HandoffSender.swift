import Cluster
import Ground
import HTTPRules
import Logging
import NIOCore
import Store
import Synchronization
import Telemetry

/// The giver's side of handing images over: runs the decisions of `Cluster.OutboundOffers`.
///
/// After a fetch the image's other owners are offered it; after a change of owners, everything that
/// is held is offered to those who have come to own it. Confined to its loop, the hub's.
final class HandoffSender: @unchecked Sendable {
    private let loop: any EventLoop
    private let ownID: NodeID
    private let counters: NodeCounters
    private let logger: Logger
    private let offeredKeys: OfferedKeys
    /// What is held; gone at the end of the node.
    private weak var node: NodeCore?
    private var outbound = OutboundOffers()
    private var connections: [NodeID: PeerConnection] = [:]
    /// Those of whom there is a connection and no answer.
    private var unresponsive: Set<NodeID> = []
    private var ownership: OwnershipChange
    /// Of the book, as far as they are counted.
    private var droppedCount: UInt64 = 0
    private var scan: EntryScan?
    private var isScanScheduled = false
    private var retry: Scheduled<Void>?
    private var ticker: RepeatedTask?
    private var drain: DrainState? {
        didSet { counters.set(.handoffActive, to: drain == nil ? 0 : 1) }
    }
    private let pendingCount = Atomic<Int>(0)

    /// A node that hands over everything, to go.
    private struct DrainState {
        let promise: EventLoopPromise<Bool>
        var watch: DrainMonitor
    }

    /// How often the book is looked at.
    private static let tick = TimeAmount.seconds(1)
    /// How soon offers that a connection had no room for are made again.
    private static let retryDelay = TimeAmount.milliseconds(100)

    init(
        of node: NodeCore, own: NodeID, replicas: Int, ring: Ring, keys: OfferedKeys,
        on loop: any EventLoop
    ) {
        self.node = node
        self.ownID = own
        self.offeredKeys = keys
        self.loop = loop
        counters = node.counters
        logger = node.logger
        ownership = OwnershipChange(settled: ring, replicas: replicas, sender: own)
    }

    func start() {
        let tick = Self.tick
        ticker = loop.scheduleRepeatedTask(initialDelay: tick, delay: tick) { [weak self] _ in
            self?.ticked()
        }
    }

    func stop() {
        ticker?.cancel()
        retry?.cancel()
        scan = nil
        connections = [:]
        drain.take()?.promise.succeed(false)
    }

    /// Offers that are to be made, or are not answered; readable from every thread.
    var pendingOffers: Int { pendingCount.load(ordering: .relaxed) }

    // MARK: What happens

    /// The members with whom there is a connection are these.
    func updateConnections(_ connections: [NodeID: PeerConnection]) {
        let before = self.connections
        self.connections = connections
        let others = connections.filter { id, new in before[id].map { $0 !== new } ?? false }
        updateReceivers(reconnected: Set(others.keys))
        reofferMissed()
        advance()
    }

    /// Others own things now.
    func ringChanged(_ ring: Ring) {
        ownership.change(to: ring)
        updateReceivers()
        scan = ownership.isSettled ? nil : EntryScan()
        reofferMissed()
        advance()
    }

    /// Those that have missed something and are back are to be offered all that they own.
    private func reofferMissed() {
        let back = outbound.missedReceivers.filter {
            connections[$0] != nil && !unresponsive.contains($0)
        }
        for node in back.sorted() {
            ownership.markMissed(node)
            outbound.restart(for: node)
            scan = EntryScan()
        }
    }

    /// An image was just fetched; `owners` are to have it, too.
    func entryFetched(_ offer: PeerOffer, for owners: [NodeID]) {
        for owner in owners where !outbound.add(offer, to: owner) { counters.add(.offersDropped) }
        advance()
    }

    func outcomesReceived(_ verdicts: [OfferOutcome], by peer: NodeID) {
        let now = SystemClock.now()
        let (count, kept) = outbound.outcomesReceived(verdicts, by: peer, now: now)
        if unresponsive.remove(peer) != nil { reofferMissed() }
        drain?.watch.outcomesReceived(count, kept: kept, now: now)
        counters.add(.offersAccepted, kept)
        counters.add(.offersRefused, count - kept)
        advance()
    }

    /// Succeeds when everybody has been offered what this node holds, as far as they can be
    /// reached, and has answered, or nobody answers any more; with true if all of it was taken.
    ///
    /// The ring is to lose this node meanwhile.
    func startDrain(_ promise: EventLoopPromise<Bool>) {
        if let running = drain { return running.promise.futureResult.cascade(to: promise) }
        drain = DrainState(promise: promise, watch: DrainMonitor(now: SystemClock.now()))
        advance()
    }

    /// What is offered is offered as always; whoever waits for the end is told that there is none.
    func cancelDrain() {
        drain.take()?.promise.succeed(false)
    }

    // MARK: Steps

    private func ticked() {
        let misses = outbound.missedReceivers
        outbound.ticked(SystemClock.now())
        // Who is connected and misses something answers nothing; it is waited for until it does.
        unresponsive.formUnion(
            outbound.missedReceivers.subtracting(misses).filter { connections[$0] != nil })
        advance()
    }

    private func updateReceivers(reconnected: Set<NodeID> = []) {
        let members = ownership.current.members.map(\.id)
        outbound.updateReceivers(
            Set(members.filter { $0 != ownID }), connected: Set(connections.keys),
            reconnected: reconnected, now: SystemClock.now())
        unresponsive.formIntersection(outbound.missedReceivers)
    }

    private func advance() {
        advanceScan()
        if outbound.droppedCount > droppedCount {
            counters.add(.offersDropped, Int(outbound.droppedCount - droppedCount))
            droppedCount = outbound.droppedCount
            drain?.watch.offerDropped()
        }
        for receiver in outbound.receiverIDs { offer(to: receiver) }
        counters.set(.offersQueued, to: outbound.waitingCount)
        counters.set(.offersUnanswered, to: outbound.openCount)
        pendingCount.store(outbound.waitingCount + outbound.openCount, ordering: .relaxed)
        finishIfDone()
    }

    /// One step of the walk, and the next when the loop comes to it.
    private func advanceScan() {
        guard !isScanScheduled, outbound.hasRoom else { return }
        guard let node, let met = scan?.next(in: node) else {
            scan = nil
            return
        }
        for (offer, key) in met {
            let gainers = ownership.newOwners(of: offer.digest)
            if let key, !gainers.isEmpty { offeredKeys.record(offer.digest, key) }
            for gainer in gainers { outbound.add(offer, to: gainer) }
        }
        isScanScheduled = true
        loop.execute { [weak self] in
            self?.isScanScheduled = false
            self?.advance()
        }
    }

    private func offer(to receiver: NodeID) {
        guard let connection = connections[receiver] else { return }
        let offers = outbound.next(for: receiver, now: SystemClock.now())
        guard !offers.isEmpty else { return }
        connection.send(offers) { [weak self] in
            self?.loop.execute { [weak self] in self?.offersNotSent(offers, by: receiver) }
        }
    }

    /// The connection had no room for them, or has just gone.
    private func offersNotSent(_ offers: [PeerOffer], by receiver: NodeID) {
        outbound.requeue(offers, for: receiver)
        guard retry == nil else { return }
        retry = loop.scheduleTask(in: Self.retryDelay) { [weak self] in
            self?.retry = nil
            self?.advance()
        }
    }

    private func finishIfDone() {
        let isNothingLeft = scan == nil && !isScanScheduled && outbound.isEmpty
        if isNothingLeft, outbound.missedReceivers.isEmpty { ownership.settle() }
        let rest = DrainMonitor.Remainder(
            isNone: isNothingLeft, isOnRing: ownership.current.members.contains { $0.id == ownID },
            hasMissed: !outbound.missedReceivers.isEmpty)
        guard let drain, let outcome = drain.watch.outcome(rest, now: SystemClock.now()) else {
            return
        }
        self.drain = nil
        switch outcome {
        case .finished(let isComplete): drain.promise.succeed(isComplete)
        case .stalled:
            logger.warning(
                "what is left is not handed over: nobody answers",
                metadata: ["offers": "\(outbound.waitingCount + outbound.openCount)"])
            drain.promise.succeed(false)
        }
    }
}

/// The keys of what was offered from memory: who asks for it knows half of its name alone, by which
/// memory finds nothing.
///
/// Bounded: of too many the oldest are forgotten, and who asks for those is told that they are not
/// there.
final class OfferedKeys: Sendable {
    private struct State {
        var keys: [EntryDigest: [UInt8]] = [:]
        /// In the order in which they came; those before ``oldest`` are gone.
        var order: [EntryDigest] = []
        var oldest = 0
        var bytes = 0
    }

    private let state = Mutex(State())

    /// Keys that are known at once.
    static let keysMax = 16_384

    /// Bytes of keys that are known at once.
    private static let bytesMax = 4 << 20

    func record(_ digest: EntryDigest, _ key: [UInt8]) {
        state.withLock { state in
            guard state.keys.updateValue(key, forKey: digest) == nil else { return }
            state.bytes += key.count
            state.order.append(digest)
            while state.keys.count > Self.keysMax || state.bytes > Self.bytesMax {
                let gone = state.keys.removeValue(forKey: state.order[state.oldest])
                state.bytes -= gone?.count ?? 0
                state.oldest += 1
            }
            guard state.oldest > state.order.count / 2 else { return }
            state.order.removeFirst(state.oldest)
            state.oldest = 0
        }
    }

    func find(_ digest: EntryDigest) -> [UInt8]? {
        state.withLock { $0.keys[digest] }
    }
}
