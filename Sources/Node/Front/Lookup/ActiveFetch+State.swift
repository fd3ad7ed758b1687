import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Synchronization
import Tiers

/// What a fetch under way does with its bytes, under its lock.
extension ActiveFetch.State {
    /// What the origin still says is not for this fetch.
    var isFinished: Bool { lookup.fetch.isFinished }

    /// The origin is asked, and nobody waits for what it answers.
    var isUnread: Bool {
        originFetchStartedAt != nil && !isFinished && lookup.fetch.readerCount == 0
    }

    /// True if the body that is on its way comes from the disk.
    var isFromDisk: Bool {
        guard case .receiving(let response) = progress.outcome else { return false }
        return response.isFromDisk
    }

    /// The entry that the whole of the answer is.
    private var entry: MemoryEntry? {
        switch progress.outcome {
        case .stored(let entry), .loadedFromDisk(let entry): entry
        case .pending, .receiving, .failed: nil
        }
    }

    /// Does what the effects ask of the state itself; gives the loops to be woken.
    mutating func apply(_ effects: [LookupEffect]) -> UInt64 {
        var wakes = false
        for effect in effects {
            switch effect {
            case .wakeReaders: wakes = true
            case .stopStoring: body.stopRetaining()
            case .releasePrefix:
                body.discard(below: lookup.fetch.retainedOffset)
                let needed = Int(
                    lookup.fetch.receivedBytes - lookup.fetch.retainedOffset
                        + lookup.fetch.windowBytes)
                if reservation.reservedBytes > needed {
                    reservation.release(reservation.reservedBytes - needed)
                }
            default: continue
            }
        }
        guard wakes else { return 0 }
        defer { waitingLoops = 0 }
        return waitingLoops
    }

    /// Bytes that a reader at `position` may take at once.
    ///
    /// Of what is as the network gave it only little: a client that then stalls holds on to it
    /// after it has become part of a chunk, and that memory is counted nowhere.
    func readLimit(at position: UInt64) -> Int {
        if entry != nil { return .max }
        let inChunks = UInt64(body.chunkBytes)
        return position < inChunks ? Int(inChunks - position) : unchunkedBytesMax
    }

    /// The window of a body that is kept no more is what was reserved for it.
    mutating func shrinkWindow() {
        let held = UInt64(max(reservation.reservedBytes, windowBytesMin))
        lookup.fetch.windowBytes = min(lookup.fetch.windowBytes, held)
    }

    /// Opens the window of a body that is not kept; false if there is no room for one.
    mutating func openWindow() -> Bool {
        let window = reservation.openWindow(
            large: Int(lookup.fetch.windowBytes), small: windowBytesMin)
        lookup.fetch.windowBytes = UInt64(window ?? windowBytesMin)
        return window != nil
    }

    /// True if the reservation covers a body of `bytes`, after growing it where the length was not
    /// known before.
    mutating func hasRoom(for bytes: UInt64) -> Bool {
        guard case .receiving(let response) = progress.outcome, response.sizeBytes == nil else {
            return true
        }
        let needed = FetchedResponse.reservedBytes(growingTo: bytes)
        return needed <= reservation.reservedBytes
            || reservation.grow(by: needed - reservation.reservedBytes)
    }

    mutating func appendSlices(
        from offset: UInt64, count: Int, to slices: inout [ByteBuffer]
    ) {
        if let entry {
            entry.body.appendSlices(from: offset, count: count, to: &slices)
        } else {
            body.appendSlices(from: offset, count: count, to: &slices)
        }
    }

    /// Turns what was received into an entry; nil if there is no room even for its overhead.
    mutating func makeEntry(
        _ run: ActiveFetch, _ name: EntryName?, _ tags: [[UInt8]], _ place: EntryKey?,
        _ facts: EntryMetadata, _ head: RenderedHead
    ) -> MemoryEntry? {
        assert(
            head.isFramed, "no length in the head of \(String(decoding: run.key, as: UTF8.self))")
        let place = place ?? EntryKey(key: run.key, hash: run.hash)
        let size = body.endOffset
        let capacity = BodyLayout.capacity(size)
        let overhead = MemoryEntry.overhead(
            keyBytes: place.key.count, headBytes: head.bytes.count,
            tagBytes: MemoryEntry.bytes(of: tags), bodyBytes: size)
        let missing = capacity + overhead - reservation.reservedBytes
        // All of it has come, and was found worth its room.
        reservation.admissionHash = nil
        guard missing <= 0 || reservation.grow(by: missing), let chunks = body.finish() else {
            return nil
        }
        reservation.transfer(capacity + overhead)
        reservation.release(reservation.reservedBytes)
        let account = run.context.node.store.account
        return MemoryEntry(
            key: place.key, hash: place.hash, name: name, metadata: facts, head: head.bytes,
            layout: head.layout, tags: tags, version: run.invalidationVersion,
            body: StoredBody(chunks: chunks, size: size, capacityBytes: capacity, account: account),
            account: account, share: run.siteRequest.share)
    }
}

/// The first and the last bytes of a body that is being received, which may be gone from memory
/// when its end is judged.
struct BodyEdges: Sendable {
    private var first: [UInt8] = []
    private var last: [UInt8] = []
    private var bytes: UInt64 = 0

    mutating func append(_ piece: ByteBuffer) {
        let count = ImageCompleteness.edgeBytes
        bytes += UInt64(piece.readableBytes)
        if first.count < count {
            first += piece.readableBytesView.prefix(count - first.count)
        }
        // By its place: the general suffix goes through all that comes before.
        let end = min(count, piece.readableBytes)
        last += piece.getBytes(at: piece.writerIndex - end, length: end) ?? []
        if last.count > count { last.removeFirst(last.count - count) }
    }

    /// Whether the body so far ends as its format says.
    var completeness: ImageCompleteness { ImageCompleteness(first: first, last: last, size: bytes) }
}
