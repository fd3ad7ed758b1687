package import NIOCore

/// The bytes of one TLS connection that have arrived and are not read yet, kept by reference.
package struct CiphertextInput {
    /// The maximum number of bytes in a handshake, and after it without data among them: four times
    /// the largest record.
    package static let bytesWithoutDataMax = 64 * 1024

    /// The buffer that is being read; `nil` if there is none.
    private var current: ByteBuffer?
    /// The buffers that arrived after ``current``.
    private var queue: [ByteBuffer] = []
    /// The number of bytes read since the last data.
    private var bytesWithoutData = 0
    /// The number of the connection's first two bytes that were checked.
    private var firstBytes = 0

    /// Creates the input of a new connection.
    package init() {}

    /// True if all arrived bytes are read.
    package var isEmpty: Bool { current == nil }

    /// True if nothing more is read, because so much was read without data.
    package var isLimitReached: Bool { bytesWithoutData >= Self.bytesWithoutDataMax }

    /// The number of bytes left in the buffer being read, plus those read since the last data.
    var bytesSinceData: Int { bytesWithoutData + (current?.readableBytes ?? 0) }

    /// Appends `ciphertext`, which must not be empty.
    ///
    /// - Returns: the failure if the connection does not begin with a TLS record, for which OpenSSL
    ///   would report various errors; nothing is appended then.
    package mutating func append(_ ciphertext: ByteBuffer) -> TLSFailureCause? {
        if firstBytes < 2, let byte = firstNonTLSByte(of: ciphertext) {
            return .notTLS(firstByte: byte)
        }
        if current == nil { current = ciphertext } else { queue.append(ciphertext) }
        return nil
    }

    /// Returns the first byte that cannot begin a connection with TLS, by record type and major
    /// version (RFC 8446 §5.1); `nil` if there is none among the first two.
    private mutating func firstNonTLSByte(of ciphertext: ByteBuffer) -> UInt8? {
        for byte in ciphertext.readableBytesView.prefix(2 - firstBytes) {
            let isTLS = firstBytes == 0 ? byte == 22 || byte == 21 : byte == 3
            guard isTLS else { return byte }
            firstBytes += 1
        }
        return nil
    }

    /// Reads the next bytes; returns their number, 0 if there are none or the limit is reached.
    package mutating func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard let held = current else { return 0 }
        let allowed = Self.bytesWithoutDataMax - bytesWithoutData
        let count = min(room.count, held.readableBytes, allowed)
        guard count > 0 else { return 0 }
        unsafe held.withUnsafeReadableBytes { bytes in
            unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
        bytesWithoutData += count
        if count < held.readableBytes {
            current?.moveReaderIndex(forwardBy: count)
        } else {
            // Often the only buffer; the array is used only for those after it.
            current = queue.isEmpty ? nil : queue.removeFirst()
        }
        return count
    }

    /// Records that the bytes read so far contained data, or completed the handshake.
    package mutating func dataRead() {
        bytesWithoutData = 0
    }

    /// Drops the bytes that are not read.
    mutating func removeAll() {
        current = nil
        queue = []
    }
}
