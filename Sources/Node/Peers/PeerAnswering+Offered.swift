import Cluster
import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Store
import Tiers
import Wire

/// What this node has offered, and a peer asks for by half of its name.
extension PeerAnswering {
    /// Looks in memory if it was offered from there, then on disk.
    func beginOffered() {
        guard question.kind == .probe else { return answer(.fetchYourself(.notUnderstood)) }
        let digest = question.name.digest
        if let key = connection.hub.offeredKeys.find(digest),
            let found = hall.store.find(key, hash: hall.store.hash(of: key)),
            hall.settings.sharesWithPeers(found)
        {
            return give(found, from: .memory)
        }
        guard let disk = hall.node.disk else { return answer(.absent) }
        guard let view = disk.view else { return answer(.fetchYourself(.overloaded)) }
        let (store, clock, settings) = (hall.store, disk.clock, hall.settings)
        let promoted = disk.readers.runIfActive(eventLoop: hall.loop) {
            () -> MemoryStore.Promotion? in
            guard var reading = view.read(offered: digest),
                reading.facts(clock).flags.isAnswer,
                settings.sharedPlan(ofKey: reading.record.key) != nil
            else { return nil }
            let hash = store.hash(of: reading.record.key)
            return store.promote(
                &reading, hash: hash, clock: clock, read: { view.readBody(&$0) })
        }
        promoted.assumeIsolated().whenComplete { [self] result in
            guard case .beginning = stage else { return }
            switch result {
            case .success(.promoted(let resident)): give(resident, from: .disk)
            case .success(nil), .success(.lost): answer(.absent)
            // It is here all the same.
            case .success(.noRoom), .failure: answer(.fetchYourself(.overloaded))
            }
            connection.flush()
        }
    }
}
