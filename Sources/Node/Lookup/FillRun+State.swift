import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Synchronization
import Tiers

/// What a fetch under way does with its bytes, under its lock.
extension FillRun.State {
    /// What the origin still says is not for this fetch.
    var isOver: Bool { lookup.fill.isOver }

    /// The origin is asked, and nobody waits for what it answers.
    var isUnread: Bool { askedAt != nil && !isOver && lookup.fill.readerCount == 0 }

    /// True if the body that is on its way comes from the disk.
    var isFromDisk: Bool {
        guard case .answering(let answer) = known.outcome else { return false }
        return answer.isFromDisk
    }

    /// The entry that the whole of the answer is.
    private var resident: Resident? {
        switch known.outcome {
        case .stored(let resident), .found(let resident): resident
        case .open, .answering, .refused: nil
        }
    }

    /// Does what the effects ask of the state itself; gives the loops to be woken.
    mutating func settle(_ effects: [LookupEffect]) -> UInt64 {
        var wakes = false
        for effect in effects {
            switch effect {
            case .wakeReaders: wakes = true
            case .stopKeeping: body.stopKeeping()
            case .dropHead:
                body.drop(below: lookup.fill.heldFrom)
                let needed = Int(
                    lookup.fill.receivedBytes - lookup.fill.heldFrom + lookup.fill.windowBytes)
                if reservation.heldBytes > needed {
                    reservation.giveBack(reservation.heldBytes - needed)
                }
            default: continue
            }
        }
        guard wakes else { return 0 }
        defer { hungryLoops = 0 }
        return hungryLoops
    }

    /// Bytes that a reader at `position` may take at once.
    ///
    /// Of what is as the network gave it only little: a client that then stalls holds on to it
    /// after it has become part of a chunk, and that memory is counted nowhere.
    func limit(at position: UInt64) -> Int {
        if resident != nil { return .max }
        let inChunks = UInt64(body.chunkBytes)
        return position < inChunks ? Int(inChunks - position) : liveBytesMax
    }

    /// The window of a body that is kept no more is what was reserved for it.
    mutating func narrowWindow() {
        let held = UInt64(max(reservation.heldBytes, windowBytesMin))
        lookup.fill.windowBytes = min(lookup.fill.windowBytes, held)
    }

    /// Opens the window of a body that is not kept; false if there is no room for one.
    mutating func openWindow() -> Bool {
        let window = reservation.openWindow(
            large: Int(lookup.fill.windowBytes), small: windowBytesMin)
        lookup.fill.windowBytes = UInt64(window ?? windowBytesMin)
        return window != nil
    }

    /// True if the reservation covers a body of `bytes`, after growing it where the length was not
    /// known before.
    mutating func hasRoom(for bytes: UInt64) -> Bool {
        guard case .answering(let answer) = known.outcome, answer.sizeBytes == nil else {
            return true
        }
        let needed = FillAnswer.reservedBytes(growingTo: bytes)
        return needed <= reservation.heldBytes
            || reservation.grow(by: needed - reservation.heldBytes)
    }

    mutating func appendSlices(
        from offset: UInt64, count: Int, to slices: inout [ByteBuffer]
    ) {
        if let resident {
            resident.body.appendSlices(from: offset, count: count, to: &slices)
        } else {
            body.appendSlices(from: offset, count: count, to: &slices)
        }
    }

    /// Turns what was received into an entry; nil if there is no room even for its overhead.
    mutating func makeResident(
        _ run: FillRun, _ name: EntryName?, _ tags: [[UInt8]], _ place: EntryPlace?,
        _ facts: EntryFacts, _ head: RenderedHead
    ) -> Resident? {
        assert(
            head.isFramed, "no length in the head of \(String(decoding: run.key, as: UTF8.self))")
        let place = place ?? EntryPlace(key: run.key, hash: run.hash)
        let size = body.endOffset
        let capacity = BodyLayout.capacity(size)
        let overhead = Resident.overhead(
            keyBytes: place.key.count, headBytes: head.bytes.count,
            tagBytes: Resident.bytes(of: tags), bodyBytes: size)
        let missing = capacity + overhead - reservation.heldBytes
        // All of it has come, and was found worth its room.
        reservation.judgedHash = nil
        guard missing <= 0 || reservation.grow(by: missing), let chunks = body.finish() else {
            return nil
        }
        reservation.handOver(capacity + overhead)
        reservation.giveBack(reservation.heldBytes)
        let account = run.hall.node.store.account
        return Resident(
            key: place.key, hash: place.hash, name: name, facts: facts, head: head.bytes,
            layout: head.layout, tags: tags, stamp: run.stamp,
            body: Body(chunks: chunks, size: size, capacityBytes: capacity, account: account),
            account: account, share: run.query.share)
    }
}
