package import Ground
package import NIOCore
package import Tiers

extension Resident {
    /// What the disk keeps of an entry beside its body; `now` is in milliseconds since 1970.
    func record(_ name: EntryName, clock: DiskClock, now: Int64) -> DiskRecord {
        DiskRecord(
            name: name, stamp: stamp,
            times: DiskTimes(
                validated: clock.wall(facts.validatedAt), born: clock.wall(facts.bornAt),
                freshUntil: clock.wall(facts.freshUntil),
                lastModified: facts.lastModified.map { $0.seconds * 1000 } ?? DiskFormat.noTime,
                date: facts.date.seconds * 1000),
            lastAccess: UInt32(clamping: now / 1000), accessCount: 0, flags: facts.flags,
            staleWhileRevalidateSeconds: facts.staleWhileRevalidateSeconds,
            staleIfErrorSeconds: facts.staleIfErrorSeconds,
            layout: DiskHeadLayout(
                partialStart: UInt32(layout.partialStart),
                multipartStart: UInt32(layout.multipartStart),
                notModifiedStart: UInt32(layout.notModifiedStart),
                contentType: layout.contentType, entityTag: facts.entityTag),
            key: key, head: head, tags: tags, bodyBytes: facts.size, chunkSums: [])
    }
}

extension DiskReading {
    /// The facts of the answer; one that a mark has made stale has been so for ever.
    package func facts(_ clock: DiskClock) -> EntryFacts {
        let times = record.times
        return EntryFacts(
            size: record.bodyBytes, bornAt: clock.instant(times.born),
            validatedAt: clock.instant(times.validated),
            freshUntil: isStale ? Instant(nanoseconds: .min) : clock.instant(times.freshUntil),
            flags: record.flags,
            staleWhileRevalidateSeconds: record.staleWhileRevalidateSeconds,
            staleIfErrorSeconds: record.staleIfErrorSeconds,
            lastModified: times.lastModified == DiskFormat.noTime
                ? nil : WallTime(clamping: times.lastModified / 1000),
            date: WallTime(clamping: times.date / 1000), entityTag: record.layout.entityTag)
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
    /// What has become of an entry that was to be in memory.
    package enum Promotion: Sendable {
        /// It is not yet findable.
        case promoted(Resident)
        /// Memory has no room for it; nothing was read.
        case noRoom
        /// Its body cannot be read.
        case lost
    }

    /// Makes an entry of what is on disk: when there is room for it, `read` gives its body.
    ///
    /// `hash` is that of its key, `share` its site's part of the memory.
    package func promote(
        _ reading: inout DiskReading, hash: UInt64, clock: DiskClock, share: MemoryShare? = nil,
        read: (inout DiskReading) -> [ByteBuffer]?
    ) -> Promotion {
        let bytes = Self.bytes(of: reading)
        guard reserve(bytes) else { return .noRoom }
        guard let chunks = read(&reading) else {
            account.release(bytes)
            return .lost
        }
        return .promoted(resident(reading, chunks, hash, clock, share))
    }

    /// An entry of what the disk has given, whose body is in `chunks`; nil if there is no room.
    ///
    /// It is not yet findable; `hash` is that of its key, `share` its site's part of the memory.
    package func promote(
        _ reading: DiskReading, _ chunks: [ByteBuffer], hash: UInt64, clock: DiskClock,
        share: MemoryShare? = nil
    ) -> Resident? {
        guard reserve(Self.bytes(of: reading)) else { return nil }
        return resident(reading, chunks, hash, clock, share)
    }

    /// What the entry will take.
    private static func bytes(of reading: DiskReading) -> Int {
        let record = reading.record
        return BodyLayout.capacity(record.bodyBytes)
            + Resident.overhead(
                keyBytes: record.key.count, headBytes: record.head.count,
                tagBytes: Resident.bytes(of: record.tags), bodyBytes: record.bodyBytes)
    }

    private func resident(
        _ reading: DiskReading, _ chunks: [ByteBuffer], _ hash: UInt64, _ clock: DiskClock,
        _ share: MemoryShare?
    ) -> Resident {
        let record = reading.record
        return Resident(
            key: record.key, hash: hash, name: record.name, facts: reading.facts(clock),
            head: record.head, layout: reading.layout, tags: record.tags, stamp: record.stamp,
            body: Body(
                chunks: chunks, size: record.bodyBytes,
                capacityBytes: BodyLayout.capacity(record.bodyBytes), account: account),
            account: account, share: share)
    }
}
