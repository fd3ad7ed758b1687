import NIOCore

/// The buffers that the sessions of one event loop write into, one after the other; confined to
/// that loop.
///
/// A session takes the buffer when it has something to say and leaves it here when its output is
/// taken. Almost always the socket has accepted the bytes by then or soon after, and the next
/// session finds memory that nobody holds and that is still in the processor's cache; otherwise it
/// gets new memory.
package final class TLSBufferPool {
    /// Larger ones are not kept.
    private static let capacityMax = 128 * 1024

    private var output: ByteBuffer?
    private var input: ByteBuffer?

    package init() {}

    /// An empty buffer with room for `capacity` bytes to write ciphertext into.
    func takeOutput(capacity: Int) -> ByteBuffer {
        Self.take(&output, capacity: capacity)
    }

    func recycleOutput(_ buffer: ByteBuffer) {
        if buffer.capacity <= Self.capacityMax { output = buffer }
    }

    /// An empty buffer with room for `capacity` bytes to read plaintext into.
    func takeInput(capacity: Int) -> ByteBuffer {
        Self.take(&input, capacity: capacity)
    }

    func recycleInput(_ buffer: ByteBuffer) {
        if buffer.capacity <= Self.capacityMax { input = buffer }
    }

    private static func take(_ kept: inout ByteBuffer?, capacity: Int) -> ByteBuffer {
        guard var buffer = kept.take() else {
            return ByteBufferAllocator().buffer(capacity: capacity)
        }
        // Makes new memory if anybody still reads the old.
        buffer.clear(minimumCapacity: capacity)
        return buffer
    }
}
