import Cluster
import Ground
import NIOCore
import Store
import Telemetry

/// The receiver's side of handing images over: runs the decisions of `Cluster.OfferIntake`.
///
/// Confined to its loop, the hub's; the fetches live on the loops of their connections.
final class OfferReceiver: @unchecked Sendable {
    private let loop: any EventLoop
    private let own: NodeID
    private let replicas: Int
    private let rings: RingKeeper
    private let counters: NodeCounters
    private weak var node: NodeCore?
    private var intake = OfferIntake()
    /// Those on which something is to be answered.
    private var connections: [PeerConnectionID: PeerConnection] = [:]
    private var takes: [EntryDigest: OfferTake] = [:]
    private var retry: Scheduled<Void>?
    private var isStopped = false

    /// How soon is looked again at what waits for the disk or for the ring.
    private static let retryTime = TimeAmount.milliseconds(100)

    init(
        of node: NodeCore, own: NodeID, replicas: Int, rings: RingKeeper, on loop: any EventLoop
    ) {
        self.node = node
        self.own = own
        self.replicas = replicas
        self.rings = rings
        self.loop = loop
        counters = node.counters
    }

    func stop() {
        isStopped = true
        retry?.cancel()
        connections = [:]
        takes = [:]
    }

    func offered(_ offers: [PeerOffer], on connection: PeerConnection) {
        guard !isStopped else { return }
        counters.add(.offersReceived, offers.count)
        connections[connection.id] = connection
        let ring = rings.ring
        let answers = intake.offered(offers, on: connection.id, now: SystemClock.now()) {
            judge($0, ring)
        }
        answer(answers)
        goOn()
    }

    func closed(_ id: PeerConnectionID) {
        connections[id] = nil
        intake.closed(id)
    }

    /// What waits may be wanted, or not any more.
    func goOn() {
        guard !isStopped else { return }
        if !isPressed {
            let ring = rings.ring
            let (fetches, answers) = intake.next(now: SystemClock.now()) { judge($0, ring) }
            answer(answers)
            for offered in fetches { take(offered) }
        }
        guard intake.waits, retry == nil else { return }
        retry = loop.scheduleTask(in: Self.retryTime) { [weak self] in
            self?.retry = nil
            self?.goOn()
        }
    }

    /// The disk has enough to do.
    private var isPressed: Bool {
        guard let disk = node?.disk else { return false }
        return disk.queued > disk.settings.queueBytesMax / 2
    }

    private func judge(_ offer: PeerOffer, _ ring: Ring) -> OfferIntake.Judgement {
        guard let node,
            ring.owners(of: offer.digest).prefix(replicas).contains(own)
        else { return .unwanted }
        guard let disk = node.disk else { return .wanted }
        guard let view = disk.view, disk.isUp else { return .unwanted }
        return view.holds(offer.digest) && !offer.isNew ? .held : .wanted
    }

    private func take(_ offered: OfferIntake.Offered) {
        let digest = offered.offer.digest
        guard let connection = connections[offered.connection], let peer = connection.peer,
            let hall = connection.loop.flatMap({ node?.hall(of: $0) })
        else { return ended(digest, .failed) }
        let take = OfferTake(offered.offer, from: peer, on: connection, in: hall) {
            [weak self] ending in
            self?.loop.execute { [weak self] in self?.ended(digest, ending) }
        }
        takes[digest] = take
        hall.loop.execute { take.start() }
    }

    private func ended(_ digest: EntryDigest, _ ending: OfferIntake.Ending) {
        takes[digest] = nil
        if ending == .kept { counters.add(.offersTaken) }
        answer(intake.ended(digest, ending, now: SystemClock.now()))
        // Behind this step, which may be one of many that are given up at once.
        loop.execute { [weak self] in self?.goOn() }
    }

    private func answer(_ answers: [OfferIntake.Answer]) {
        var verdicts: [PeerConnectionID: [OfferVerdict]] = [:]
        for answer in answers { verdicts[answer.connection, default: []].append(answer.verdict) }
        for (id, verdicts) in verdicts {
            connections[id]?.say(verdicts)
        }
    }
}
