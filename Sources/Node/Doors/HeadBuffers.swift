import NIOCore

/// The buffers that answers' heads are written into; one set for all doors of a loop.
///
/// A door flushes before another one reads, so almost always the first buffer is free again, and
/// still in the processor's cache, when the next door begins. A buffer that a slow socket still
/// holds is left to it and replaced.
struct HeadBuffers {
    private var buffers: [ByteBuffer]
    private var next = 0

    private static let buffersMax = 16
    private static let capacityBytes = 1024

    init() {
        buffers = [ByteBufferAllocator().buffer(capacity: Self.capacityBytes)]
    }

    /// Writes with `write` into an empty buffer that was not given out since ``begin()``, as long
    /// as there are any.
    @inline(__always)
    mutating func with(_ write: (inout ByteBuffer) -> Void) -> ByteBuffer {
        if next == buffers.count {
            if buffers.count < Self.buffersMax {
                buffers.append(ByteBufferAllocator().buffer(capacity: Self.capacityBytes))
            } else {
                next = 0
            }
        }
        buffers[next].clear()
        write(&buffers[next])
        defer { next += 1 }
        return buffers[next]
    }

    /// A door begins to answer; what others were given is flushed.
    @inline(__always)
    mutating func begin() {
        next = 0
    }
}
