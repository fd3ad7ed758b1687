package import Ground
package import NIOCore
import Synchronization
package import Tiers

/// An entry of the memory tier: immutable, shared by the index and the requests it serves.
///
/// A 304 or a new response creates another `MemoryEntry`; the old one stays valid for those that
/// hold it.
package final class MemoryEntry: Sendable {
    /// The normalised URL, then the rendered head in the parts of ``HeadLayout``; adjacent because
    /// a hit reads both.
    package let keyAndHead: [UInt8]
    /// The offset of the head in ``keyAndHead``.
    package let headStart: Int
    /// The metadata of the response: times, validators and flags.
    package let metadata: EntryMetadata
    /// The status code at the start of the head; 200 if the head has no status line.
    package let status: UInt16
    /// The chunks of ``body``, duplicated so that a hit reads one object less.
    package let chunks: [ByteBuffer]
    /// The keyed hash of the key.
    package let hash: UInt64
    /// The name of the entry on disk; `nil` without a disk tier.
    package let name: EntryName?
    /// The parts of the head.
    package let layout: HeadLayout
    /// The body of the response.
    package let body: StoredBody
    /// The origin's cache tags, and further URLs, by which a purge finds the entry; a variant index
    /// holds the keys of its newest variants here.
    package let tags: [[UInt8]]
    /// The invalidation version when the request of this response began; later marks cover it.
    package let version: InvalidationVersion
    /// True if marks find the entry by its key alone.
    let isKeyOnly: Bool
    /// ``InvalidationIndex/generation(isKeyOnly:)`` at the last check against the marks.
    let checkedGeneration = Atomic<UInt64>(0)
    /// Bytes reserved for everything but the body.
    package let overheadBytes: Int
    /// The memory share of the entry's site; `nil` if the site has no limit of its own.
    package let share: MemoryShare?
    private let account: MemoryAccount

    /// Creates an entry and takes over a reservation of
    /// ``overhead(keyBytes:headBytes:tagBytes:bodyBytes:)`` bytes, which the caller has made.
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
        // The key of a variant contains more than a URL.
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

    /// Bytes that belong to the entry while a look-up can find it.
    package var indexedBytes: Int { overheadBytes + body.capacityBytes }

    /// The normalised URL.
    package var key: [UInt8] { Array(keyAndHead[..<headStart]) }
    /// The rendered head.
    package var head: [UInt8] { Array(keyAndHead[headStart...]) }

    /// Returns the three digits after `HTTP/1.1 `.
    private static func status(_ head: [UInt8]) -> UInt16 {
        guard head.count >= 12, head[0] == UInt8(ascii: "H") else { return 200 }
        return head[9..<12].reduce(0) { $0 * 10 + UInt16($1 &- 0x30) }
    }

    func hasSameKey(as other: MemoryEntry) -> Bool {
        keyAndHead[..<headStart] == other.keyAndHead[..<other.headStart]
    }

    /// Returns the bytes of memory of an entry apart from its body's chunks: objects, index,
    /// policy, key and head.
    ///
    /// `bodyBytes` may be any length that an origin claims.
    package static func overhead(
        keyBytes: Int, headBytes: Int, tagBytes: Int = 0, bodyBytes: UInt64
    ) -> Int {
        let bytes = Int(min(bodyBytes, BodyLayout.bodyBytesMax))
        let chunkCount = bytes / BodyLayout.chunkBytes + 2
        return fixedOverheadBytes + keyBytes + headBytes + tagBytes + chunkCount
            * chunkOverheadBytes
    }

    /// Returns the bytes of memory that tags use.
    package static func bytes(of tags: [[UInt8]]) -> Int {
        tags.reduce(0) { $0 + $1.count + tagOverheadBytes }
    }

    /// Objects of an entry (`MemoryEntry`, `StoredBody`, arrays, buffers) with the allocator's
    /// headers, and its positions in index, policy and ghost list; measured with `nuthatch-bench
    /// memory`.
    private static let fixedOverheadBytes = 816
    /// A `ByteBuffer`'s storage object and its position in the list of chunks.
    private static let chunkOverheadBytes = 112
    /// A tag's array and its position among the tags.
    private static let tagOverheadBytes = 64
}

/// Offsets of the parts of an entry's rendered head; each part extends to the end.
///
/// See `HTTPRules.StoredHead` for their contents.
package struct HeadLayout: Hashable, Sendable {
    /// Offset of the fields of a 206 with one range, and of a 416.
    package var partialStart: Int
    /// Offset of the fields of a 206 with several ranges.
    package var multipartStart: Int
    /// Offset of the fields of a 304 (RFC 9110 §15.4.5).
    package var notModifiedStart: Int
    /// Extent of the value of Content-Type; empty if there is none.
    package var contentTypeExtent: Extent

    /// Creates a layout from its parts; offsets are in bytes from the start of the head.
    package init(
        partialStart: Int, multipartStart: Int, notModifiedStart: Int, contentType: Extent
    ) {
        self.partialStart = partialStart
        self.multipartStart = multipartStart
        self.notModifiedStart = notModifiedStart
        self.contentTypeExtent = contentType
    }
}

extension MemoryEntry {
    /// Returns the disk record of the entry without its body; `now` is in milliseconds since 1970.
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
                contentType: layout.contentTypeExtent, entityTag: metadata.entityTag),
            key: key, head: head, tags: tags, bodyBytes: metadata.size, chunkSums: [])
    }
}

extension DiskRecordHandle {
    /// Returns the metadata of the response; one made stale by a mark counts as stale since ever.
    package func metadata(_ clock: DiskClock) -> EntryMetadata {
        let times = record.times
        return EntryMetadata(
            size: record.bodyBytes, generatedAt: clock.instant(times.generated),
            validatedAt: clock.instant(times.validated),
            freshUntil: isStale ? Instant(nanoseconds: .min) : clock.instant(times.freshUntil),
            flags: record.flags,
            staleWhileRevalidateSeconds: record.staleWhileRevalidateSeconds,
            staleIfErrorSeconds: record.staleIfErrorSeconds,
            lastModified: times.lastModified == DiskFormat.noTime
                ? nil : WallTime(clamping: times.lastModified / 1000),
            date: WallTime(clamping: times.date / 1000), entityTag: record.layout.entityTag)
    }

    /// The parts of the head.
    package var layout: HeadLayout {
        HeadLayout(
            partialStart: Int(record.layout.partialStart),
            multipartStart: Int(record.layout.multipartStart),
            notModifiedStart: Int(record.layout.notModifiedStart),
            contentType: record.layout.contentType)
    }

    /// Bytes of memory that the entry will use.
    fileprivate var memoryBytes: Int {
        BodyLayout.capacity(record.bodyBytes)
            + MemoryEntry.overhead(
                keyBytes: record.key.count, headBytes: record.head.count,
                tagBytes: MemoryEntry.bytes(of: record.tags), bodyBytes: record.bodyBytes)
    }

    /// Creates the entry in memory, which takes over a reservation of ``memoryBytes`` in `account`.
    fileprivate func memoryEntry(
        _ chunks: [ByteBuffer], _ hash: UInt64, _ clock: DiskClock, _ share: MemoryShare?,
        _ account: MemoryAccount
    ) -> MemoryEntry {
        MemoryEntry(
            key: record.key, hash: hash, name: record.name, metadata: metadata(clock),
            head: record.head, layout: layout, tags: record.tags,
            version: record.invalidationVersion,
            body: StoredBody(
                chunks: chunks, size: record.bodyBytes,
                capacityBytes: BodyLayout.capacity(record.bodyBytes), account: account),
            account: account, share: share)
    }
}

extension MemoryStore {
    /// The outcome of promoting an entry from disk to memory.
    package enum Promotion: Sendable {
        /// The entry was created, but not yet inserted.
        case promoted(MemoryEntry)
        /// Memory has no space for the entry; nothing was read.
        case noCapacity
        /// The body cannot be read.
        case unreadable
    }

    /// Creates a memory entry from a disk record; `read` is called for its body once space is
    /// reserved.
    ///
    /// - Parameters:
    ///   - reading: the record.
    ///   - hash: the keyed hash of its key.
    ///   - clock: converts its times.
    ///   - share: the memory share of its site.
    ///   - read: returns the body, or `nil` if it cannot be read.
    /// - Returns: the entry, not yet inserted, or the reason why there is none.
    package func promote(
        _ reading: inout DiskRecordHandle, hash: UInt64, clock: DiskClock,
        share: MemoryShare? = nil,
        read: (inout DiskRecordHandle) -> [ByteBuffer]?
    ) -> Promotion {
        let bytes = reading.memoryBytes
        guard reserve(bytes) else { return .noCapacity }
        guard let chunks = read(&reading) else {
            account.release(bytes)
            return .unreadable
        }
        return .promoted(reading.memoryEntry(chunks, hash, clock, share, account))
    }

    /// Creates a memory entry from a disk record whose body is in `chunks`; `nil` if there is no
    /// space.
    ///
    /// The entry is not inserted. `hash` is the keyed hash of its key, `share` the memory share of
    /// its site.
    package func promote(
        _ reading: DiskRecordHandle, _ chunks: [ByteBuffer], hash: UInt64, clock: DiskClock,
        share: MemoryShare? = nil
    ) -> MemoryEntry? {
        guard reserve(reading.memoryBytes) else { return nil }
        return reading.memoryEntry(chunks, hash, clock, share, account)
    }
}
