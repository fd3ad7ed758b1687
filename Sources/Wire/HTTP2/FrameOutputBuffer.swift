import NIOCore

/// Bytes to send, in order: frames in one buffer, interleaved with bodies by reference.
///
/// The buffer is sliced only once everything is written, because the next write to a buffer that
/// shares its storage with slices would copy it.
struct FrameOutputBuffer {
    private var control: ByteBuffer
    /// The bodies, each with its position as an offset in `control`.
    private var bodies: [(before: Int, body: ByteBuffer)] = []
    /// The number of bytes in total.
    private(set) var count = 0

    init() {
        control = ByteBuffer()
    }

    /// Starts the next turn; the memory is reused once all slices of it are dropped.
    mutating func beginTurn() {
        control.clear()
    }

    /// Appends a copy of bytes.
    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe control.writeBytes(UnsafeRawBufferPointer(bytes))
        count += bytes.count
    }

    /// Appends a body by reference.
    mutating func append(_ body: ByteBuffer) {
        bodies.append((before: control.writerIndex, body: body))
        count += body.readableBytes
    }

    /// Moves everything to the end of `output`, and returns the number of bytes.
    mutating func drain(into output: inout [ByteBuffer]) -> Int {
        guard count > 0 else { return 0 }
        var cut = 0
        for index in bodies.indices {
            let end = bodies[index].before
            if end > cut, let slice = control.getSlice(at: cut, length: end - cut) {
                output.append(slice)
            }
            cut = end
            output.append(bodies[index].body)
        }
        let rest = control.writerIndex - cut
        if rest > 0, let slice = control.getSlice(at: cut, length: rest) { output.append(slice) }
        bodies.removeAll(keepingCapacity: true)
        defer { count = 0 }
        return count
    }
}
