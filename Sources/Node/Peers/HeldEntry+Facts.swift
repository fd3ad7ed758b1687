import Cluster
import Ground
import HTTPRules
import Serving
import Store
import Tiers
import Wire

extension HeldEntry {
    /// What is said of an answer with these facts and this head; `size` is nil if it is not known.
    init(
        _ facts: EntryFacts, size: UInt64?, _ head: RenderedHead, tags: [[UInt8]],
        from source: Source, stamp: Stamp, key: [UInt8] = []
    ) {
        var told = facts
        told.entityTag = head.entityTag
        self.init(
            status: head.status, source: source,
            facts: TransitFacts(told, size: size, now: SystemClock.now()), stamp: stamp,
            head: head.bytes,
            places: HeadPlaces(
                partialStart: UInt32(head.layout.partialStart),
                multipartStart: UInt32(head.layout.multipartStart),
                notModifiedStart: UInt32(head.layout.notModifiedStart),
                contentType: head.layout.contentType),
            tags: tags, key: key)
    }
}
