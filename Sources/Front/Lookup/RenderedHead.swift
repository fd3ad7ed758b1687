import Ground
import HTTPRules
import Store
import Tiers

/// A response in progress, as its readers need it.
struct FetchedResponse: Sendable {
    /// Metadata of the response; its size is 0 while unknown.
    var metadata: EntryMetadata
    /// Head to send, rendered for clients.
    var head: RenderedHead
    /// Body length sent by the source; `nil` if unknown.
    var sizeBytes: UInt64?
    /// True if the body is kept: there was capacity when the head was received.
    var isKept: Bool
    /// True if the response comes from the disk.
    var isFromDisk = false
    /// Cache tags; see `MemoryEntry.tags`.
    var tags: [[UInt8]] = []
    /// True if the response comes from a peer.
    var isFromPeer = false
    /// Result of the caching rules for a site's response; `nil` for an image.
    var cacheability: Cacheability?
    /// True if the origin has evaluated the client's ranges and conditions itself, so that nothing
    /// is selected here.
    var isPassedThrough = false

    /// Returns the bytes to reserve for a body of unknown length at `bodyBytes`: its chunks, and
    /// one for bytes not yet in a chunk.
    static func reservedBytes(growingTo bodyBytes: UInt64) -> Int {
        (Int(bodyBytes) / BodyLayout.chunkBytes + 1) * BodyLayout.chunkBytes
    }
}

extension FetchedResponse {
    /// Creates the response of an entry for the requester that caused its fetch, as if the body
    /// were still being received, because trailers are not stored; returns `nil` without trailers.
    init?(trailing entry: MemoryEntry, _ known: FetchSnapshot.Progress) {
        guard !known.trailers.isEmpty else { return nil }
        self.init(
            metadata: entry.metadata, head: RenderedHead(entry), sizeBytes: nil, isKept: true,
            tags: entry.tags)
    }
}

/// A response head rendered for clients.
struct RenderedHead: Sendable {
    /// The status line and field lines, without the empty line.
    let bytes: [UInt8]
    /// Offsets of the parts of `bytes` that responses select from.
    let layout: HeadLayout
    /// Range of the entity tag in `bytes`; empty if there is none.
    let entityTag: Extent

    /// Creates a head from its parts.
    init(bytes: [UInt8], layout: HeadLayout, entityTag: Extent) {
        self.bytes = bytes
        self.layout = layout
        self.entityTag = entityTag
    }

    /// Creates the head that the caching rules have rendered.
    init(_ stored: StoredHead) {
        bytes = stored.bytes
        layout = HeadLayout(
            partialStart: stored.partialStart, multipartStart: stored.multipartStart,
            notModifiedStart: stored.notModifiedStart, contentType: stored.contentType)
        entityTag = stored.entityTag
    }

    /// Creates the head of a memory entry.
    init(_ entry: MemoryEntry) {
        bytes = entry.head
        layout = entry.layout
        entityTag = entry.metadata.entityTag
    }

    /// Creates the head of a disk record.
    init(_ reading: DiskRecordHandle) {
        bytes = reading.record.head
        layout = reading.layout
        entityTag = reading.record.layout.entityTag
    }

    /// Offset behind the status line and its CRLF.
    var statusLineEnd: Int { (bytes.firstIndex(of: 0x0A) ?? -1) + 1 }

    /// The status code.
    var status: UInt16 { StoredHead.status(bytes) }

    /// The head as the caching rules process it.
    var stored: StoredHead {
        StoredHead(
            rendered: bytes, partialStart: layout.partialStart,
            multipartStart: layout.multipartStart, notModifiedStart: layout.notModifiedStart,
            contentType: layout.contentTypeExtent, entityTag: entityTag)
    }

    /// True if the head has Content-Length, or is a 204: otherwise the end of the response is not
    /// recognisable on a persistent connection (RFC 9112 §6.3).
    var isFramed: Bool {
        status == 204 || StoredHead.lines(bytes).contains { $0.id == .contentLength }
    }

    /// Returns this head, which must have no Content-Length, with one of `size` bytes.
    func framed(size: UInt64) -> RenderedHead {
        var line = Array("content-length: ".utf8)
        ASCII.append(size, to: &line)
        line += Array("\r\n".utf8)
        let start = statusLineEnd
        return moved(by: line.count, bytes[..<start] + line + bytes[start...])
    }

    /// This head without its Content-Length, which precedes everything in the layout.
    var unframed: RenderedHead {
        guard let line = StoredHead.lines(bytes).first(where: { $0.id == .contentLength }) else {
            return self
        }
        let (start, end) = (Int(line.name.start), line.value.end + 2)
        return moved(by: start - end, Array(bytes[..<start]) + bytes[end...])
    }

    /// Returns a head of `bytes` whose layout is shifted by `count` bytes.
    private func moved(by count: Int, _ bytes: [UInt8]) -> RenderedHead {
        let moved = { (extent: Extent) in
            extent.isEmpty
                ? extent : Extent(start: Int(extent.start) + count, count: Int(extent.count))
        }
        return RenderedHead(
            bytes: bytes,
            layout: HeadLayout(
                partialStart: layout.partialStart + count,
                multipartStart: layout.multipartStart + count,
                notModifiedStart: layout.notModifiedStart + count,
                contentType: moved(layout.contentTypeExtent)),
            entityTag: moved(entityTag))
    }

    /// Returns the bytes in `extent`.
    func slice(_ extent: Extent) -> [UInt8] {
        Array(bytes[extent.range])
    }
}
