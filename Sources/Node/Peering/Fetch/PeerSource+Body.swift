import Cluster
import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// The body that a peer gives, and what becomes of it.
extension PeerSource {
    /// Gives the readers what has come as a whole, as an entry; false if there is no room for one.
    func completeWithEntry(_ taken: PeerResponse, _ nominated: FieldNames) -> Bool {
        let count = taken.receivedEntry.body.reduce(0) { $0 + $1.readableBytes }
        let entry = fetch.makeEntry(
            taken.receivedEntry.body, entryName, tags: taken.entry.tags, place: variant?.place,
            taken.metadata, taken.head)
        guard let entry else { return false }
        context.counters.add(.peerReceivedBytes, count)
        fetch.storedResponseUsed(
            entry, isShared: true, isStored: true, nominated: nominated, isFromPeer: true)
        if isWorthStoring { insertEntry(entry) }
        driver.finish()
        return true
    }

    /// What the answer is called where it stands.
    private var entryName: EntryName { variant.map { EntryName(ofKey: $0.place.key) } ?? name }

    func reserveMemory(_ length: UInt64?, _ head: RenderedHead) -> Bool {
        if let length, length > siteRequest.policy.objectBytesMax { return false }
        let overhead = MemoryEntry.overhead(
            keyBytes: fetch.key.count, headBytes: head.bytes.count, bodyBytes: length ?? 0)
        let body = length.map(BodyLayout.capacity) ?? FetchedResponse.reservedBytes(growingTo: 0)
        return fetch.reserve(
            overhead + body,
            weighedBy: context.node.admissionHash(of: name, at: variant?.place.hash ?? fetch.hash))
    }

    /// What this node does not own stays in memory while there is room that nothing needs, and
    /// beyond that if it is popular.
    private var isWorthStoring: Bool {
        frequency >= Self.popularFrequencyMin || fetch.totalReaderCount > 1 || hub.owns(name)
            || context.store.hasSpareCapacity
    }

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

    func bodyEnded(_ end: StreamEnd) {
        guard let peerResponse else { return }
        guard peerResponse.receivedBytes == end.size else { return transferLost() }
        if RenderedFieldSection.isWellFormed(end.trailers) { fetch.trailersReceived(end.trailers) }
        let facts = peerResponse.metadata
        // Without a length only the format can say that an image was whole.
        let isWhole =
            peerResponse.entry.facts.size != nil || !siteRequest.isImage
            || fetch.completeness == .complete
        let entry = fetch.completed(
            name: entryName, tags: peerResponse.entry.tags, place: variant?.place
        ) { size in
            guard isWhole else { return nil }
            var head = peerResponse.head
            // The peer had begun to give it before its length was known.
            if peerResponse.entry.facts.size == nil { head = head.framed(size: size) }
            var facts = facts
            facts.size = size
            facts.entityTag = head.entityTag
            return (facts, head)
        }
        if let entry, isWorthStoring { insertEntry(entry) }
        driver.finish()
    }

    func insertEntry(_ entry: MemoryEntry) {
        context.node.insert(entry)
        guard let variant else { return }
        context.node.insert(
            variant.index, siteRequest.nominated(of: entry), at: variant.place,
            of: siteRequest.primaryKey,
            version: fetch.invalidationVersion, now: SystemClock.now())
    }

    /// The rest does not come from here.
    func transferLost() {
        driver.lost(canBeResumed: partialResponse?.identity.canBeResumed ?? false)
    }
}
