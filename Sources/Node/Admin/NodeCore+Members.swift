import Admin
import Cluster
import Ground
import Logging

/// What operators do about who is counted; each gives why it was refused, or nil if it has begun.
extension NodeCore {
    /// Begins to count members no longer that will not come back: ids with commas between them.
    func forgetMembers(_ texts: String) -> Problem? {
        let parts = texts.split(separator: ",", omittingEmptySubsequences: false)
        let ids = parts.compactMap { NodeID(String($0)) }
        guard ids.count == parts.count else { return .memberUnknown }
        do throws(FenceCoordinator.ForgetRefusal) {
            try purges.forget(ids)
            return nil
        } catch {
            let known = memberRows().map(\.node)
            let areKnown = ids.allSatisfy { known.contains("\($0)") }
            if case .notVoters = error, !areKnown { return .memberUnknown }
            return .notForgotten(error)
        }
    }

    /// Opens a cluster.
    func bootstrap() -> Problem? {
        guard hub != nil, !purges.hasVoters else { return .notBootstrapped }
        purges.handle(.formationRuleChanged(.operatorOrdered))
        // Whoever is here may have a cluster of its own.
        guard purges.hasVoters else { return .notBootstrapped }
        logger.notice("the operator has this node open a cluster")
        return nil
    }

    /// Begins the count anew with this node.
    func recover() -> Problem? {
        // Without a fence nobody is ever fenced.
        let isFenced = fence.interval == .zero || !fence.isOpen(at: SystemClock.now())
        guard hub != nil, purges.hasVoters, isFenced else { return .notRecovered }
        purges.handle(.recoveryRequested)
        logger.notice("the operator has the count begin anew with this node")
        return nil
    }
}
