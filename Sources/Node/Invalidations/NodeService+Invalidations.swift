import Cluster
import Ground
import NIOCore

extension NodeService {
    /// Takes up the invalidation log; gives the id under which the node is a member.
    ///
    /// The disk tier has started, or there is none.
    func openDesk(of node: NodeCore, on timeKeeper: any EventLoop) -> NodeID {
        let isAlone = configuration.cluster.secrets == nil
        var settings = InvalidationExchange.Settings()
        settings.fence.fence = configuration.cluster.fence
        settings.fence.forgetAfter = configuration.cluster.forgetAfter
        settings.fence.isAlone = isAlone
        let found = InvalidationStart(
            of: node, settings, isAlone: isAlone, name: configuration.cluster.nodeName)
        let desk = InvalidationDesk(of: node, found.start, journal: found.journal, on: timeKeeper)
        node.desk = desk
        desk.start()
        if isAlone { desk.handle(.mayForm(.unanimous)) }
        return found.member
    }
}
