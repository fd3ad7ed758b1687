import Cluster
import Ground
import HTTPRules
import NIOCore
import Peering
import Platform
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// The body of a peer's response and its storage.
extension PeerSource {
    /// Delivers a response that has arrived in full as one entry, and ends the fetch; returns false
    /// if memory has no capacity for it.
    func completeWithEntry(_ taken: PeerResponse, _ nominated: FieldNames) -> Bool {
        let count = taken.receivedEntry.body.reduce(0) { $0 + $1.readableBytes }
        let entry = fetch.makeEntry(
            taken.receivedEntry.body, entryName, tags: taken.entry.tags, place: placement.key,
            taken.metadata, taken.head)
        guard let entry else { return false }
        context.counters.add(.peerReceivedBytes, count)
        fetch.storedResponseUsed(
            entry, isShared: true, isStored: true, nominated: nominated, isFromPeer: true)
        if isWorthKeepingInMemory { insertEntry(entry) }
        driver.finish()
        return true
    }

    /// The name under which the response is stored here: ``name``, or that of its variant; never
    /// `nil`.
    private var entryName: EntryName? { placement.name(primary: name) }

    /// True if the response is worth storing in memory: this node owns it, it is popular or shared
    /// by several readers, or there is spare capacity.
    private var isWorthKeepingInMemory: Bool {
        frequency >= Self.popularFrequencyMin || fetch.totalReaderCount > 1 || hub.owns(name)
            || context.store.hasSpareCapacity
    }

    /// Passes body bytes to the fetch; while the fetch is paused, the peer's flow-control window is
    /// not reopened.
    func bodyReceived(_ bytes: ByteBuffer) {
        guard let ask = peerResponse?.request else { return }
        peerResponse?.receivedBytes += UInt64(bytes.readableBytes)
        context.counters.add(.peerReceivedBytes, bytes.readableBytes)
        fetch.bodyReceived(bytes)
        guard !fetch.isPaused else {
            peerResponse?.unacknowledgedBytes += bytes.readableBytes
            return
        }
        ask.connection.bytesConsumed(bytes.readableBytes, of: ask)
    }

    /// Completes the fetch at the end of the body, or reports the transfer as lost if bytes are
    /// missing.
    func bodyEnded(_ end: StreamEnd) {
        guard let peerResponse else { return }
        guard peerResponse.receivedBytes == end.size else { return transferLost() }
        if RenderedFieldSection.isWellFormed(end.trailers) { fetch.trailersReceived(end.trailers) }
        let facts = peerResponse.metadata
        // Without a length, only the image format shows whether the image is complete.
        let isWhole =
            peerResponse.entry.facts.size != nil || !siteRequest.isImage
            || fetch.completeness == .complete
        let entry = fetch.completed(
            name: entryName, tags: peerResponse.entry.tags, place: placement.key
        ) { size in
            guard isWhole else { return nil }
            var head = peerResponse.head
            // The peer began to send it before its length was known.
            if peerResponse.entry.facts.size == nil { head = head.framed(size: size) }
            var facts = facts
            facts.size = size
            facts.entityTag = head.entityTag
            return (facts, head)
        }
        if let entry, isWorthKeepingInMemory { insertEntry(entry) }
        driver.finish()
    }

    /// Inserts an entry, and its variant index if it is a variant.
    func insertEntry(_ entry: MemoryEntry) {
        context.node.entries.insert(entry, at: placement, of: siteRequest.primaryKey)
    }

    /// Reports that the rest of the body does not come from this peer.
    func transferLost() {
        driver.lost(canBeResumed: partialResponse?.identity.canBeResumed ?? false)
    }
}
