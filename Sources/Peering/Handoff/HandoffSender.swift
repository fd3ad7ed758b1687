import Cluster
package import Ground
import HTTPRules
import Logging
import NIOCore
import Platform
import Store
import Synchronization
import Telemetry

/// The sending side of handoffs, which applies the decisions of `Cluster.OutboundOffers`.
///
/// After a fetch, it offers the entry to its other owners. After a change of owners, it offers all
/// entries to their new owners. Confined to the hub's loop.
package final class HandoffSender: @unchecked Sendable {
    private let loop: any EventLoop
    private let ownID: NodeID
    private let host: PeeringHost
    private let offeredKeys: OfferedKeys
    private var outbound = OutboundOffers()
    private var connections: [NodeID: PeerConnection] = [:]
    /// The connected members that do not reply to offers.
    private var unresponsive: Set<NodeID> = []
    /// The ring before and after the current change of owners.
    private var ownership: OwnershipChange
    /// The number of dropped offers that have been counted in the metrics.
    private var droppedCount: UInt64 = 0
    /// The iterator over the entries to offer; `nil` if there is nothing to scan.
    private var scan: EntryScan?
    private var isScanScheduled = false
    private var retry: Scheduled<Void>?
    private var ticker: RepeatedTask?
    /// The drain in progress.
    private var drain: DrainState? {
        didSet { host.counters.set(.handoffActive, to: drain == nil ? 0 : 1) }
    }
    /// The number of queued and unanswered offers, for other threads.
    private let pendingCount = Atomic<Int>(0)

    /// A drain in progress: the node hands off all entries.
    private struct DrainState {
        let promise: EventLoopPromise<Bool>
        var watch: DrainMonitor
    }

    /// Interval at which timeouts of offers are checked.
    private static let tick = TimeAmount.seconds(1)
    /// Delay before offers that did not fit on a connection are sent again.
    private static let retryDelay = TimeAmount.milliseconds(100)

    /// Creates a sender; `loop` is the hub's loop, `own` this node's id and `ring` the ring at the
    /// start.
    init(
        in host: PeeringHost, own: NodeID, replicas: Int, ring: Ring, keys: OfferedKeys,
        on loop: any EventLoop
    ) {
        self.host = host
        self.ownID = own
        self.offeredKeys = keys
        self.loop = loop
        ownership = OwnershipChange(settled: ring, replicas: replicas, sender: own)
    }

    /// Starts the timer that checks the timeouts of offers.
    func start() {
        let tick = Self.tick
        ticker = loop.scheduleRepeatedTask(initialDelay: tick, delay: tick) { [weak self] _ in
            self?.ticked()
        }
    }

    /// Ends the scan and all sending of offers; a drain in progress ends as incomplete.
    func stop() {
        ticker?.cancel()
        retry?.cancel()
        scan = nil
        connections = [:]
        drain.take()?.promise.succeed(false)
    }

    /// The number of queued and unanswered offers; thread-safe.
    package var pendingOffers: Int { pendingCount.load(ordering: .relaxed) }

    // MARK: Events

    /// Replaces the connections with members, and sends the offers that this makes possible.
    ///
    /// Offers that are open on a lost or replaced connection are made again.
    func updateConnections(_ connections: [NodeID: PeerConnection]) {
        let before = self.connections
        self.connections = connections
        let others = connections.filter { id, new in before[id].map { $0 !== new } ?? false }
        updateReceivers(reconnected: Set(others.keys))
        reofferMissed()
        advance()
    }

    /// Begins a handoff to the new owners in `ring`: a scan of all entries, unless nothing changes.
    func ringChanged(_ ring: Ring) {
        ownership.change(to: ring)
        updateReceivers()
        scan = ownership.isSettled ? nil : EntryScan()
        reofferMissed()
        advance()
    }

    /// Starts the scan again for members that have missed offers and respond again, if any.
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

    /// Offers an entry that was just fetched to `owners`; counts an offer as dropped if an owner
    /// cannot be offered entries.
    func entryFetched(_ offer: PeerOffer, for owners: [NodeID]) {
        for owner in owners where !outbound.add(offer, to: owner) {
            host.counters.add(.offersDropped)
        }
        advance()
    }

    /// Handles a peer's replies to offers, and sends it further ones.
    func outcomesReceived(_ verdicts: [OfferOutcome], by peer: NodeID) {
        let now = SystemClock.now()
        let (count, kept) = outbound.outcomesReceived(verdicts, by: peer, now: now)
        if unresponsive.remove(peer) != nil { reofferMissed() }
        drain?.watch.outcomesReceived(count, kept: kept, now: now)
        host.counters.add(.offersAccepted, kept)
        host.counters.add(.offersRefused, count - kept)
        advance()
    }

    /// Starts a drain, or joins the one in progress; the caller must remove this node from the
    /// ring.
    ///
    /// - Parameter promise: succeeds when all reachable owners have replied to all offers, or none
    ///   responds; with true if every entry was taken.
    func startDrain(_ promise: EventLoopPromise<Bool>) {
        if let running = drain { return running.promise.futureResult.cascade(to: promise) }
        drain = DrainState(promise: promise, watch: DrainMonitor(now: SystemClock.now()))
        advance()
    }

    /// Ends a drain as incomplete; offers in progress continue.
    func cancelDrain() {
        drain.take()?.promise.succeed(false)
    }

    // MARK: Steps

    /// Checks the timeouts of offers, and sends further ones.
    private func ticked() {
        let misses = outbound.missedReceivers
        outbound.ticked(SystemClock.now())
        // A connected member that misses offers does not reply; missed entries wait until it
        // does.
        unresponsive.formUnion(
            outbound.missedReceivers.subtracting(misses).filter { connections[$0] != nil })
        advance()
    }

    /// Updates the members to which entries are offered: all on the ring but this node.
    ///
    /// `reconnected` are those whose connection was replaced by another.
    private func updateReceivers(reconnected: Set<NodeID> = []) {
        let members = ownership.current.members.map(\.id)
        outbound.updateReceivers(
            Set(members.filter { $0 != ownID }), connected: Set(connections.keys),
            reconnected: reconnected, now: SystemClock.now())
        unresponsive.formIntersection(outbound.missedReceivers)
    }

    /// Advances the scan, sends offers, updates the metrics and checks for completion.
    private func advance() {
        advanceScan()
        if outbound.droppedCount > droppedCount {
            host.counters.add(.offersDropped, Int(outbound.droppedCount - droppedCount))
            droppedCount = outbound.droppedCount
            drain?.watch.offerDropped()
        }
        for receiver in outbound.receiverIDs { offer(to: receiver) }
        host.counters.set(.offersQueued, to: outbound.waitingCount)
        host.counters.set(.offersUnanswered, to: outbound.openCount)
        pendingCount.store(outbound.waitingCount + outbound.openCount, ordering: .relaxed)
        finishIfDone()
    }

    /// Performs one step of the scan and schedules the next; does nothing while one is scheduled or
    /// a queue of offers is full.
    private func advanceScan() {
        guard !isScanScheduled, outbound.hasRoom else { return }
        guard let service = host.service,
            let met = scan?.next(in: host.tiers, service.sharingRule)
        else {
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

    /// Sends the next offers to a receiver, if it is connected and any wait.
    private func offer(to receiver: NodeID) {
        guard let connection = connections[receiver] else { return }
        let offers = outbound.next(for: receiver, now: SystemClock.now())
        guard !offers.isEmpty else { return }
        connection.send(offers) { [weak self] in
            self?.loop.execute { [weak self] in self?.offersNotSent(offers, by: receiver) }
        }
    }

    /// Queues offers again that the connection did not accept, and schedules another attempt.
    private func offersNotSent(_ offers: [PeerOffer], by receiver: NodeID) {
        outbound.requeue(offers, for: receiver)
        guard retry == nil else { return }
        retry = loop.scheduleTask(in: Self.retryDelay) { [weak self] in
            self?.retry = nil
            self?.advance()
        }
    }

    /// Ends the change of owners and the drain if nothing is left to do, and a drain as incomplete
    /// if no member has responded for long.
    private func finishIfDone() {
        let isNothingLeft = scan == nil && !isScanScheduled && outbound.isEmpty
        if isNothingLeft, outbound.missedReceivers.isEmpty { ownership.settle() }
        let rest = DrainMonitor.Remainder(
            isEmpty: isNothingLeft, isInRing: ownership.current.members.contains { $0.id == ownID },
            hasMissedReceivers: !outbound.missedReceivers.isEmpty)
        guard let drain, let outcome = drain.watch.outcome(rest, now: SystemClock.now()) else {
            return
        }
        self.drain = nil
        switch outcome {
        case .finished(let isComplete): drain.promise.succeed(isComplete)
        case .stalled:
            host.logger.warning(
                "handoff abandoned: no member responds",
                metadata: ["offers": "\(outbound.waitingCount + outbound.openCount)"])
            drain.promise.succeed(false)
        }
    }
}

/// The keys of entries offered from memory, by digest: the receiver's query contains only the
/// digest, which memory has no index for.
///
/// The table is bounded. The oldest keys are dropped, and queries for them get the reply that the
/// entry is absent.
package final class OfferedKeys: Sendable {
    /// The state under the lock.
    private struct State {
        var keys: [EntryDigest: [UInt8]] = [:]
        /// The digests in the order of insertion; those before ``oldest`` have been dropped.
        var order: [EntryDigest] = []
        var oldest = 0
        var bytes = 0
    }

    private let state = Mutex(State())

    /// The largest number of keys.
    static let keysMax = 16_384

    /// The largest total size of keys in bytes.
    private static let bytesMax = 4 << 20

    /// Adds a key, and drops the oldest ones beyond the limits.
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

    /// Returns the key of an offered entry; `nil` if it was not offered from memory or has been
    /// dropped.
    package func find(_ digest: EntryDigest) -> [UInt8]? {
        state.withLock { $0.keys[digest] }
    }
}
