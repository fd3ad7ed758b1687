package import Ground
package import NIOCore
package import Tiers

extension Resident {
    /// What the disk keeps of an entry beside its body; `now` is in milliseconds since 1970.
    func record(_ name: EntryName, stamp: DiskStamp, clock: DiskClock, now: Int64) -> DiskRecord {
        DiskRecord(
            name: name, stamp: stamp,
            times: DiskTimes(
                received: now, born: clock.wall(facts.bornAt),
                freshUntil: clock.wall(facts.freshUntil),
                lastModified: facts.lastModified.map { $0.seconds * 1000 } ?? DiskFormat.noTime,
                date: facts.date.seconds * 1000),
            lastAccess: UInt32(clamping: now / 1000), accessCount: 0, flags: facts.flags,
            varies: facts.varies, negotiation: facts.negotiation,
            layout: DiskHeadLayout(
                partialStart: UInt32(layout.partialStart),
                multipartStart: UInt32(layout.multipartStart),
                notModifiedStart: UInt32(layout.notModifiedStart),
                contentType: layout.contentType, entityTag: facts.entityTag),
            key: key, head: head, tags: [], bodyBytes: facts.size, chunkSums: [])
    }
}

extension DiskReading {
    /// The facts of the answer; one that a mark has made stale has been so for ever.
    package func facts(_ clock: DiskClock) -> EntryFacts {
        let times = record.times
        return EntryFacts(
            size: record.bodyBytes, bornAt: clock.instant(times.born),
            freshUntil: isStale ? Instant(nanoseconds: .min) : clock.instant(times.freshUntil),
            flags: record.flags, varies: record.varies, negotiation: record.negotiation,
            lastModified: times.lastModified == DiskFormat.noTime
                ? nil : WallTime(seconds: times.lastModified / 1000),
            date: WallTime(seconds: times.date / 1000), entityTag: record.layout.entityTag)
    }

    /// Where the parts of the head begin.
    package var layout: HeadLayout {
        HeadLayout(
            partialStart: Int(record.layout.partialStart),
            multipartStart: Int(record.layout.multipartStart),
            notModifiedStart: Int(record.layout.notModifiedStart),
            contentType: record.layout.contentType)
    }
}

extension MemoryStore {
    /// An entry of what the disk has given, whose body is in `chunks`; nil if there is no room.
    ///
    /// It is not yet findable; `hash` is that of its key.
    package func promote(
        _ reading: DiskReading, _ chunks: [ByteBuffer], hash: UInt64, clock: DiskClock
    ) -> Resident? {
        let record = reading.record
        let capacity = BodyLayout.capacity(record.bodyBytes)
        let overhead = Resident.overhead(
            keyBytes: record.key.count, headBytes: record.head.count, bodyBytes: record.bodyBytes)
        guard reserve(capacity + overhead) else { return nil }
        return Resident(
            key: record.key, hash: hash, name: record.name, facts: reading.facts(clock),
            head: record.head, layout: reading.layout,
            body: Body(
                chunks: chunks, size: record.bodyBytes, capacityBytes: capacity,
                account: account),
            account: account)
    }
}
