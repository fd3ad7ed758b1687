import Cluster
import Ground
import Logging
import NIOCore
import Store
import Synchronization
import Telemetry

/// The giver's side of handing images over: runs the decisions of `Cluster.OfferBook`.
///
/// After a fetch the image's other owners are offered it; after a change of owners, everything that
/// is held is offered to those who have come to own it. Confined to its loop, the hub's.
final class HandOver: @unchecked Sendable {
    private let loop: any EventLoop
    private let own: NodeID
    private let replicas: Int
    private let counters: NodeCounters
    private let logger: Logger
    private let keys: OfferedKeys
    /// What is held; gone at the end of the node.
    private weak var node: NodeCore?
    private var book = OfferBook()
    private var connections: [NodeID: PeerConnection] = [:]
    /// Everything held was offered by this ring.
    private var settled: Ring
    private var move: RingMove?
    private var walk: HoldingsWalk?
    private var isWalking = false
    private var retry: Scheduled<Void>?
    private var ticker: RepeatedTask?
    private var drain: Drain?
    private let pendingCount = Atomic<Int>(0)

    /// A node that hands over everything, to go.
    private struct Drain {
        let promise: EventLoopPromise<Void>
        /// When something was answered last.
        var progressAt: Instant
    }

    /// How often the book is looked at.
    private static let tick = TimeAmount.seconds(1)
    /// How soon offers that a connection had no room for are made again.
    private static let retryTime = TimeAmount.milliseconds(100)
    /// How long a node that hands over everything waits while nobody answers it anything.
    private static let standstill = Interval.seconds(30)

    init(
        of node: NodeCore, own: NodeID, replicas: Int, ring: Ring, keys: OfferedKeys,
        on loop: any EventLoop
    ) {
        self.node = node
        self.own = own
        self.replicas = replicas
        self.keys = keys
        self.loop = loop
        counters = node.counters
        logger = node.logger
        settled = ring
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
        walk = nil
        connections = [:]
        drain.take()?.promise.succeed()
    }

    /// Offers that are to be made, or are not answered; readable from every thread.
    var pending: Int { pendingCount.load(ordering: .relaxed) }

    // MARK: What happens

    /// The members with whom there is a connection are these.
    func follow(_ connections: [NodeID: PeerConnection]) {
        let back = connections.keys.contains { book.misses.contains($0) }
        self.connections = connections
        followReceivers()
        if back { walkAnew() }
        goOn()
    }

    /// Others own things now.
    func ringChanged(_ ring: Ring) {
        let move = RingMove(from: settled, to: ring, replicas: replicas, holder: own)
        self.move = move.isNone ? nil : move
        followReceivers(of: ring)
        walkAnew()
        goOn()
    }

    /// An image was just fetched; `owners` are to have it, too.
    func fetched(_ offer: PeerOffer, for owners: [NodeID]) {
        for owner in owners where !book.add(offer, to: owner) { counters.add(.offersDropped) }
        goOn()
    }

    func answered(_ verdicts: [OfferVerdict], by peer: NodeID) {
        let (count, kept) = book.answered(verdicts, by: peer)
        counters.add(.offersKept, kept)
        counters.add(.offersRefused, count - kept)
        if count > 0 { drain?.progressAt = SystemClock.now() }
        goOn()
    }

    /// Succeeds when everybody has been offered what this node holds, as far as they can be
    /// reached, and has answered; the ring is to lose this node meanwhile.
    func drain(_ promise: EventLoopPromise<Void>) {
        if let running = drain { return running.promise.futureResult.cascade(to: promise) }
        drain = Drain(promise: promise, progressAt: SystemClock.now())
        goOn()
    }

    // MARK: Steps

    private func ticked() {
        let dropped = book.dropped
        book.ticked(SystemClock.now())
        counters.add(.offersDropped, Int(book.dropped - dropped))
        if let drain, SystemClock.now() - drain.progressAt >= Self.standstill {
            logger.warning(
                "what is left is not handed over: nobody answers",
                metadata: ["offers": "\(book.waitingCount + book.openCount)"])
            self.drain = nil
            drain.promise.succeed()
        }
        goOn()
    }

    private func followReceivers(of ring: Ring? = nil) {
        let members = (ring ?? move?.to ?? settled).members.map(\.id)
        book.follow(
            Set(members.filter { $0 != own }), connected: Set(connections.keys),
            now: SystemClock.now())
    }

    private func walkAnew() {
        guard move != nil else {
            walk = nil
            return
        }
        book.beginAnew()
        walk = HoldingsWalk()
    }

    private func goOn() {
        walkOn()
        for receiver in book.receivers { offer(to: receiver) }
        counters.set(.offersWaiting, to: book.waitingCount)
        counters.set(.offersOpen, to: book.openCount)
        pendingCount.store(book.waitingCount + book.openCount, ordering: .relaxed)
        finishIfDone()
    }

    /// One step of the walk, and the next when the loop comes to it.
    private func walkOn() {
        guard !isWalking, let move, book.hasRoom else { return }
        guard let node, let met = walk?.next(in: node) else {
            walk = nil
            return
        }
        for (offer, key) in met {
            let gainers = move.gainers(of: offer.digest)
            if let key, !gainers.isEmpty { keys.note(offer.digest, key) }
            for gainer in gainers { book.add(offer, to: gainer) }
        }
        isWalking = true
        loop.execute { [weak self] in
            self?.isWalking = false
            self?.goOn()
        }
    }

    private func offer(to receiver: NodeID) {
        guard let connection = connections[receiver] else { return }
        let offers = book.next(for: receiver, now: SystemClock.now())
        guard !offers.isEmpty else { return }
        connection.say(offers) { [weak self] in
            self?.loop.execute { [weak self] in self?.refused(offers, by: receiver) }
        }
    }

    /// The connection had no room for them, or has just gone.
    private func refused(_ offers: [PeerOffer], by receiver: NodeID) {
        book.putBack(offers, for: receiver)
        guard retry == nil else { return }
        retry = loop.scheduleTask(in: Self.retryTime) { [weak self] in
            self?.retry = nil
            self?.goOn()
        }
    }

    private func finishIfDone() {
        guard walk == nil, !isWalking, book.isEmpty else { return }
        if book.misses.isEmpty, let move = self.move {
            settled = move.to
            self.move = nil
        }
        let ring = move?.to ?? settled
        guard let drain, !ring.members.contains(where: { $0.id == own }) else { return }
        self.drain = nil
        drain.promise.succeed()
    }
}
