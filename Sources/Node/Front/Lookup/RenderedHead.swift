import Ground
import HTTPRules
import Store
import Tiers

/// The head of an answer that is being received, as its readers need it.
struct FetchedResponse: Sendable {
    /// The size is 0 while it is not known.
    var metadata: EntryMetadata
    var head: RenderedHead
    /// The length that the origin has named; nil if it named none.
    var sizeBytes: UInt64?
    /// When the head was received there was room for the body.
    var isKept: Bool
    /// It comes from the disk, not from the origin.
    var isFromDisk = false
    /// Further names of it; see `MemoryEntry.tags`.
    var tags: [[UInt8]] = []
    /// A peer gives it.
    var isFromPeer = false
    /// What the rules say of an answer of a site's; nil for an image.
    var cacheability: Cacheability?
    /// The origin has answered what the client asked, parts and conditions included: nothing is
    /// chosen of it here.
    var isPassedThrough = false

    /// Bytes to be reserved while a body of unknown length has grown to `bodyBytes`: its chunks,
    /// and one for what is not yet in a chunk.
    static func reservedBytes(growingTo bodyBytes: UInt64) -> Int {
        (Int(bodyBytes) / BodyLayout.chunkBytes + 1) * BodyLayout.chunkBytes
    }
}

/// A head rendered for clients.
struct RenderedHead: Sendable {
    let bytes: [UInt8]
    let layout: HeadLayout
    /// Where the entity tag lies; empty if there is none.
    let entityTag: Extent

    init(bytes: [UInt8], layout: HeadLayout, entityTag: Extent) {
        self.bytes = bytes
        self.layout = layout
        self.entityTag = entityTag
    }

    init(_ stored: StoredHead) {
        bytes = stored.bytes
        layout = HeadLayout(
            partialStart: stored.partialStart, multipartStart: stored.multipartStart,
            notModifiedStart: stored.notModifiedStart, contentType: stored.contentType)
        entityTag = stored.entityTag
    }

    init(_ entry: MemoryEntry) {
        bytes = entry.head
        layout = entry.layout
        entityTag = entry.metadata.entityTag
    }

    init(_ reading: DiskRecordHandle) {
        bytes = reading.record.head
        layout = reading.layout
        entityTag = reading.record.layout.entityTag
    }

    /// Where the status line ends, its CRLF included.
    var statusLineEnd: Int { (bytes.firstIndex(of: 0x0A) ?? -1) + 1 }

    /// The status code.
    var status: UInt16 { StoredHead.status(bytes) }

    /// The head as the rules know it.
    var stored: StoredHead {
        StoredHead(
            rendered: bytes, partialStart: layout.partialStart,
            multipartStart: layout.multipartStart, notModifiedStart: layout.notModifiedStart,
            contentType: layout.contentType, entityTag: entityTag)
    }

    /// True if it has Content-Length, or is a 204, which has no body: otherwise nobody can tell
    /// where the answer ends on a connection that stays open (RFC 9112 §6.3).
    var isFramed: Bool {
        status == 204 || StoredHead.lines(bytes).contains { $0.id == .contentLength }
    }

    /// This head, which must be without, with a Content-Length of `size` bytes.
    func framed(size: UInt64) -> RenderedHead {
        var line = Array("content-length: ".utf8)
        ASCII.append(size, to: &line)
        line += Array("\r\n".utf8)
        let start = statusLineEnd
        return moved(by: line.count, bytes[..<start] + line + bytes[start...])
    }

    /// This head without its Content-Length, which stands before all that the layout leads to.
    var unframed: RenderedHead {
        guard let line = StoredHead.lines(bytes).first(where: { $0.id == .contentLength }) else {
            return self
        }
        let (start, end) = (Int(line.name.start), line.value.end + 2)
        return moved(by: start - end, Array(bytes[..<start]) + bytes[end...])
    }

    /// The head of these bytes, in which all that the layout leads to stands `count` bytes later.
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
                contentType: moved(layout.contentType)),
            entityTag: moved(entityTag))
    }

    /// The bytes of `extent`.
    func slice(_ extent: Extent) -> [UInt8] {
        Array(bytes[extent.range])
    }
}
