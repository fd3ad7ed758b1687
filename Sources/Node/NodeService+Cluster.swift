import Cluster
import Front
import Ground
import Logging
import NIOCore
import NIOPosix
import NodeConfiguration
import Origin
import Peering
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
        let configuration = configuration
        guard let secrets = configuration.clusterSecrets else { return nil }
        let listener = try await PeerListener.open(configuration.peerListen, on: threads.loops)
        let listen = ListenAddress(
            address: configuration.peerListen.address, port: listener.port)
        let address =
            try configuration.peerAdvertise ?? .advertised(listen, IPAddress.interfaceAddresses())
        let identity = node.disk?.view?.identity
        let member = Member(
            id: id, process: node.purges.process,
            address: address, weight: UInt16(clamping: configuration.ringWeight),
            versions: PeerProtocol.versions,
            role: .isCaughtUp)
        let hub = PeerHub(
            in: PeeringHost(
                service: node, purges: node.purges, tiers: node.tiers, counters: node.counters,
                logger: logger),
            member, Incarnation(epoch: identity?.bootEpoch ?? 1, count: 0),
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
            "join": .array(configuration.join.map { .string("\($0)") }),
        ]
        logger.info("cluster member", metadata: metadata)
        return ClusterRuntime(hub: hub, listener: listener)
    }
}

extension NodeService {
    /// Opens the invalidation log and returns the id under which the node is a member.
    ///
    /// The disk tier must have started, unless there is none.
    func startPurgeCoordinator(of node: NodeCore, on timeKeeper: any EventLoop) -> NodeID {
        let isAlone = configuration.clusterSecrets == nil
        var settings = InvalidationReplication.Settings()
        settings.fence.duration = configuration.fence
        settings.fence.removeAfter = configuration.forgetAfter
        settings.fence.isSingleNode = isAlone
        let start = InvalidationStartState(
            from: node.journalReader, node.disk, logger: logger, settings, isAlone: isAlone,
            name: configuration.nodeName)
        let purges = PurgeCoordinator(
            start, tiers: node.tiers, fence: node.fence, logger: logger, on: timeKeeper)
        node.purges = purges
        purges.start()
        if isAlone { purges.handle(.formationRuleChanged(.unanimous)) }
        return start.memberID
    }
}
