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
    private let counters: NodeCounters
    private let logger: Logger
    private let keys: OfferedKeys
    /// What is held; gone at the end of the node.
    private weak var node: NodeCore?
    private var book = OfferBook()
    private var connections: [NodeID: PeerConnection] = [:]
    /// Those of whom there is a connection and no answer.
    private var silent: Set<NodeID> = []
    private var move: RingMove
    /// Of the book, as far as they are counted.
    private var droppedCount: UInt64 = 0
    private var walk: HoldingsWalk?
    private var isWalking = false
    private var retry: Scheduled<Void>?
    private var ticker: RepeatedTask?
    private var drain: Drain? {
        didSet { counters.set(.handingOver, to: drain == nil ? 0 : 1) }
    }
    private let pendingCount = Atomic<Int>(0)

    /// A node that hands over everything, to go.
    private struct Drain {
        let promise: EventLoopPromise<Bool>
        var watch: DrainWatch
    }

    /// How often the book is looked at.
    private static let tick = TimeAmount.seconds(1)
    /// How soon offers that a connection had no room for are made again.
    private static let retryTime = TimeAmount.milliseconds(100)

    init(
        of node: NodeCore, own: NodeID, replicas: Int, ring: Ring, keys: OfferedKeys,
        on loop: any EventLoop
    ) {
        self.node = node
        self.own = own
        self.keys = keys
        self.loop = loop
        counters = node.counters
        logger = node.logger
        move = RingMove(settled: ring, replicas: replicas, holder: own)
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
        drain.take()?.promise.succeed(false)
    }

    /// Offers that are to be made, or are not answered; readable from every thread.
    var pending: Int { pendingCount.load(ordering: .relaxed) }

    // MARK: What happens

    /// The members with whom there is a connection are these.
    func follow(_ connections: [NodeID: PeerConnection]) {
        let before = self.connections
        self.connections = connections
        let others = connections.filter { id, new in before[id].map { $0 !== new } ?? false }
        followReceivers(reconnected: Set(others.keys))
        catchUp()
        goOn()
    }

    /// Others own things now.
    func ringChanged(_ ring: Ring) {
        move.change(to: ring)
        followReceivers()
        walk = move.isNone ? nil : HoldingsWalk()
        catchUp()
        goOn()
    }

    /// Those that have missed something and are back are to be offered all that they own.
    private func catchUp() {
        let back = book.misses.filter { connections[$0] != nil && !silent.contains($0) }
        for node in back.sorted() {
            move.miss(node)
            book.beginAnew(for: node)
            walk = HoldingsWalk()
        }
    }

    /// An image was just fetched; `owners` are to have it, too.
    func fetched(_ offer: PeerOffer, for owners: [NodeID]) {
        for owner in owners where !book.add(offer, to: owner) { counters.add(.offersDropped) }
        goOn()
    }

    func answered(_ verdicts: [OfferVerdict], by peer: NodeID) {
        let now = SystemClock.now()
        let (count, kept) = book.answered(verdicts, by: peer, now: now)
        if silent.remove(peer) != nil { catchUp() }
        drain?.watch.answered(count, kept: kept, now: now)
        counters.add(.offersKept, kept)
        counters.add(.offersRefused, count - kept)
        goOn()
    }

    /// Succeeds when everybody has been offered what this node holds, as far as they can be
    /// reached, and has answered, or nobody answers any more; with true if all of it was taken.
    ///
    /// The ring is to lose this node meanwhile.
    func drain(_ promise: EventLoopPromise<Bool>) {
        if let running = drain { return running.promise.futureResult.cascade(to: promise) }
        drain = Drain(promise: promise, watch: DrainWatch(now: SystemClock.now()))
        goOn()
    }

    /// What is offered is offered as always; whoever waits for the end is told that there is none.
    func undrain() {
        drain.take()?.promise.succeed(false)
    }

    // MARK: Steps

    private func ticked() {
        let misses = book.misses
        book.ticked(SystemClock.now())
        // Who is connected and misses something answers nothing; it is waited for until it does.
        silent.formUnion(book.misses.subtracting(misses).filter { connections[$0] != nil })
        goOn()
    }

    private func followReceivers(reconnected: Set<NodeID> = []) {
        let members = move.to.members.map(\.id)
        book.follow(
            Set(members.filter { $0 != own }), connected: Set(connections.keys),
            reconnected: reconnected, now: SystemClock.now())
        silent.formIntersection(book.misses)
    }

    private func goOn() {
        walkOn()
        if book.dropped > droppedCount {
            counters.add(.offersDropped, Int(book.dropped - droppedCount))
            droppedCount = book.dropped
            drain?.watch.dropped()
        }
        for receiver in book.receivers { offer(to: receiver) }
        counters.set(.offersWaiting, to: book.waitingCount)
        counters.set(.offersOpen, to: book.openCount)
        pendingCount.store(book.waitingCount + book.openCount, ordering: .relaxed)
        finishIfDone()
    }

    /// One step of the walk, and the next when the loop comes to it.
    private func walkOn() {
        guard !isWalking, book.hasRoom else { return }
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
        let isNothingLeft = walk == nil && !isWalking && book.isEmpty
        if isNothingLeft, book.misses.isEmpty { move.settle() }
        let rest = DrainWatch.Rest(
            isNone: isNothingLeft, isOnRing: move.to.members.contains { $0.id == own },
            hasMissed: !book.misses.isEmpty)
        guard let drain, let outcome = drain.watch.outcome(rest, now: SystemClock.now()) else {
            return
        }
        self.drain = nil
        switch outcome {
        case .over(let isComplete): drain.promise.succeed(isComplete)
        case .standsStill:
            logger.warning(
                "what is left is not handed over: nobody answers",
                metadata: ["offers": "\(book.waitingCount + book.openCount)"])
            drain.promise.succeed(false)
        }
    }
}
