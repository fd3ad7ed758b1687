package import NIOCore
import Tiers

/// The immutable bytes of a stored response, in chunks, shared by the entry and every reader.
///
/// It owns its reservation, which is released with the last reference. Code that passes a chunk to
/// a socket must retain the `StoredBody` until the bytes are written.
package final class StoredBody: Sendable {
    /// Full chunks of ``Tiers/BodyLayout/chunkBytes``, then the pieces of the tail.
    package let chunks: [ByteBuffer]
    /// Length in bytes.
    package let size: UInt64
    /// Bytes of memory reserved for the chunks.
    package let capacityBytes: Int
    private let account: MemoryAccount

    /// Creates a body and takes over a reservation of `capacityBytes`, which the caller has made.
    package init(chunks: [ByteBuffer], size: UInt64, capacityBytes: Int, account: MemoryAccount) {
        self.chunks = chunks
        self.size = size
        self.capacityBytes = capacityBytes
        self.account = account
    }

    deinit {
        account.release(capacityBytes)
    }

    /// Appends slices that hold `count` bytes from `offset`, without a copy.
    ///
    /// - Precondition: the range lies inside the body.
    package func appendSlices(from offset: UInt64, count: Int, to slices: inout [ByteBuffer]) {
        precondition(offset + UInt64(count) <= size, "slices past the end")
        let fullChunks = Int(size) / BodyLayout.chunkBytes
        var index = min(Int(offset) / BodyLayout.chunkBytes, fullChunks)
        var chunkStart = index * BodyLayout.chunkBytes
        var position = Int(offset)
        var left = count
        while left > 0 {
            let chunk = chunks[index]
            let inside = position - chunkStart
            if inside < chunk.readableBytes {
                let taken = min(left, chunk.readableBytes - inside)
                if let slice = chunk.getSlice(at: chunk.readerIndex + inside, length: taken) {
                    slices.append(slice)
                }
                position += taken
                left -= taken
            }
            chunkStart += chunk.readableBytes
            index += 1
        }
    }
}

/// The body of a response while it is received: readers take slices of it, and it may become a
/// ``StoredBody``.
///
/// A buffer that grows while a slice of it is held would be copied whole, so nothing here grows:
/// pieces are kept as received until they amount to 64 KiB, then copied once into a chunk. Not
/// thread-safe.
package struct BodyBuffer {
    /// Full chunks from the body's first byte; empty if the body is not retained.
    private var chunks: [ByteBuffer] = []
    /// Bytes after the chunks, as received.
    private var pieces: [ByteBuffer] = []
    /// The body offset of the first piece.
    private var piecesOffset: UInt64 = 0
    /// Bytes of all pieces.
    private var pieceBytes = 0
    /// Index of the first of the small pieces, which together are less than a chunk.
    private var smallPiecesStart = 0
    /// Bytes of the small pieces.
    private var smallBytes = 0
    /// True while every byte is retained.
    private var isRetained: Bool
    private let allocator = ByteBufferAllocator()

    /// Maximum number of small pieces before they are joined, so that an origin that sends few
    /// bytes at a time costs no more memory than others.
    private static let piecesMax = 32

    /// Creates an empty buffer; if `isRetained`, all bytes are kept and may become a
    /// ``StoredBody``.
    package init(isRetained: Bool) {
        self.isRetained = isRetained
    }

    /// Bytes received.
    package var endOffset: UInt64 { piecesOffset + UInt64(pieceBytes) }
    /// Bytes held.
    package var heldBytes: Int { chunkBytes + pieceBytes }
    /// Bytes in full chunks; later bytes are still as received.
    package var chunkBytes: Int { chunks.count * BodyLayout.chunkBytes }

    /// Appends received bytes; an empty piece changes nothing.
    package mutating func append(_ piece: ByteBuffer) {
        guard piece.readableBytes > 0 else { return }
        pieces.append(piece)
        pieceBytes += piece.readableBytes
        smallBytes += piece.readableBytes
        while isRetained && pieceBytes >= BodyLayout.chunkBytes {
            chunks.append(joinPieces(BodyLayout.chunkBytes))
            smallBytes = pieceBytes
        }
        if smallBytes >= BodyLayout.chunkBytes {
            smallPiecesStart = pieces.count
            smallBytes = 0
        } else if pieces.count - smallPiecesStart > Self.piecesMax {
            joinSmallPieces()
        }
    }

    /// Stops retaining the body: from now on ``discard(below:)`` may drop bytes.
    package mutating func stopRetaining() {
        guard isRetained else { return }
        isRetained = false
        let all = chunks + pieces
        pieceBytes += chunkBytes
        piecesOffset -= UInt64(chunkBytes)
        smallPiecesStart += chunks.count
        chunks = []
        pieces = all
    }

    /// Drops the pieces that lie wholly below `offset`; without effect while the body is retained.
    package mutating func discard(below offset: UInt64) {
        guard !isRetained else { return }
        var gone = 0
        while gone < pieces.count,
            piecesOffset + UInt64(pieces[gone].readableBytes) <= offset
        {
            piecesOffset += UInt64(pieces[gone].readableBytes)
            pieceBytes -= pieces[gone].readableBytes
            gone += 1
        }
        pieces.removeFirst(gone)
        smallPiecesStart -= gone
        guard smallPiecesStart < 0 else { return }
        smallPiecesStart = 0
        smallBytes = pieceBytes
    }

    /// Appends slices that hold `count` bytes from `offset`, without a copy.
    ///
    /// - Precondition: the range was received and is still held.
    package func appendSlices(from offset: UInt64, count: Int, to slices: inout [ByteBuffer]) {
        precondition(offset + UInt64(count) <= endOffset, "slices past the end")
        var left = count
        var position = offset
        while left > 0, position < piecesOffset {
            let index = Int(position) / BodyLayout.chunkBytes
            let inside = Int(position) % BodyLayout.chunkBytes
            let taken = min(left, BodyLayout.chunkBytes - inside)
            appendSlice(of: chunks[index], at: inside, length: taken, to: &slices)
            position += UInt64(taken)
            left -= taken
        }
        var pieceStart = piecesOffset
        for piece in pieces where left > 0 {
            let pieceEnd = pieceStart + UInt64(piece.readableBytes)
            if position < pieceEnd {
                let taken = min(left, Int(pieceEnd - position))
                appendSlice(of: piece, at: Int(position - pieceStart), length: taken, to: &slices)
                position += UInt64(taken)
                left -= taken
            }
            pieceStart = pieceEnd
        }
        precondition(left == 0, "slices of bytes no longer held")
    }

    /// Returns the chunks of the whole body in the layout of ``Tiers/BodyLayout``; `nil` if it was
    /// not retained.
    package mutating func finish() -> [ByteBuffer]? {
        guard isRetained else { return nil }
        for capacity in BodyLayout.tail(pieceBytes) {
            chunks.append(joinPieces(min(capacity, pieceBytes), capacity: capacity))
        }
        return chunks
    }

    private func appendSlice(
        of buffer: ByteBuffer, at inside: Int, length: Int, to slices: inout [ByteBuffer]
    ) {
        if let slice = buffer.getSlice(at: buffer.readerIndex + inside, length: length) {
            slices.append(slice)
        }
    }

    /// Removes `count` bytes from the front of the pieces and returns them in one buffer.
    private mutating func joinPieces(_ count: Int, capacity: Int? = nil) -> ByteBuffer {
        var joined = allocator.buffer(capacity: capacity ?? count)
        var used = 0
        while joined.readableBytes < count {
            let wanted = count - joined.readableBytes
            if pieces[used].readableBytes <= wanted {
                joined.writeImmutableBuffer(pieces[used])
                used += 1
            } else if let part = pieces[used].readSlice(length: wanted) {
                joined.writeImmutableBuffer(part)
            }
        }
        pieces.removeFirst(used)
        pieceBytes -= count
        piecesOffset += UInt64(count)
        return joined
    }

    /// Copies the small pieces into one.
    private mutating func joinSmallPieces() {
        var joined = allocator.buffer(capacity: smallBytes)
        for piece in pieces[smallPiecesStart...] { joined.writeImmutableBuffer(piece) }
        pieces.replaceSubrange(smallPiecesStart..., with: CollectionOfOne(joined))
    }
}
