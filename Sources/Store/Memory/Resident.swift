package import Ground
package import NIOCore
import Synchronization
import Tiers

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
