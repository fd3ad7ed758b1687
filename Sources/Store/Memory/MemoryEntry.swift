package import Ground
package import NIOCore
import Synchronization
package import Tiers

/// One entry of the memory tier: immutable, shared by the index and whoever is answering from it.
///
/// A 304 or a new answer makes a new `MemoryEntry`; the old one stays right for those who hold it.
package final class MemoryEntry: Sendable {
    /// The normalised URL, then the rendered head as ``HeadLayout`` divides it: side by side,
    /// because a hit reads both.
    package let keyAndHead: [UInt8]
    /// Where in ``text`` the head begins.
    package let headStart: Int
    package let metadata: EntryMetadata
    /// The status code that the head begins with; 200 where it begins with none.
    package let status: UInt16
    /// Those of ``body``, here too, so that a hit has one object less to read.
    package let chunks: [ByteBuffer]
    /// The keyed hash of the key.
    package let hash: UInt64
    /// What names it on disk; nil without a disk tier.
    package let name: EntryName?
    package let layout: HeadLayout
    package let body: StoredBody
    /// Further names by which a purge finds it: the URL at which a redirect ended.
    package let tags: [[UInt8]]
    /// That of the node when the request began that this answers: what was invalidated later covers
    /// it.
    package let version: InvalidationVersion
    /// Marks find it by its key alone.
    let isKeyOnly: Bool
    /// ``InvalidationIndex/number(isPlain:)`` when it was last held against the marks.
    let checkedGeneration = Atomic<UInt64>(0)
    /// Bytes reserved for everything but the body.
    package let overheadBytes: Int
    /// The part of memory that its site has; nil if it has all of it.
    package let share: MemoryShare?
    private let account: MemoryAccount

    /// Takes over a reservation of ``overhead(keyBytes:headBytes:tagBytes:bodyBytes:)`` bytes,
    /// which the caller has made.
    package init(
        key: [UInt8], hash: UInt64, name: EntryName? = nil, metadata: EntryMetadata, head: [UInt8],
        layout: HeadLayout, tags: [[UInt8]] = [], version: InvalidationVersion, body: StoredBody,
        account: MemoryAccount,
        share: MemoryShare? = nil
    ) {
        keyAndHead = key + head
        headStart = key.count
        status = Self.status(head)
        self.hash = hash
        self.name = name
        self.metadata = metadata
        self.layout = layout
        self.body = body
        self.tags = tags
        self.version = version
        // A variant's key holds more than a URL.
        isKeyOnly = tags.isEmpty && !key.contains(UInt8(ascii: "\n"))
        self.share = share
        chunks = body.chunks
        self.account = account
        overheadBytes = Self.overhead(
            keyBytes: key.count, headBytes: head.count, tagBytes: Self.bytes(of: tags),
            bodyBytes: body.size)
    }

    deinit {
        account.release(overheadBytes)
    }

    /// Bytes of memory that belong to it while a look-up can find it.
    package var indexedBytes: Int { overheadBytes + body.capacityBytes }

    /// The normalised URL.
    package var key: [UInt8] { Array(keyAndHead[..<headStart]) }
    /// The rendered head.
    package var head: [UInt8] { Array(keyAndHead[headStart...]) }

    /// The three digits behind `HTTP/1.1 `.
    private static func status(_ head: [UInt8]) -> UInt16 {
        guard head.count >= 12, head[0] == UInt8(ascii: "H") else { return 200 }
        return head[9..<12].reduce(0) { $0 * 10 + UInt16($1 &- 0x30) }
    }

    func hasSameKey(as other: MemoryEntry) -> Bool {
        keyAndHead[..<headStart] == other.keyAndHead[..<other.headStart]
    }

    /// Bytes of memory that an entry takes beside its body's chunks: objects, index, policy, key
    /// and head; for a body of any length that an origin may claim.
    package static func overhead(
        keyBytes: Int, headBytes: Int, tagBytes: Int = 0, bodyBytes: UInt64
    ) -> Int {
        let bytes = Int(min(bodyBytes, BodyLayout.bodyBytesMax))
        let chunkCount = bytes / BodyLayout.chunkBytes + 2
        return fixedOverheadBytes + keyBytes + headBytes + tagBytes + chunkCount
            * chunkOverheadBytes
    }

    /// Bytes of memory that tags take.
    package static func bytes(of tags: [[UInt8]]) -> Int {
        tags.reduce(0) { $0 + $1.count + tagOverheadBytes }
    }

    /// Objects of an entry (`MemoryEntry`, `StoredBody`, arrays, buffers) with the allocator's
    /// headers, and its place in index, policy and ghost list; `nuthatch-bench memory` shows what
    /// it is.
    private static let fixedOverheadBytes = 816
    /// A `ByteBuffer`'s storage object and its place in the list of chunks.
    private static let chunkOverheadBytes = 112
    /// A tag's array and its place among the tags.
    private static let tagOverheadBytes = 64
}

/// Where the parts of an entry's rendered head begin; each runs to the end.
///
/// `HTTPRules.StoredHead` says what they hold.
package struct HeadLayout: Hashable, Sendable {
    /// The fields of a 206 with one range, and of a 416.
    package var partialStart: Int
    /// The fields of a 206 with several ranges.
    package var multipartStart: Int
    /// The fields of a 304 (RFC 9110 §15.4.5).
    package var notModifiedStart: Int
    /// The value of Content-Type; empty if there is none.
    package var contentType: Extent

    package init(
        partialStart: Int, multipartStart: Int, notModifiedStart: Int, contentType: Extent
    ) {
        self.partialStart = partialStart
        self.multipartStart = multipartStart
        self.notModifiedStart = notModifiedStart
        self.contentType = contentType
    }
}

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
