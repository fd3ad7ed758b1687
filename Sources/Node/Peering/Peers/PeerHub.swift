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
    private var dice: SplitMix64
    private var connections: [PeerConnectionID: PeerConnection] = [:]
    private(set) var seeds: [PeerAddress]
    private var timer: Scheduled<Void>?
    var resolveTask: Scheduled<Void>?
    private(set) var isStopped = false
    /// Succeeds when everybody reachable knows that this node goes.
    private var leavePromise: EventLoopPromise<Void>?
    var warningLimiter = PeerWarningLimiter()
    var joinWatch: ClusterDiscovery
    /// The rule that the desk was told last; nil once this node has found its cluster.
    var announcedRule: ClusterFormation.Rule? = .never
    /// It serves, and owns.
    var hasJoined = false
    /// Succeeds when it does, or will not.
    let joinPromise: EventLoopPromise<Void>
    let missingSeedsState = Mutex<[String]?>(nil)
    let ringUpdater: RingUpdater
    private let sharedSecrets: Mutex<TLSPeerContext>
    private let published: Mutex<MemberView>
    private let connectionCount = Atomic<UInt64>(0)
    /// This node's id.
    let ownID: NodeID
    /// For connections that this node dials.
    let dialLimiter = PeerConnectionLimiter(count: Ring.membersMax)
    /// For those that others dial: strangers among them take none of the node's own.
    private let acceptLimiter = PeerConnectionLimiter(count: Ring.membersMax)
    /// Gone at the end of the node.
    weak let node: NodeCore?
    /// Nodes that keep an image.
    let replicas: Int
    let handoffSender: HandoffSender
    let handoffReceiver: HandoffReceiver
    let offeredKeys = OfferedKeys()
    /// Called when this node must not serve, because another process has its id.
    let stopServing: @Sendable () -> Void

    /// How often the names of seeds are looked up, for ever.
    static let resolveInterval = Interval.seconds(10)
    /// The same while this node looks for its cluster.
    static let joiningResolveInterval = Interval.seconds(1)
    /// What names stood for when they were looked up last.
    var resolvedSeeds: [PeerAddress: [PeerAddress]] = [:]

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
        self.stopServing = refuse
        ownID = member.id
        seeds = configuration.seeds
        sharedSecrets = Mutex(secrets)
        var random = SystemRandomNumberGenerator()
        dice = SplitMix64(seed: random.next())
        let now = SystemClock.now()
        var joining = member
        joining.role.remove(.isCaughtUp)
        membership = Membership(joining, incarnation, now: now)
        joinWatch = ClusterDiscovery(configuration.joinSettings, now: now)
        joinPromise = loop.makePromise()
        published = Mutex(MemberView(membership, [:]))
        ringUpdater = RingUpdater(membership.own, weightMax: configuration.weightMax)
        replicas = configuration.replicas
        handoffSender = HandoffSender(
            of: node, own: ownID, replicas: replicas, ring: ringUpdater.ring, keys: offeredKeys,
            on: loop)
        handoffReceiver = HandoffReceiver(
            of: node, own: ownID, replicas: replicas, rings: ringUpdater, on: loop)
        ringUpdater.setListener { [loop, handoffSender, handoffReceiver] ring in
            loop.execute {
                handoffSender.ringChanged(ring)
                handoffReceiver.advance()
            }
        }
    }

    deinit {
        // Once it is stopped the loop may have ended.
        if !isStopped { joinPromise.succeed() }
    }

    // MARK: Read from any loop

    /// What connections that begin now are encrypted with.
    var secrets: TLSPeerContext { sharedSecrets.withLock { $0 } }

    /// Who is believed to be here.
    var view: MemberView { published.withLock { $0 } }

    /// Which places that it was told of do not answer, while this node looks for its cluster; nil
    /// once it has found one.
    var missingSeeds: [String]? { missingSeedsState.withLock { $0 } }

    func context(of loop: any EventLoop) -> EventLoopContext? { node?.context(of: loop) }

    /// The connection with a member; nil if there is none.
    func connection(to id: NodeID) -> PeerConnection? {
        published.withLock { $0.connections[id] }
    }

    /// True if this node is among those that keep the entry on disk.
    func owns(_ name: EntryName) -> Bool {
        ringUpdater.ring.owners(of: name.digest).prefix(replicas).contains(ownID)
    }

    /// A name for a connection that begins now.
    func nextConnectionID() -> PeerConnectionID {
        PeerConnectionID(connectionCount.add(1, ordering: .relaxed).newValue)
    }

    /// A place for one more connection that somebody else dials; nil if as many are open as are
    /// allowed.
    func acquirePermit() -> PeerConnectionPermit? { acceptLimiter.acquire() }

    // MARK: Told from any loop

    /// Begins to look for others.
    func start() {
        loop.execute { [self] in
            warnIfWeightCapped(of: membership.own.member)
            handoffSender.start()
            resolveSeeds()
            startJoining()
            schedule()
        }
    }

    /// Takes over other secrets and seeds; connections that are open stay.
    func reconfigure(_ configuration: ClusterConfiguration) {
        if let secrets = configuration.secrets { sharedSecrets.withLock { $0 = secrets } }
        loop.execute { [self] in
            seeds = configuration.seeds
            resolveSeeds()
        }
    }

    /// `connection` is with the node that says `hello`.
    func connectionOpened(_ connection: PeerConnection, _ hello: Hello) {
        let id = connection.id
        loop.execute { [self] in
            guard !isStopped else { return connection.close(Goodbye(.leaving)) }
            counters.add(.peerHandshakes)
            connections[id] = connection
            warningLimiter.clear(connection.remote)
            handle(
                .connectionOpened(
                    id, dialled: connection.dialled, hello.member, hello.incarnation))
        }
    }

    /// The other end of a connection is this process.
    func selfConnectionDetected(_ id: PeerConnectionID, dialled: PeerAddress?) {
        loop.execute { [self] in
            let own = membership.own
            handle(.connectionOpened(id, dialled: dialled, own.member, own.incarnation))
        }
    }

    func gossipReceived(_ gossip: Gossip, on id: PeerConnectionID) {
        loop.execute { [self] in
            guard connections[id] != nil else { return }
            counters.add(.received(gossip.message))
            handle(.messageReceived(gossip.message, on: id))
        }
    }

    /// A connection has few numbers left for questions.
    func connectionNearlyExhausted(_ id: PeerConnectionID) {
        loop.execute { [self] in
            guard connections[id] != nil else { return }
            handle(.connectionNearlyExhausted(id))
        }
    }

    /// An opened connection is gone; `goodbye` is what the peer said last.
    func connectionClosed(_ id: PeerConnectionID, _ goodbye: Goodbye?) {
        loop.execute { [self] in
            handoffReceiver.connectionClosed(id)
            guard connections.removeValue(forKey: id) != nil else { return }
            handle(.connectionClosed(id, goodbye.flatMap { CloseReason($0.code) }))
        }
    }

    /// Nothing came of a connection; `dialled` is where it was to lead if it was dialled here.
    func connectionFailed(_ remote: String, dialled: PeerAddress?, why: String) {
        loop.execute { [self] in
            counters.add(.peerHandshakesFailed)
            logConnectionFailure(of: remote, why)
            if let dialled {
                joinWatch.addressFailed(dialled, reason: why)
                handle(.dialFailed(dialled))
            }
        }
    }

    /// A connection that was open is broken off for a fault of the peer's.
    func protocolFaultOccurred(_ remote: String, why: String) {
        loop.execute { [self] in
            counters.add(.peerFaults)
            logConnectionFailure(of: remote, why)
        }
    }

    /// Tells everybody that this node goes; succeeds when all reachable ones know, or have not
    /// answered in time.
    func leave() -> EventLoopFuture<Void> {
        loop.flatSubmit { [self] in
            let promise = loop.makePromise(of: Void.self)
            guard leavePromise == nil, !isStopped, membership.phase == .serving else {
                promise.succeed()
                return promise.futureResult
            }
            leavePromise = promise
            handle(.leaveRequested)
            return promise.futureResult
        }
    }

    /// Ends all connections; nothing is said any more.
    func stop() -> EventLoopFuture<Void> {
        loop.submit { [self] in
            isStopped = true
            timer?.cancel()
            resolveTask?.cancel()
            ringUpdater.stop()
            for id in connections.keys.sorted() { connections[id]?.close(Goodbye(.leaving)) }
            connections = [:]
            handoffSender.stop()
            handoffReceiver.stop()
            leavePromise.take()?.succeed()
            joinPromise.succeed()
        }
    }
}

// MARK: - Steps, on the loop

extension PeerHub {
    /// Takes in an event and runs what comes out.
    func handle(_ event: MembershipEvent) {
        guard !isStopped else { return }
        if announcedRule != nil { joinWatch.observe(event) }
        var effects: [MembershipEffect] = []
        membership.handle(event, now: SystemClock.now(), using: &dice, effects: &effects)
        for effect in effects { run(effect) }
        publish(effects)
        schedule()
        advanceJoin()
    }

    private func schedule() {
        timer?.cancel()
        guard !isStopped, membership.nextTick != .distantFuture else { return }
        let wait = max(.zero, membership.nextTick - SystemClock.now())
        timer = loop.scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            self?.handle(.ticked)
        }
    }

    private func run(_ effect: MembershipEffect) {
        switch effect {
        case .dial(let address): dial(address)
        case .close(let id, let reason):
            connections.removeValue(forKey: id)?.close(Goodbye(reason))
        case .send(let message, let id):
            guard let connection = connections[id] else { return }
            counters.add(.sent(message))
            connection.send(Gossip(message))
        case .useConnection, .dropConnection: break
        case .memberChanged(let record, let before):
            countStateChange(record, before)
            log(record, before)
            warnIfWeightCapped(of: record.member)
            guard record.state == .suspected else { return }
            membership.connection(to: record.member.id).flatMap { connections[$0] }?.peerSuspected()
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
            leavePromise.take()?.succeed()
        }
    }

    private func publish(_ effects: [MembershipEffect]) {
        let isChanged = effects.contains { effect in
            switch effect {
            case .memberChanged, .forget, .useConnection, .dropConnection: true
            default: false
            }
        }
        guard isChanged else { return }
        let view = MemberView(membership, connections)
        published.withLock { $0 = view }
        node?.purges.membershipChanged(view)
        handoffSender.updateConnections(view.connections)
        ringUpdater.update(view.records)
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
    private func warnIfWeightCapped(of member: Member) {
        let most = ringUpdater.weightMax
        guard member.weight > most,
            warningLimiter.shouldLog(
                "\(member.id)", "weight \(member.weight)", now: SystemClock.now())
        else { return }
        logger.warning(
            "a member's weight is cut",
            metadata: [
                "member": "\(member.id)", "weight": "\(member.weight)", "counted": "\(most)",
                "setting": "ring-weight-limit",
            ])
    }

    func logConnectionFailure(of remote: String, _ why: String) {
        guard warningLimiter.shouldLog(remote, why, now: SystemClock.now()) else { return }
        logger.warning(
            "no connection with a peer", metadata: ["peer": "\(remote)", "why": "\(why)"])
    }
}
