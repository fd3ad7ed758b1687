import Cluster
import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Store
import Tiers
import Wire

/// What this node has offered, and a peer asks for by half of its name.
extension PeerRequestHandler {
    /// Looks in memory if it was offered from there, then on disk.
    func startOffered() {
        guard query.kind == .probe else { return send(.declined(.notUnderstood)) }
        let digest = query.name.digest
        if let key = connection.hub.offeredKeys.find(digest),
            let found = context.store.find(key, hash: context.store.hash(of: key)),
            context.settings.sharesWithPeers(found)
        {
            return sendEntry(found, from: .memory)
        }
        guard let disk = context.node.disk else { return send(.absent) }
        guard let view = disk.view else { return send(.declined(.overloaded)) }
        let (store, clock, settings) = (context.store, disk.clock, context.settings)
        let promoted = disk.readerThreads.runIfActive(eventLoop: context.loop) {
            () -> MemoryStore.Promotion? in
            guard var reading = view.read(digest: digest),
                reading.metadata(clock).flags.isResponse,
                settings.sharedPolicy(ofKey: reading.record.key) != nil
            else { return nil }
            let hash = store.hash(of: reading.record.key)
            return store.promote(
                &reading, hash: hash, clock: clock, read: { view.readBody(&$0) })
        }
        promoted.assumeIsolated().whenComplete { [self] result in
            guard case .starting = stage else { return }
            switch result {
            case .success(.promoted(let entry)): sendEntry(entry, from: .disk)
            case .success(nil), .success(.unreadable): send(.absent)
            // It is here all the same.
            case .success(.noCapacity), .failure: send(.declined(.overloaded))
            }
            connection.flush()
        }
    }
}
