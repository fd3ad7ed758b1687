import Cluster
import Ground
import NIOCore

extension NodeService {
    /// Takes up the invalidation log; gives the id under which the node is a member.
    ///
    /// The disk tier has started, or there is none.
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
