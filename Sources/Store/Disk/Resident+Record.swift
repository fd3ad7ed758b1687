package import Ground
package import NIOCore
package import Tiers

extension MemoryEntry {
    /// What the disk keeps of an entry beside its body; `now` is in milliseconds since 1970.
    func record(_ name: EntryName, clock: DiskClock, now: Int64) -> DiskRecord {
        DiskRecord(
            name: name, invalidationVersion: version,
            times: DiskTimes(
                validated: clock.wall(metadata.validatedAt),
                generated: clock.wall(metadata.generatedAt),
                freshUntil: clock.wall(metadata.freshUntil),
                lastModified: metadata.lastModified.map { $0.seconds * 1000 } ?? DiskFormat.noTime,
                date: metadata.date.seconds * 1000),
            lastAccess: UInt32(clamping: now / 1000), accessCount: 0, flags: metadata.flags,
            staleWhileRevalidateSeconds: metadata.staleWhileRevalidateSeconds,
            staleIfErrorSeconds: metadata.staleIfErrorSeconds,
            layout: DiskHeadLayout(
                partialStart: UInt32(layout.partialStart),
                multipartStart: UInt32(layout.multipartStart),
                notModifiedStart: UInt32(layout.notModifiedStart),
                contentType: layout.contentType, entityTag: metadata.entityTag),
            key: key, head: head, tags: tags, bodyBytes: metadata.size, chunkSums: [])
    }
}

extension DiskRecordHandle {
    /// The facts of the answer; one that a mark has made stale has been so for ever.
    package func metadata(_ clock: DiskClock) -> EntryMetadata {
        let times = record.times
        return EntryMetadata(
            size: record.bodyBytes, bornAt: clock.instant(times.generated),
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
        case promoted(MemoryEntry)
        /// Memory has no room for it; nothing was read.
        case noCapacity
        /// Its body cannot be read.
        case unreadable
    }

    /// Makes an entry of what is on disk: when there is room for it, `read` gives its body.
    ///
    /// `hash` is that of its key, `share` its site's part of the memory.
    package func promote(
        _ reading: inout DiskRecordHandle, hash: UInt64, clock: DiskClock,
        share: MemoryShare? = nil,
        read: (inout DiskRecordHandle) -> [ByteBuffer]?
    ) -> Promotion {
        let bytes = Self.bytes(of: reading)
        guard reserve(bytes) else { return .noCapacity }
        guard let chunks = read(&reading) else {
            account.release(bytes)
            return .unreadable
        }
        return .promoted(makeEntry(reading, chunks, hash, clock, share))
    }

    /// An entry of what the disk has given, whose body is in `chunks`; nil if there is no room.
    ///
    /// It is not yet findable; `hash` is that of its key, `share` its site's part of the memory.
    package func promote(
        _ reading: DiskRecordHandle, _ chunks: [ByteBuffer], hash: UInt64, clock: DiskClock,
        share: MemoryShare? = nil
    ) -> MemoryEntry? {
        guard reserve(Self.bytes(of: reading)) else { return nil }
        return makeEntry(reading, chunks, hash, clock, share)
    }

    /// What the entry will take.
    private static func bytes(of reading: DiskRecordHandle) -> Int {
        let record = reading.record
        return BodyLayout.capacity(record.bodyBytes)
            + MemoryEntry.overhead(
                keyBytes: record.key.count, headBytes: record.head.count,
                tagBytes: MemoryEntry.bytes(of: record.tags), bodyBytes: record.bodyBytes)
    }

    private func makeEntry(
        _ reading: DiskRecordHandle, _ chunks: [ByteBuffer], _ hash: UInt64, _ clock: DiskClock,
        _ share: MemoryShare?
    ) -> MemoryEntry {
        let record = reading.record
        return MemoryEntry(
            key: record.key, hash: hash, name: record.name, metadata: reading.metadata(clock),
            head: record.head, layout: reading.layout, tags: record.tags,
            version: record.invalidationVersion,
            body: StoredBody(
                chunks: chunks, size: record.bodyBytes,
                capacityBytes: BodyLayout.capacity(record.bodyBytes), account: account),
            account: account, share: share)
    }
}
