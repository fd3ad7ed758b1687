import Cluster
import Ground
import NIOCore
import Store
import Telemetry

/// The receiver's side of handing images over: runs the decisions of `Cluster.InboundOffers`.
///
/// Confined to its loop, the hub's; the fetches live on the loops of their connections.
final class HandoffReceiver: @unchecked Sendable {
    private let loop: any EventLoop
    private let ownID: NodeID
    private let replicas: Int
    private let ringUpdater: RingUpdater
    private let counters: NodeCounters
    private weak var node: NodeCore?
    private var inbound = InboundOffers()
    /// Those on which something is to be answered.
    private var connections: [PeerConnectionID: PeerConnection] = [:]
    private var transfers: [EntryDigest: HandoffTransfer] = [:]
    private var retry: Scheduled<Void>?
    private var isStopped = false

    /// How soon is looked again at what waits for the disk or for the ring.
    private static let retryDelay = TimeAmount.milliseconds(100)

    init(
        of node: NodeCore, own: NodeID, replicas: Int, rings: RingUpdater, on loop: any EventLoop
    ) {
        self.node = node
        self.ownID = own
        self.replicas = replicas
        self.ringUpdater = rings
        self.loop = loop
        counters = node.counters
    }

    func stop() {
        isStopped = true
        retry?.cancel()
        connections = [:]
        transfers = [:]
    }

    func offersReceived(_ offers: [PeerOffer], on connection: PeerConnection) {
        guard !isStopped else { return }
        counters.add(.offersReceived, offers.count)
        connections[connection.id] = connection
        let ring = ringUpdater.ring
        let responses = inbound.offersReceived(offers, on: connection.id, now: SystemClock.now()) {
            decide($0, ring)
        }
        send(responses)
        advance()
    }

    func connectionClosed(_ id: PeerConnectionID) {
        connections[id] = nil
        inbound.connectionClosed(id)
    }

    /// What waits may be wanted, or not any more.
    func advance() {
        guard !isStopped else { return }
        if !isDiskBusy {
            let ring = ringUpdater.ring
            let (fetches, responses) = inbound.next(now: SystemClock.now()) { decide($0, ring) }
            send(responses)
            for offered in fetches { startTransfer(offered) }
        }
        guard inbound.hasWaiting, retry == nil else { return }
        retry = loop.scheduleTask(in: Self.retryDelay) { [weak self] in
            self?.retry = nil
            self?.advance()
        }
    }

    /// The disk has enough to do.
    private var isDiskBusy: Bool {
        guard let disk = node?.disk else { return false }
        return disk.pendingBytes > disk.settings.queueBytesMax / 2
    }

    private func decide(_ offer: PeerOffer, _ ring: Ring) -> InboundOffers.Decision {
        guard let node,
            ring.owners(of: offer.digest).prefix(replicas).contains(ownID)
        else { return .notOwned }
        guard let disk = node.disk else { return .accepted }
        guard let view = disk.view, disk.isAvailable else { return .notOwned }
        return view.contains(offer.digest) && !offer.isJustFetched ? .alreadyStored : .accepted
    }

    private func startTransfer(_ offered: InboundOffers.ReceivedOffer) {
        let digest = offered.offer.digest
        guard let connection = connections[offered.connection], let peer = connection.peer,
            let context = connection.loop.flatMap({ node?.context(of: $0) })
        else { return transferEnded(digest, .failed) }
        let take = HandoffTransfer(offered.offer, from: peer, on: connection, in: context) {
            [weak self] ending in
            self?.loop.execute { [weak self] in self?.transferEnded(digest, ending) }
        }
        transfers[digest] = take
        context.loop.execute { take.start() }
    }

    private func transferEnded(_ digest: EntryDigest, _ ending: InboundOffers.TransferOutcome) {
        transfers[digest] = nil
        if ending == .stored { counters.add(.offersFetched) }
        send(inbound.transferEnded(digest, ending, now: SystemClock.now()))
        // Behind this step, which may be one of many that are given up at once.
        loop.execute { [weak self] in self?.advance() }
    }

    private func send(_ responses: [InboundOffers.Reply]) {
        var verdicts: [PeerConnectionID: [OfferOutcome]] = [:]
        for response in responses {
            verdicts[response.connection, default: []].append(response.outcome)
        }
        for (id, verdicts) in verdicts {
            connections[id]?.send(verdicts)
        }
    }
}
