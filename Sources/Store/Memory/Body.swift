package import NIOCore
import Tiers

/// The immutable bytes of a stored answer, in chunks, shared by the entry and every reader.
///
/// Owns its reservation: the account gets the bytes back when the last holder lets go. Whoever
/// hands a chunk to a socket keeps the `StoredBody` until the bytes are written.
package final class StoredBody: Sendable {
    /// Full chunks of ``Tiers/BodyLayout/chunkBytes``, then the pieces of the tail.
    package let chunks: [ByteBuffer]
    /// Length in bytes.
    package let size: UInt64
    /// Bytes of memory reserved for the chunks.
    package let capacityBytes: Int
    private let account: MemoryAccount

    /// Takes over a reservation of `capacityBytes`, which the caller has made.
    package init(chunks: [ByteBuffer], size: UInt64, capacityBytes: Int, account: MemoryAccount) {
        self.chunks = chunks
        self.size = size
        self.capacityBytes = capacityBytes
        self.account = account
    }

    deinit {
        account.release(capacityBytes)
    }

    /// Appends slices that hold the bytes from `offset`, `count` in all; copies nothing.
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
