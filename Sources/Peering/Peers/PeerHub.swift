package import Cluster
package import Ground
import HTTPRules
package import NIOCore
package import NIOPosix
package import NodeConfiguration
package import Origin
import Platform
import Synchronization
import Telemetry
package import Wire

/// The node's membership in its cluster, which applies the decisions of `Cluster.Membership` to
/// connections with peers.
///
/// Confined to its own loop, which serves no clients, so that a busy node still replies to pings.
/// The connections run on the loops that serve clients, and pass their events to it.
package final class PeerHub: @unchecked Sendable {
    /// The hub's loop.
    let loop: any EventLoop
    /// The dials of other nodes.
    let dialer: PeerDialer
    /// The state of the membership.
    var membership: Membership
    var dice: SplitMix64
    /// The open connections, by id.
    var connections: [PeerConnectionID: PeerConnection] = [:]
    /// The timer of the membership's next tick.
    var timer: Scheduled<Void>?
    /// True once the hub is stopped.
    private(set) var isStopped = false
    /// The promise of ``leave()``; `nil` while the node does not leave.
    var leavePromise: EventLoopPromise<Void>?
    /// The log lines about peers.
    var log: PeerLog
    /// The state of the search for the cluster.
    var joinWatch: ClusterDiscovery
    /// The formation rule that the coordinator knows; `nil` once the node has found its cluster and
    /// has a voter set.
    var announcedRule: ClusterFormation.Rule? = .never
    /// True once the node has found its cluster or the join timeout has passed.
    var hasJoined = false
    /// The promise of ``join()``.
    let joinPromise: EventLoopPromise<Void>
    /// The storage of ``missingSeeds``.
    let missingSeedsState = Mutex<[String]?>(nil)
    /// The maintainer of the ring.
    package let ringUpdater: RingUpdater
    /// The storage of ``secrets``.
    private let sharedSecrets: Mutex<TLSPeerContext>
    /// The storage of ``view``.
    let published: Mutex<MemberView>
    /// The exchange of summaries with peers.
    package let reporter: PeerReporter
    /// The number of connection ids given out.
    private let connectionCount = Atomic<UInt64>(0)
    /// The id of this node.
    let ownID: NodeID
    /// The limit of connections that others dial, separate from that of the ``dialer``, so that
    /// strangers cannot use up the node's own.
    private let acceptLimiter = PeerConnectionLimiter(count: Ring.membersMax)
    /// The node that the hub runs in.
    let host: PeeringHost
    /// The number of nodes that own an entry.
    package let replicas: Int
    /// The sending side of handoffs.
    package let handoffSender: HandoffSender
    /// The receiving side of handoffs.
    let handoffReceiver: HandoffReceiver
    /// The keys of entries offered from memory.
    package let offeredKeys = OfferedKeys()
    /// The function called when this node must not serve, because another process has its id or its
    /// directory is a restored copy.
    let onMustNotServe: @Sendable () -> Void

    /// Creates the membership of a node that knows no other member and owns nothing before it has
    /// found its cluster.
    ///
    /// - Parameters:
    ///   - host: the node that the hub runs in.
    ///   - member: this node as a member.
    ///   - incarnation: its incarnation at the start.
    ///   - configuration: the settings of the cluster.
    ///   - secrets: the context for encrypting connections.
    ///   - loop: the hub's loop.
    ///   - loops: the loops of the connections.
    ///   - resolver: the resolver of seeds.
    ///   - refuse: called when this node must not serve.
    package init(
        in host: PeeringHost, _ member: Member, _ incarnation: Incarnation,
        _ configuration: Configuration,
        secrets: TLSPeerContext, on loop: any EventLoop, loops: MultiThreadedEventLoopGroup,
        resolver: any NameResolver, refuse: @escaping @Sendable () -> Void
    ) {
        self.host = host
        self.loop = loop
        dialer = PeerDialer(
            seeds: configuration.join, resolver: resolver, on: loop, loops: loops)
        log = PeerLog(host.logger)
        reporter = PeerReporter(in: host, configuration)
        self.onMustNotServe = refuse
        ownID = member.id
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
        ringUpdater = RingUpdater(
            membership.own, weightMax: UInt16(clamping: configuration.ringWeightLimit))
        replicas = configuration.replicas
        handoffSender = HandoffSender(
            in: host, own: ownID, replicas: replicas, ring: ringUpdater.ring, keys: offeredKeys,
            on: loop)
        handoffReceiver = HandoffReceiver(
            in: host, own: ownID, replicas: replicas, rings: ringUpdater, on: loop)
        ringUpdater.setListener { [loop, handoffSender, handoffReceiver] ring in
            loop.execute {
                handoffSender.ringChanged(ring)
                handoffReceiver.advance()
            }
        }
        host.purges?.observeVoterSet { [weak self] in self?.voterSetAdopted() }
    }

    deinit {
        // After a stop, the loop may have ended.
        if !isStopped { joinPromise.succeed() }
    }

    // MARK: Thread-safe queries

    /// The context for encrypting new connections.
    var secrets: TLSPeerContext { sharedSecrets.withLock { $0 } }

    /// The latest snapshot of the members.
    package var view: MemberView { published.withLock { $0 } }

    /// The seeds that have not responded, while this node looks for its cluster; `nil` before the
    /// search and once the node has a voter set.
    package var missingSeeds: [String]? { missingSeedsState.withLock { $0 } }

    /// The node's counters.
    var counters: NodeCounters { host.counters }

    /// Returns the connection with a member; `nil` if there is none.
    package func connection(to id: NodeID) -> PeerConnection? {
        published.withLock { $0.connections[id] }
    }

    /// Returns true if this node is an owner of the entry, which stores it on disk.
    package func owns(_ name: EntryName) -> Bool {
        ringUpdater.ring.owners(of: name.digest).prefix(replicas).contains(ownID)
    }

    /// Returns an id for a new connection.
    func nextConnectionID() -> PeerConnectionID {
        PeerConnectionID(connectionCount.add(1, ordering: .relaxed).newValue)
    }

    /// Returns a permit for a connection that a peer has dialled; `nil` at the limit.
    func acquirePermit() -> PeerConnectionPermit? { acceptLimiter.acquire() }

    // MARK: Thread-safe events

    /// Starts the search for other members.
    package func start() {
        loop.execute { [self] in
            log.memberWeighed(membership.own.member, limit: ringUpdater.weightMax)
            handoffSender.start()
            dialer.resolveSeeds(for: self)
            startJoining()
            reporter.start(for: self)
            schedule()
        }
    }

    /// Applies new secrets and seeds; open connections remain.
    package func reconfigure(_ configuration: Configuration) {
        if let secrets = configuration.clusterSecrets { sharedSecrets.withLock { $0 = secrets } }
        reporter.reconfigure(configuration)
        loop.execute { [self] in dialer.setSeeds(configuration.join, for: self) }
    }

    /// Adds a connection after its handshake, or closes it if the hub is stopped; `hello` describes
    /// the peer.
    func connectionOpened(_ connection: PeerConnection, _ hello: Hello) {
        let id = connection.id
        loop.execute { [self] in
            guard !isStopped else { return connection.close(Goodbye(.leaving)) }
            counters.add(.peerHandshakes)
            connections[id] = connection
            log.connectionOpened(connection.remote)
            reporter.peerAccepted(connection.remote, hello.member)
            handle(
                .connectionOpened(
                    id, dialled: connection.dialled, hello.member, hello.incarnation))
        }
    }

    /// Reports that the other end of a connection is this process, so that the membership dials the
    /// address less often.
    func selfConnectionDetected(_ id: PeerConnectionID, dialled: PeerAddress?) {
        loop.execute { [self] in
            let own = membership.own
            handle(.connectionOpened(id, dialled: dialled, own.member, own.incarnation))
        }
    }

    /// Handles gossip from a connection; ignored if that has been closed.
    func gossipReceived(_ gossip: Gossip, on id: PeerConnectionID) {
        loop.execute { [self] in
            guard connections[id] != nil else { return }
            counters.add(.received(gossip.message))
            handle(.messageReceived(gossip.message, on: id))
        }
    }

    /// Reports that a connection has few stream ids left, so that it is replaced.
    func connectionNearlyExhausted(_ id: PeerConnectionID) {
        loop.execute { [self] in
            guard connections[id] != nil else { return }
            handle(.connectionNearlyExhausted(id))
        }
    }

    /// Removes a closed connection; `goodbye` is the peer's reason, `nil` if it gave none.
    func connectionClosed(_ id: PeerConnectionID, _ goodbye: Goodbye?) {
        loop.execute { [self] in
            handoffReceiver.connectionClosed(id)
            guard connections.removeValue(forKey: id) != nil else { return }
            handle(.connectionClosed(id, goodbye.flatMap { CloseReason($0.code) }))
        }
    }

    /// Counts and logs a connection that failed before it was open, and reports a failed dial to
    /// the membership; `dialled` is `nil` for an accepted connection, and `rejection` unless the
    /// other end cannot be a peer.
    func connectionFailed(
        _ remote: String, dialled: PeerAddress?, why: String,
        _ rejection: PeerRejections.Reason? = nil
    ) {
        loop.execute { [self] in
            counters.add(.peerHandshakesFailed)
            log.connectionFailed(remote, why)
            if let rejection { reporter.peerRejected(remote, dialled: dialled, rejection) }
            if let dialled {
                joinWatch.addressFailed(dialled, reason: why)
                handle(.dialFailed(dialled))
            }
        }
    }

    /// Counts and logs a violation of the protocol on an open connection, which is being closed.
    func protocolFaultOccurred(_ remote: String, why: String) {
        loop.execute { [self] in
            counters.add(.peerFaults)
            log.connectionFailed(remote, why)
        }
    }

    /// Announces that this node leaves.
    ///
    /// - Returns: a future that succeeds when all reachable members have confirmed it or have not
    ///   done so in time; at once if the node leaves already, must not serve or is stopped.
    package func leave() -> EventLoopFuture<Void> {
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

    /// Closes all connections and ends all activity; waits for the end of the search, of leaving or
    /// of a drain are over then.
    package func stop() -> EventLoopFuture<Void> {
        loop.submit { [self] in
            isStopped = true
            timer?.cancel()
            reporter.stop()
            dialer.stop()
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
