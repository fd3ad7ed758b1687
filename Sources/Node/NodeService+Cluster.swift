import Cluster
import Ground
import Logging
import NIOCore
import NIOPosix
import Origin
import Store
import Telemetry
import Tiers

/// The parts of a running node that only a member of a cluster has.
struct ClusterRuntime: Sendable {
    let hub: PeerHub
    let listener: PeerListener
}

extension NodeService {
    /// Opens the port for peers and begins to look for them; returns `nil` for a node that is in no
    /// cluster.
    ///
    /// The disk tier must have started, because the node's identity is that of its cache directory.
    func startCluster(
        of node: NodeCore, as id: NodeID, on threads: ThreadPools
    ) async throws -> ClusterRuntime? {
        let configuration = configuration.cluster
        guard let secrets = configuration.secrets else { return nil }
        let listener = try await PeerListener.open(configuration.listen, on: threads.loops)
        let listen = ListenAddress(
            address: configuration.listen.address, port: listener.port)
        let address =
            try configuration.advertised ?? .advertised(listen, IPAddress.interfaceAddresses())
        let identity = node.disk?.view?.identity
        let member = Member(
            id: id, process: node.purges.process,
            address: address, weight: configuration.weight, versions: PeerProtocol.versions,
            role: .isCaughtUp)
        let hub = PeerHub(
            of: node, member, Incarnation(epoch: identity?.bootEpoch ?? 1, count: 0),
            configuration,
            secrets: secrets, on: threads.timerGroup.next(), loops: threads.loops,
            resolver: SystemResolver(threads: threads.lookups)
        ) { [weak self] in self?.failAsDuplicate() }
        try await listener.startAccepting(to: hub)
        node.hub = hub
        hub.start()
        // Not in the call, whose closure would capture an address: Swift 6.3 aligns captured values
        // of 16 bytes wrongly in debug builds.
        let metadata: Logger.Metadata = [
            "node": "\(member.id)", "process": "\(member.process)",
            "peer_listen": "\(listen)", "advertised": "\(address)",
            "join": .array(configuration.seeds.map { .string("\($0)") }),
        ]
        logger.info("in a cluster", metadata: metadata)
        return ClusterRuntime(hub: hub, listener: listener)
    }
}

extension NodeService {
    /// Opens the invalidation log and returns the id under which the node is a member.
    ///
    /// The disk tier must have started, unless there is none.
    func startPurgeCoordinator(of node: NodeCore, on timeKeeper: any EventLoop) -> NodeID {
        let isAlone = configuration.cluster.secrets == nil
        var settings = InvalidationReplication.Settings()
        settings.fence.duration = configuration.cluster.fence
        settings.fence.removeAfter = configuration.cluster.forgetAfter
        settings.fence.isSingleNode = isAlone
        let found = InvalidationStartState(
            of: node, settings, isAlone: isAlone, name: configuration.cluster.nodeName)
        let purges = PurgeCoordinator(of: node, found.start, journal: found.journal, on: timeKeeper)
        node.purges = purges
        purges.start()
        if isAlone { purges.handle(.formationRuleChanged(.unanimous)) }
        return found.memberID
    }
}
