import NIOCore

/// Bytes to be sent, in order: what the session writes itself lies in one buffer, between which the
/// bodies stand by reference.
///
/// The buffer is cut only when all is written: one that is shared with slices would be copied at
/// the next write.
struct FrameOutputBuffer {
    private var control: ByteBuffer
    /// The bodies, each with the offset in `control` before which it stands.
    private var bodies: [(before: Int, body: ByteBuffer)] = []
    /// Bytes of all.
    private(set) var count = 0

    init() {
        control = ByteBuffer()
    }

    /// Makes ready for the next turn: the memory is used again once all slices of it are dropped.
    mutating func beginTurn() {
        control.clear()
    }

    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe control.writeBytes(UnsafeRawBufferPointer(bytes))
        count += bytes.count
    }

    mutating func append(_ body: ByteBuffer) {
        bodies.append((before: control.writerIndex, body: body))
        count += body.readableBytes
    }

    /// Moves all to the end of `output`; how many bytes that is.
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
