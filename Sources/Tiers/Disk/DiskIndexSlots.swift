import Ground

/// One entry of the disk index and the head of one of its chains: 40 bytes.
struct DiskIndexSlot {
    /// No slot.
    static let none = UInt32.max

    var digest: EntryDigest
    var entry: DiskEntry
    /// The slot after this one in the chain that this one is in.
    var next: UInt32
    /// The first slot of the chain whose number is this slot's position.
    var head: UInt32
}

/// Slots at positions 0, 1, 2, …, in chunks, so that growth never copies a slot.
///
/// A chunk is allocated whole and never grows. There are 64 chunks to a doubling of the positions,
/// the first of 32 slots, until a chunk holds 8,192 (320 KiB); from there on all hold as many. What
/// is allocated and not used, at most two chunks, is thus about a thirtieth of a large store.
///
/// Invariant: all chunks but the last two are full, and none but the last is empty. One empty chunk
/// is kept, so that a count which goes up and down about a chunk's end costs no allocation.
struct DiskIndexSlots {
    private var chunks: [[DiskIndexSlot]] = []
    private var chunkBytes = 0
    private(set) var count = 0

    /// log2 of 2,048, from which positions are counted so that the first chunks are not tiny.
    private static let firstOctave = 11
    /// log2 of the chunks to a doubling.
    private static let stepBits = 6
    /// log2 of the slots in the largest chunks.
    private static let chunkBitsMax = 13
    /// Where chunks stop growing.
    private static let evenFrom = 1 << (chunkBitsMax + stepBits + 1)
    /// The chunks before ``evenFrom``.
    private static let unevenChunks = (chunkBitsMax + stepBits + 1 - firstOctave) << stepBits
    /// An array's own header and that of the allocator, rounded up.
    private static let arrayBytes = 48

    /// Everything allocated for slots, used or not, with the headers of arrays and allocator.
    var allocatedBytes: Int {
        chunkBytes + Self.arrayBytes + chunks.capacity * MemoryLayout<[DiskIndexSlot]>.stride
    }

    @inline(__always)
    subscript(position: Int) -> DiskIndexSlot {
        let place = Self.position(position)
        return chunks[place.chunk][place.index]
    }

    /// The same as `self[position].head`, reading nothing else.
    @inline(__always)
    func head(_ position: Int) -> UInt32 {
        let place = Self.position(position)
        return chunks[place.chunk][place.index].head
    }

    @inline(__always)
    mutating func setHead(_ position: Int, _ head: UInt32) {
        let place = Self.position(position)
        chunks[place.chunk][place.index].head = head
    }

    @inline(__always)
    mutating func setNext(_ position: Int, _ next: UInt32) {
        let place = Self.position(position)
        chunks[place.chunk][place.index].next = next
    }

    @inline(__always)
    mutating func setEntry(_ position: Int, _ entry: DiskEntry) {
        let place = Self.position(position)
        chunks[place.chunk][place.index].entry = entry
    }

    /// Puts what `slot` says of an entry at `position`, which keeps the head of its chain.
    mutating func replaceEntry(at position: Int, by slot: DiskIndexSlot) {
        let place = Self.position(position)
        let head = chunks[place.chunk][place.index].head
        chunks[place.chunk][place.index] = DiskIndexSlot(
            digest: slot.digest, entry: slot.entry, next: slot.next, head: head)
    }

    mutating func append(_ slot: DiskIndexSlot) {
        let place = Self.position(count)
        if place.chunk == chunks.count {
            var chunk: [DiskIndexSlot] = []
            chunk.reserveCapacity(Self.slotCount(chunk: place.chunk))
            chunkBytes += Self.bytes(of: chunk)
            chunks.append(chunk)
        }
        chunks[place.chunk].append(slot)
        count += 1
    }

    mutating func removeLast() {
        count -= 1
        let place = Self.position(count)
        chunks[place.chunk].removeLast()
        guard place.index == 0, place.chunk + 1 < chunks.count else { return }
        chunkBytes -= Self.bytes(of: chunks.removeLast())
        if chunks.capacity > 4 * chunks.count { shortenChunkList() }
    }

    /// Gives back most of the room for chunks that are gone; no slot moves.
    private mutating func shortenChunkList() {
        var list: [[DiskIndexSlot]] = []
        list.reserveCapacity(2 * chunks.count)
        list.append(contentsOf: chunks)
        chunks = list
    }

    private static func bytes(of chunk: [DiskIndexSlot]) -> Int {
        arrayBytes + chunk.capacity * MemoryLayout<DiskIndexSlot>.stride
    }

    /// How many slots the chunk of this number holds.
    private static func slotCount(chunk: Int) -> Int {
        1 << min((chunk >> stepBits) + firstOctave - stepBits, chunkBitsMax)
    }

    /// The chunk that a position lies in, and where in it.
    @inline(__always)
    private static func position(_ position: Int) -> (chunk: Int, index: Int) {
        let from = position &+ (1 << firstOctave)
        if from >= evenFrom {
            let past = from &- evenFrom
            return (unevenChunks &+ past &>> chunkBitsMax, past & ((1 << chunkBitsMax) &- 1))
        }
        let octave = 63 &- from.leadingZeroBitCount
        let chunkBits = octave &- stepBits
        let step = (from &>> chunkBits) & ((1 << stepBits) &- 1)
        let chunk = ((octave &- firstOctave) &<< stepBits) &+ step
        return (chunk, from & ((1 &<< chunkBits) &- 1))
    }
}
