package import Ground
package import NIOCore
import Tiers

/// One entry of the memory tier: immutable, shared by the index and whoever is answering from it.
///
/// A 304 or a new answer makes a new `Resident`; the old one stays right for those who hold it.
package final class Resident: Sendable {
    /// The normalised URL, then the rendered head as ``HeadLayout`` divides it: side by side,
    /// because a hit reads both.
    package let text: [UInt8]
    /// Where in ``text`` the head begins.
    package let headStart: Int
    package let facts: EntryFacts
    /// Those of ``body``, here too, so that a hit has one object less to read.
    package let chunks: [ByteBuffer]
    /// The keyed hash of the key.
    package let hash: UInt64
    /// What names it on disk; nil without a disk tier.
    package let name: EntryName?
    package let layout: HeadLayout
    package let body: Body
    /// Bytes reserved for everything but the body.
    package let overheadBytes: Int
    private let account: MemoryAccount

    /// Takes over a reservation of ``overhead(keyBytes:headBytes:chunks:)`` bytes, which the caller
    /// has made.
    package init(
        key: [UInt8], hash: UInt64, name: EntryName? = nil, facts: EntryFacts, head: [UInt8],
        layout: HeadLayout,
        body: Body, account: MemoryAccount
    ) {
        text = key + head
        headStart = key.count
        self.hash = hash
        self.name = name
        self.facts = facts
        self.layout = layout
        self.body = body
        chunks = body.chunks
        self.account = account
        overheadBytes = Self.overhead(
            keyBytes: key.count, headBytes: head.count, bodyBytes: body.size)
    }

    deinit {
        account.release(overheadBytes)
    }

    /// The normalised URL.
    package var key: [UInt8] { Array(text[..<headStart]) }
    /// The rendered head.
    package var head: [UInt8] { Array(text[headStart...]) }

    func hasKey(of other: Resident) -> Bool {
        text[..<headStart] == other.text[..<other.headStart]
    }

    /// Bytes of memory that an entry takes beside its body's chunks: objects, index, policy, key
    /// and head; for a body of any length that an origin may claim.
    package static func overhead(keyBytes: Int, headBytes: Int, bodyBytes: UInt64) -> Int {
        let bytes = Int(min(bodyBytes, BodyLayout.bodyBytesMax))
        let chunkCount = bytes / BodyLayout.chunkBytes + 2
        return fixedOverheadBytes + keyBytes + headBytes + chunkCount * chunkOverheadBytes
    }

    /// Objects of an entry (`Resident`, `Body`, arrays, buffers) with the allocator's headers, and
    /// its place in index, policy and ghost list; `nuthatch-bench memory` shows what it is.
    private static let fixedOverheadBytes = 816
    /// A `ByteBuffer`'s storage object and its place in the list of chunks.
    private static let chunkOverheadBytes = 112
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
