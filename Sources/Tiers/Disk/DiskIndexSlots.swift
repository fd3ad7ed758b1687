import Ground

/// An entry of the disk index and the head of one of its chains, in 40 bytes.
struct DiskIndexSlot {
    /// The value of a link that points to no slot.
    static let none = UInt32.max

    var digest: EntryDigest
    var entry: DiskEntry
    /// The next slot in this slot's chain.
    var next: UInt32
    /// The first slot of the chain whose number is this slot's position.
    var head: UInt32
}

/// An array of slots in chunks, so that growth never copies a slot.
///
/// A chunk is allocated at its full size and never grows. There are 64 chunks per doubling of the
/// positions, the first of 32 slots, up to chunks of 8,192 slots (320 KiB); all further ones have
/// this size. The unused capacity, at most two chunks, is thus about a thirtieth of a large store.
///
/// Invariant: all chunks but the last two are full, and only the last may be empty. One empty chunk
/// is kept, so that a count that varies around the end of a chunk causes no allocation.
struct DiskIndexSlots {
    private var chunks: [[DiskIndexSlot]] = []
    private var chunkBytes = 0
    private(set) var count = 0

    /// log2 of 2,048, the number added to positions so that the first chunks are not tiny.
    private static let firstOctave = 11
    /// log2 of the number of chunks per doubling.
    private static let stepBits = 6
    /// log2 of the slots in the largest chunks.
    private static let chunkBitsMax = 13
    /// The shifted position from which all chunks have the same size.
    private static let evenFrom = 1 << (chunkBitsMax + stepBits + 1)
    /// The number of chunks before ``evenFrom``.
    private static let unevenChunks = (chunkBitsMax + stepBits + 1 - firstOctave) << stepBits
    /// The headers of an array and of its allocation in bytes, rounded up.
    private static let arrayBytes = 48

    /// The bytes allocated for slots, used or not, with the headers of arrays and allocations.
    var allocatedBytes: Int {
        chunkBytes + Self.arrayBytes + chunks.capacity * MemoryLayout<[DiskIndexSlot]>.stride
    }

    @inline(__always)
    subscript(position: Int) -> DiskIndexSlot {
        let place = Self.position(position)
        return chunks[place.chunk][place.index]
    }

    /// Returns `self[position].head` without reading the rest of the slot.
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

    /// Replaces the entry at `position` by that of `slot`; the head of the chain stays.
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

    /// Removes the last slot, and releases the last chunk if the one before it is now empty too.
    mutating func removeLast() {
        count -= 1
        let place = Self.position(count)
        chunks[place.chunk].removeLast()
        guard place.index == 0, place.chunk + 1 < chunks.count else { return }
        chunkBytes -= Self.bytes(of: chunks.removeLast())
        if chunks.capacity > 4 * chunks.count { shortenChunkList() }
    }

    /// Releases most of the capacity for removed chunks; no slot moves.
    private mutating func shortenChunkList() {
        var list: [[DiskIndexSlot]] = []
        list.reserveCapacity(2 * chunks.count)
        list.append(contentsOf: chunks)
        chunks = list
    }

    /// Returns the bytes allocated for a chunk, including the headers of its array.
    private static func bytes(of chunk: [DiskIndexSlot]) -> Int {
        arrayBytes + chunk.capacity * MemoryLayout<DiskIndexSlot>.stride
    }

    /// Returns the number of slots in a chunk.
    private static func slotCount(chunk: Int) -> Int {
        1 << min((chunk >> stepBits) + firstOctave - stepBits, chunkBitsMax)
    }

    /// Returns the chunk of a position and the index in it.
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
