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
    func store(_ taken: Taken, _ nominated: FieldNames) -> Bool {
        let count = taken.answer.body.reduce(0) { $0 + $1.readableBytes }
        let resident = run.makeWhole(
            taken.answer.body, placeName, tags: taken.entry.tags, place: variant?.place,
            taken.facts, taken.head)
        guard let resident else { return false }
        hall.counters.add(.peerReceivedBytes, count)
        run.confirmed(
            resident, isShared: true, isStored: true, nominated: nominated, isFromPeer: true)
        if isWorthKeeping { keep(resident) }
        driver.finish()
        return true
    }

    /// What the answer is called where it stands.
    private var placeName: EntryName { variant.map { EntryName(ofKey: $0.place.key) } ?? name }

    func hasRoom(_ length: UInt64?, _ head: RenderedHead) -> Bool {
        if let length, length > query.plan.objectBytesMax { return false }
        let overhead = Resident.overhead(
            keyBytes: run.key.count, headBytes: head.bytes.count, bodyBytes: length ?? 0)
        let body = length.map(BodyLayout.capacity) ?? FillAnswer.reservedBytes(growingTo: 0)
        return run.reserve(
            overhead + body,
            judgedAs: hall.node.judgedHash(of: name, at: variant?.place.hash ?? run.hash))
    }

    /// What this node does not own stays in memory while there is room that nothing needs, and
    /// beyond that if it is popular.
    private var isWorthKeeping: Bool {
        frequency >= Self.popularFrom || run.readersEver > 1 || hub.owns(name)
            || hall.store.hasSpareRoom
    }

    func received(_ bytes: ByteBuffer) {
        guard let ask = taken?.ask else { return }
        taken?.receivedBytes += UInt64(bytes.readableBytes)
        hall.counters.add(.peerReceivedBytes, bytes.readableBytes)
        run.received(bytes)
        guard !run.isPaused else {
            taken?.owedBytes += bytes.readableBytes
            return
        }
        ask.connection.take(bytes.readableBytes, of: ask)
    }

    func ended(_ end: StreamEnd) {
        guard let taken else { return }
        guard taken.receivedBytes == end.size else { return lose() }
        if FieldSection.isWhole(end.trailers) { run.trailed(by: end.trailers) }
        let facts = taken.facts
        // Without a length only the format can say that an image was whole.
        let isWhole = taken.entry.facts.size != nil || !query.isImage || run.ending == .whole
        let resident = run.ended(
            name: placeName, tags: taken.entry.tags, place: variant?.place
        ) { size in
            guard isWhole else { return nil }
            var head = taken.head
            // The peer had begun to give it before its length was known.
            if taken.entry.facts.size == nil { head = head.framed(size: size) }
            var facts = facts
            facts.size = size
            facts.entityTag = head.entityTag
            return (facts, head)
        }
        if let resident, isWorthKeeping { keep(resident) }
        driver.finish()
    }

    func keep(_ resident: Resident) {
        hall.node.keep(resident)
        guard let variant else { return }
        hall.node.keep(
            variant.index, query.nominated(of: resident), at: variant.place, of: query.base,
            stamp: run.stamp, now: SystemClock.now())
    }

    /// The rest does not come from here.
    func lose() {
        driver.lost(canBeResumed: begun?.identity.canBeResumed ?? false)
    }
}
