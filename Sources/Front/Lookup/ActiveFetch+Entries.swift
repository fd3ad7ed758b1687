import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Synchronization
import Tiers

extension ActiveFetch {
    /// Creates the entry of a body that arrived in one piece; returns `nil` if memory has no
    /// capacity.
    func makeEntry(
        _ body: [ByteBuffer], _ name: EntryName?, tags: [[UInt8]], place: EntryKey?,
        _ facts: EntryMetadata, _ head: RenderedHead
    ) -> MemoryEntry? {
        state.withLock { state in
            state.body = BodyBuffer(isRetained: true)
            for piece in body { state.body.append(piece) }
            return state.makeEntry(self, name, tags, place, facts, head)
        }
    }

    /// Creates an entry of the stored body with new metadata and head; returns `nil` if memory has
    /// no capacity for the head.
    func makeFreshenedEntry(
        _ stale: MemoryEntry, _ name: EntryName?, tags: [[UInt8]], place: EntryKey? = nil,
        _ facts: EntryMetadata, _ head: RenderedHead
    ) -> MemoryEntry? {
        let place = place ?? EntryKey(key: key, hash: hash)
        let overhead = MemoryEntry.overhead(
            keyBytes: place.key.count, headBytes: head.bytes.count,
            tagBytes: MemoryEntry.bytes(of: tags), bodyBytes: stale.body.size)
        return state.withLock { state in
            guard state.reservation.grow(by: overhead) else { return nil }
            state.reservation.transfer(overhead)
            return MemoryEntry(
                key: place.key, hash: place.hash, name: name, metadata: facts, head: head.bytes,
                layout: head.layout, tags: tags, version: invalidationVersion, body: stale.body,
                account: context.node.store.account, share: siteRequest.share)
        }
    }
}
