import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Synchronization
import Tiers

/// The state of an ``ActiveFetch``: its decisions, with the body and the memory that they concern.
struct FetchState {
    /// The state machine.
    var lookup: Lookup
    /// Body bytes that are held.
    var body = BodyBuffer(isRetained: false)
    /// First and last bytes of the body.
    var bodyEdges = BodyEdges()
    /// Memory reserved for the body.
    var reservation: FetchReservation
    /// Progress of the response.
    var progress: FetchSnapshot.Progress
    /// Start of the origin fetch; `nil` if there was none.
    var originFetchStartedAt: Instant?
    /// Cache tags of the response; empty before its head is known.
    var tags: [[UInt8]] = []
    /// Loops with waiting readers: bit n stands for loop n.
    var waitingLoops: UInt64 = 0
    /// Size of the small window of a body that is not kept, in bytes.
    let windowBytesMin: Int
    /// Maximum bytes that a reader may take of data not yet in a chunk.
    let unchunkedBytesMax: Int

    /// True if the fetch is over; later origin events are ignored.
    var isFinished: Bool { lookup.fetch.isFinished }

    /// True if an origin fetch is in progress and has no reader.
    var isUnread: Bool {
        originFetchStartedAt != nil && !isFinished && lookup.fetch.readerCount == 0
    }

    /// True if the body in progress comes from the disk.
    var isFromDisk: Bool {
        guard case .receiving(let response) = progress.outcome else { return false }
        return response.isFromDisk
    }

    /// The entry of the complete response; `nil` before it is complete.
    private var entry: MemoryEntry? {
        switch progress.outcome {
        case .stored(let entry), .loadedFromDisk(let entry): entry
        case .pending, .receiving, .failed: nil
        }
    }

    /// Applies the effects that concern the body; returns the loops whose waiting readers are to be
    /// woken, as a bit set.
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

    /// Returns the maximum number of bytes that a reader at `position` may take at once.
    ///
    /// Bytes not yet in a chunk are limited: a stalled client retains the network buffers after
    /// their content was copied into a chunk, and no budget counts that memory.
    func readLimit(at position: UInt64) -> Int {
        if entry != nil { return .max }
        let inChunks = UInt64(body.chunkBytes)
        return position < inChunks ? Int(inChunks - position) : unchunkedBytesMax
    }

    /// Limits the window of a body that is no longer kept to the memory reserved.
    mutating func shrinkWindow() {
        let held = UInt64(max(reservation.reservedBytes, windowBytesMin))
        lookup.fetch.windowBytes = min(lookup.fetch.windowBytes, held)
    }

    /// Opens the window of a body that is not kept; returns false if memory has no capacity for
    /// one, and the small window is then not reserved.
    mutating func openWindow() -> Bool {
        let window = reservation.openWindow(
            large: Int(lookup.fetch.windowBytes), small: windowBytesMin)
        lookup.fetch.windowBytes = UInt64(window ?? windowBytesMin)
        return window != nil
    }

    /// Returns true if there is memory for a body that grows to `bytes`: always if its length is
    /// known, because it was reserved; otherwise if the reservation suffices or could be grown.
    mutating func hasRoom(for bytes: UInt64) -> Bool {
        guard case .receiving(let response) = progress.outcome, response.sizeBytes == nil else {
            return true
        }
        let needed = FetchedResponse.reservedBytes(growingTo: bytes)
        return needed <= reservation.reservedBytes
            || reservation.grow(by: needed - reservation.reservedBytes)
    }

    /// Appends `count` bytes of the body from `offset` on to `slices`.
    mutating func appendSlices(
        from offset: UInt64, count: Int, to slices: inout [ByteBuffer]
    ) {
        if let entry {
            entry.body.appendSlices(from: offset, count: count, to: &slices)
        } else {
            body.appendSlices(from: offset, count: count, to: &slices)
        }
    }

    /// Converts the received body into an entry.
    ///
    /// - Parameters:
    ///   - run: the fetch whose state this is.
    ///   - name: the name on disk; `nil` without one.
    ///   - tags: the tags of the entry.
    ///   - place: the key to store under; `nil` for the request's own key.
    ///   - facts: the metadata of the entry.
    ///   - head: the head of the entry, with the length of the body.
    /// - Returns: the entry; `nil` if memory has no capacity for the overhead.
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
        // The complete body has already passed admission.
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

/// The first and last bytes of a body in progress, kept because the body may be evicted from memory
/// before its end is checked.
struct BodyEdges: Sendable {
    /// The first bytes of the body, at most `ImageCompleteness.edgeBytes`.
    private var first: [UInt8] = []
    /// The last bytes of the body, at most `ImageCompleteness.edgeBytes`.
    private var last: [UInt8] = []
    /// Size of the body so far.
    private var bytes: UInt64 = 0

    /// Adds a piece of the body.
    mutating func append(_ piece: ByteBuffer) {
        let count = ImageCompleteness.edgeBytes
        bytes += UInt64(piece.readableBytes)
        if first.count < count {
            first += piece.readableBytesView.prefix(count - first.count)
        }
        // By offset: a generic suffix would traverse all preceding bytes.
        let end = min(count, piece.readableBytes)
        last += piece.getBytes(at: piece.writerIndex - end, length: end) ?? []
        if last.count > count { last.removeFirst(last.count - count) }
    }

    /// Whether the body so far ends as its image format requires.
    var completeness: ImageCompleteness { ImageCompleteness(first: first, last: last, size: bytes) }
}
