import NIOCore

/// The reusable buffers of one event loop's sessions; confined to that loop.
///
/// A session takes the buffer when it has output, and returns it when the output is taken. Usually
/// the socket has accepted the bytes by then or soon after, so the next session gets unshared
/// memory that is still in the processor's cache; otherwise it gets new memory.
package final class TLSBufferPool {
    /// The maximum capacity in bytes of a buffer that is kept.
    private static let capacityMax = 128 * 1024

    private var output: ByteBuffer?
    private var input: ByteBuffer?

    /// Creates a pool without buffers.
    package init() {}

    /// Returns an empty buffer with `capacity` bytes for ciphertext.
    func takeOutput(capacity: Int) -> ByteBuffer {
        Self.take(&output, capacity: capacity)
    }

    /// Keeps `buffer`, whose bytes may still be in use, for the next ``takeOutput(capacity:)``;
    /// drops a large one.
    func recycleOutput(_ buffer: ByteBuffer) {
        if buffer.capacity <= Self.capacityMax { output = buffer }
    }

    /// Returns an empty buffer with `capacity` bytes for plaintext.
    func takeInput(capacity: Int) -> ByteBuffer {
        Self.take(&input, capacity: capacity)
    }

    /// Keeps `buffer`, whose bytes may still be in use, for the next ``takeInput(capacity:)``;
    /// drops a large one.
    func recycleInput(_ buffer: ByteBuffer) {
        if buffer.capacity <= Self.capacityMax { input = buffer }
    }

    /// Returns the kept buffer, emptied, or a new one; either has at least `capacity` bytes.
    private static func take(_ kept: inout ByteBuffer?, capacity: Int) -> ByteBuffer {
        guard var buffer = kept.take() else {
            return ByteBufferAllocator().buffer(capacity: capacity)
        }
        // Allocates new memory if the old is still shared.
        buffer.clear(minimumCapacity: capacity)
        return buffer
    }
}
