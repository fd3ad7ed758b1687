import Cluster
import Ground
import NIOCore
import Platform
import Store
import Telemetry

/// The receiving side of handoffs, which applies the decisions of `Cluster.InboundOffers`.
///
/// Confined to the hub's loop; the transfers run on the loops of their connections.
final class HandoffReceiver: @unchecked Sendable {
    private let loop: any EventLoop
    private let ownID: NodeID
    private let replicas: Int
    private let ringUpdater: RingUpdater
    private let host: PeeringHost
    private var inbound = InboundOffers()
    /// The connections with offers that still need a reply.
    private var connections: [PeerConnectionID: PeerConnection] = [:]
    /// The transfers in progress.
    private var transfers: [EntryDigest: any Sendable & AnyObject] = [:]
    private var retry: Scheduled<Void>?
    private var isStopped = false

    /// Delay before the next check if offers wait for the disk or the ring.
    private static let retryDelay = TimeAmount.milliseconds(100)

    /// Creates a receiver; `loop` is the hub's loop and `own` this node's id.
    init(
        in host: PeeringHost, own: NodeID, replicas: Int, rings: RingUpdater, on loop: any EventLoop
    ) {
        self.host = host
        self.ownID = own
        self.replicas = replicas
        self.ringUpdater = rings
        self.loop = loop
    }

    /// Ends the handling of offers, and releases the transfers in progress.
    func stop() {
        isStopped = true
        retry?.cancel()
        connections = [:]
        transfers = [:]
    }

    /// Handles offers: replies at once to those of stored entries and to those beyond the limit of
    /// waiting ones, and queues the others; ignored after ``stop()``.
    func offersReceived(_ offers: [PeerOffer], on connection: PeerConnection) {
        guard !isStopped else { return }
        host.counters.add(.offersReceived, offers.count)
        connections[connection.id] = connection
        let ring = ringUpdater.ring
        let responses = inbound.offersReceived(offers, on: connection.id, now: SystemClock.now()) {
            decide($0, ring)
        }
        send(responses)
        advance()
    }

    /// Drops the offers of a closed connection; its transfers fail on their own.
    func connectionClosed(_ id: PeerConnectionID) {
        connections[id] = nil
        inbound.connectionClosed(id)
    }

    /// Starts the transfers that are possible now, and replies to offers that need none any more.
    ///
    /// Neither is done while the disk is busy. If offers still wait, it is called again later.
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

    /// True if more than half of the disk's write queue is filled.
    private var isDiskBusy: Bool {
        guard let disk = host.tiers.disk else { return false }
        return disk.pendingBytes > disk.settings.queueBytesMax / 2
    }

    /// Decides on an offer by the ring and the disk's contents; without a disk tier, every entry
    /// that this node owns is wanted.
    private func decide(_ offer: PeerOffer, _ ring: Ring) -> InboundOffers.Decision {
        guard host.service != nil,
            ring.owners(of: offer.digest).prefix(replicas).contains(ownID)
        else { return .notOwned }
        guard let disk = host.tiers.disk else { return .accepted }
        guard let view = disk.view, disk.isAvailable else { return .notOwned }
        return view.contains(offer.digest) && !offer.isJustFetched ? .alreadyStored : .accepted
    }

    /// Starts the transfer of an accepted offer on the connection's loop; it fails at once if the
    /// connection is closed or the node has stopped.
    private func startTransfer(_ offered: InboundOffers.ReceivedOffer) {
        let digest = offered.offer.digest
        guard let connection = connections[offered.connection], let peer = connection.peer,
            let transfer = host.service?.startTransfer(
                of: offered.offer, from: peer, on: connection,
                completion: { [weak self] outcome in
                    self?.loop.execute { [weak self] in self?.transferEnded(digest, outcome) }
                })
        else { return transferEnded(digest, .failed) }
        transfers[digest] = transfer
    }

    /// Records the outcome of a transfer, replies to the offer unless it is to be tried again, and
    /// starts further transfers soon.
    private func transferEnded(_ digest: EntryDigest, _ ending: InboundOffers.TransferOutcome) {
        transfers[digest] = nil
        if ending == .stored { host.counters.add(.offersFetched) }
        send(inbound.transferEnded(digest, ending, now: SystemClock.now()))
        // After this step, which may be one of many transfers that are aborted at once.
        loop.execute { [weak self] in self?.advance() }
    }

    /// Sends the outcomes, grouped by connection; drops those of closed connections.
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
