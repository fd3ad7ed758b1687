import Cluster
import Ground
import HTTPRules
import Logging
import NIOCore
import NIOPosix
import Origin
import Synchronization
import Telemetry
import Wire

/// This node's part in its cluster: runs the decisions of `Cluster.Membership` over connections
/// with peers.
///
/// Confined to its loop, which serves nobody, so that a node that is busy still answers pings;
/// connections live on the loops of the doors and tell it what they hear.
final class PeerHub: @unchecked Sendable {
    let loop: any EventLoop
    /// Where connections live.
    let loops: MultiThreadedEventLoopGroup
    let resolver: any NameResolver
    let counters: NodeCounters
    let logger: Logger
    private(set) var membership: Membership
    private var dice: Dice
    private var connections: [PeerConnectionID: PeerConnection] = [:]
    private(set) var seeds: [PeerAddress]
    private var timer: Scheduled<Void>?
    var lookup: Scheduled<Void>?
    private(set) var isStopped = false
    /// Succeeds when everybody reachable knows that this node goes.
    private var left: EventLoopPromise<Void>?
    var complaints = PeerComplaints()
    var joinWatch: JoinWatch
    /// The rule that the desk was told last; nil once this node has found its cluster.
    var toldRule: Formation.Rule? = .never
    /// It serves, and owns.
    var hasJoined = false
    /// Succeeds when it does, or will not.
    let joined: EventLoopPromise<Void>
    let searching = Mutex<[String]?>(nil)
    let rings: RingKeeper
    private let sharedSecrets: Mutex<TLSPeerContext>
    private let published: Mutex<MemberView>
    private let connectionCount = Atomic<UInt64>(0)
    /// This node's id.
    let own: NodeID
    /// For connections that this node dials.
    let dialPlaces = PeerPlaces(count: Ring.membersMax)
    /// For those that others dial: strangers among them take none of the node's own.
    private let acceptedPlaces = PeerPlaces(count: Ring.membersMax)
    /// Gone at the end of the node.
    weak let node: NodeCore?
    /// Nodes that keep an image.
    let replicas: Int
    let handOver: HandOver
    let receiver: OfferReceiver
    let offeredKeys = OfferedKeys()
    /// Called when this node must not serve, because another process has its id.
    let refuse: @Sendable () -> Void

    /// How often the names of seeds are looked up, for ever.
    static let lookupInterval = Interval.seconds(10)
    /// The same while this node looks for its cluster.
    static let joiningLookupInterval = Interval.seconds(1)
    /// What names stood for when they were looked up last.
    var lastAddresses: [PeerAddress: [PeerAddress]] = [:]

    /// A member that knows of nobody yet, and owns nothing before it has found its cluster.
    init(
        of node: NodeCore, _ member: Member, _ incarnation: Incarnation,
        _ configuration: ClusterConfiguration,
        secrets: TLSPeerContext, on loop: any EventLoop, loops: MultiThreadedEventLoopGroup,
        resolver: any NameResolver, refuse: @escaping @Sendable () -> Void
    ) {
        self.node = node
        self.loop = loop
        self.loops = loops
        self.resolver = resolver
        counters = node.counters
        logger = node.logger
        self.refuse = refuse
        own = member.id
        seeds = configuration.seeds
        sharedSecrets = Mutex(secrets)
        var random = SystemRandomNumberGenerator()
        dice = Dice(seed: random.next())
        let now = SystemClock.now()
        var joining = member
        joining.role.remove(.isCaughtUp)
        membership = Membership(joining, incarnation, now: now)
        joinWatch = JoinWatch(configuration.search, now: now)
        joined = loop.makePromise()
        published = Mutex(MemberView(membership, [:]))
        rings = RingKeeper(membership.own, weightMax: configuration.weightMax)
        replicas = configuration.replicas
        handOver = HandOver(
            of: node, own: own, replicas: replicas, ring: rings.ring, keys: offeredKeys, on: loop)
        receiver = OfferReceiver(
            of: node, own: own, replicas: replicas, rings: rings, on: loop)
        rings.tell { [loop, handOver, receiver] ring in
            loop.execute {
                handOver.ringChanged(ring)
                receiver.goOn()
            }
        }
    }

    deinit {
        // Once it is stopped the loop may have ended.
        if !isStopped { joined.succeed() }
    }

    // MARK: Read from any loop

    /// What connections that begin now are encrypted with.
    var secrets: TLSPeerContext { sharedSecrets.withLock { $0 } }

    /// Who is believed to be here.
    var view: MemberView { published.withLock { $0 } }

    /// Which places that it was told of do not answer, while this node looks for its cluster; nil
    /// once it has found one.
    var missing: [String]? { searching.withLock { $0 } }

    func hall(of loop: any EventLoop) -> Hall? { node?.hall(of: loop) }

    /// The connection with a member; nil if there is none.
    func connection(to id: NodeID) -> PeerConnection? {
        published.withLock { $0.connections[id] }
    }

    /// True if this node is among those that keep the entry on disk.
    func owns(_ name: EntryName) -> Bool {
        rings.ring.owners(of: name.digest).prefix(replicas).contains(own)
    }

    /// A name for a connection that begins now.
    func nextConnection() -> PeerConnectionID {
        PeerConnectionID(connectionCount.add(1, ordering: .relaxed).newValue)
    }

    /// A place for one more connection that somebody else dials; nil if as many are open as are
    /// allowed.
    func takePlace() -> PeerPlace? { acceptedPlaces.take() }

    // MARK: Told from any loop

    /// Begins to look for others.
    func start() {
        loop.execute { [self] in
            noteWeight(of: membership.own.member)
            handOver.start()
            lookUpSeeds()
            beginJoining()
            schedule()
        }
    }

    /// Takes over other secrets and seeds; connections that are open stay.
    func adopt(_ configuration: ClusterConfiguration) {
        if let secrets = configuration.secrets { sharedSecrets.withLock { $0 = secrets } }
        loop.execute { [self] in
            seeds = configuration.seeds
            lookUpSeeds()
        }
    }

    /// `connection` is with the node that says `hello`.
    func opened(_ connection: PeerConnection, _ hello: Hello) {
        let id = connection.id
        loop.execute { [self] in
            guard !isStopped else { return connection.end(Goodbye(.leaving)) }
            counters.add(.peerHandshakes)
            connections[id] = connection
            complaints.mended(connection.remote)
            step(
                .connectionOpened(
                    id, dialled: connection.dialled, hello.member, hello.incarnation))
        }
    }

    /// The other end of a connection is this process.
    func metItself(_ id: PeerConnectionID, dialled: PeerAddress?) {
        loop.execute { [self] in
            let own = membership.own
            step(.connectionOpened(id, dialled: dialled, own.member, own.incarnation))
        }
    }

    func heard(_ gossip: Gossip, on id: PeerConnectionID) {
        loop.execute { [self] in
            guard connections[id] != nil else { return }
            counters.add(.received(gossip.message))
            step(.received(gossip.message, on: id))
        }
    }

    /// A connection has few numbers left for questions.
    func wearsOut(_ id: PeerConnectionID) {
        loop.execute { [self] in
            guard connections[id] != nil else { return }
            step(.connectionWearsOut(id))
        }
    }

    /// An opened connection is gone; `goodbye` is what the peer said last.
    func closed(_ id: PeerConnectionID, _ goodbye: Goodbye?) {
        loop.execute { [self] in
            receiver.closed(id)
            guard connections.removeValue(forKey: id) != nil else { return }
            step(.connectionClosed(id, goodbye.flatMap { CloseReason($0.code) }))
        }
    }

    /// Nothing came of a connection; `dialled` is where it was to lead if it was dialled here.
    func failed(_ remote: String, dialled: PeerAddress?, why: String) {
        loop.execute { [self] in
            counters.add(.peerHandshakesFailed)
            complain(of: remote, why)
            if let dialled {
                joinWatch.failed(dialled, why: why)
                step(.dialFailed(dialled))
            }
        }
    }

    /// A connection that was open is broken off for a fault of the peer's.
    func faulted(_ remote: String, why: String) {
        loop.execute { [self] in
            counters.add(.peerFaults)
            complain(of: remote, why)
        }
    }

    /// Tells everybody that this node goes; succeeds when all reachable ones know, or have not
    /// answered in time.
    func leave() -> EventLoopFuture<Void> {
        loop.flatSubmit { [self] in
            let promise = loop.makePromise(of: Void.self)
            guard left == nil, !isStopped, membership.phase == .serving else {
                promise.succeed()
                return promise.futureResult
            }
            left = promise
            step(.leaveRequested)
            return promise.futureResult
        }
    }

    /// Ends all connections; nothing is said any more.
    func stop() -> EventLoopFuture<Void> {
        loop.submit { [self] in
            isStopped = true
            timer?.cancel()
            lookup?.cancel()
            rings.stop()
            for id in connections.keys.sorted() { connections[id]?.end(Goodbye(.leaving)) }
            connections = [:]
            handOver.stop()
            receiver.stop()
            left.take()?.succeed()
            joined.succeed()
        }
    }
}

// MARK: - Steps, on the loop

extension PeerHub {
    /// Takes in an event and runs what comes out.
    func step(_ event: MembershipEvent) {
        guard !isStopped else { return }
        if toldRule != nil { joinWatch.follow(event) }
        var effects: [MembershipEffect] = []
        membership.handle(event, now: SystemClock.now(), using: &dice, effects: &effects)
        for effect in effects { run(effect) }
        publish(effects)
        schedule()
        goOnJoining()
    }

    private func schedule() {
        timer?.cancel()
        guard !isStopped, membership.nextTick != .distantFuture else { return }
        let wait = max(.zero, membership.nextTick - SystemClock.now())
        timer = loop.scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            self?.step(.ticked)
        }
    }

    private func run(_ effect: MembershipEffect) {
        switch effect {
        case .dial(let address): dial(address)
        case .close(let id, let reason):
            connections.removeValue(forKey: id)?.end(Goodbye(reason))
        case .send(let message, let id):
            guard let connection = connections[id] else { return }
            counters.add(.sent(message))
            connection.say(Gossip(message))
        case .useConnection, .dropConnection: break
        case .changed(let record, let before):
            count(record, before)
            log(record, before)
            noteWeight(of: record.member)
            guard record.state == .suspected else { return }
            membership.connection(to: record.member.id).flatMap { connections[$0] }?.suspect()
        case .forget(let record):
            logger.debug("member forgotten", metadata: ["member": "\(record.member.id)"])
        case .refuseMember(let member):
            logger.error(
                "member refused: the cluster is full",
                metadata: [
                    "member": "\(member.id)", "address": "\(member.address)",
                    "members_max": "\(membership.settings.membersMax)",
                ])
        case .refuseToServe(let why): refuseToServe(why)
        case .finishLeaving(let untold):
            if !untold.isEmpty {
                logger.notice(
                    "left without an answer of some members",
                    metadata: ["members": .array(untold.map { .string("\($0)") })])
            }
            left.take()?.succeed()
        }
    }

    private func publish(_ effects: [MembershipEffect]) {
        let isChanged = effects.contains { effect in
            switch effect {
            case .changed, .forget, .useConnection, .dropConnection: true
            default: false
            }
        }
        guard isChanged else { return }
        let view = MemberView(membership, connections)
        published.withLock { $0 = view }
        node?.desk.follow(view)
        handOver.follow(view.connections)
        rings.follow(view.records)
    }

    private func log(_ record: MemberRecord, _ before: MemberRecord?) {
        guard record.member.id != membership.own.member.id else { return }
        let isSame =
            record.state == before?.state && record.member.process == before?.member.process
        guard !isSame else { return }
        let metadata: Logger.Metadata = [
            "member": "\(record.member.id)", "address": "\(record.member.address)",
        ]
        switch record.state {
        case .alive: logger.info("member is here", metadata: metadata)
        case .suspected: logger.notice("member does not answer; suspected", metadata: metadata)
        case .dead: logger.warning("member is gone", metadata: metadata)
        case .left: logger.info("member has left", metadata: metadata)
        }
    }

    /// Says once of a member that it counts for less than it declares.
    private func noteWeight(of member: Member) {
        let most = rings.weightMax
        guard member.weight > most,
            complaints.isNews("\(member.id)", "weight \(member.weight)", now: SystemClock.now())
        else { return }
        logger.warning(
            "a member's weight is cut",
            metadata: [
                "member": "\(member.id)", "weight": "\(member.weight)", "counted": "\(most)",
                "setting": "ring-weight-limit",
            ])
    }

    func complain(of remote: String, _ why: String) {
        guard complaints.isNews(remote, why, now: SystemClock.now()) else { return }
        logger.warning(
            "no connection with a peer", metadata: ["peer": "\(remote)", "why": "\(why)"])
    }
}
