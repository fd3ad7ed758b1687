import COpenSSL
package import Ground
package import NIOCore

// MARK: - Reading

extension TLSSession {
    /// Returns the next plaintext, as much as has arrived, up to 16 KiB; if there is none, that
    /// more is needed, or how the session has ended.
    func read() -> TLSEvent {
        let pending = unsafe Int(SSL_pending(ssl))
        guard pending > 0 || !input.isEmpty else { return .needsMore }
        // Plaintext is never longer than its ciphertext: the bytes held, and those read of an
        // incomplete record.
        let capacity = min(pending + input.bytesSinceData, RecordSizePolicy.largeBytes)
        var plaintext =
            buffers?.takeInput(capacity: capacity)
            ?? ByteBufferAllocator().buffer(capacity: capacity)
        let limit = min(plaintext.capacity, RecordSizePolicy.largeBytes)
        ERR_clear_error()
        while plaintext.writerIndex < limit {
            var count = 0
            let isRead = unsafe plaintext.writeWithUnsafeMutableBytes(minimumWritableBytes: 0) {
                room in
                let wanted = min(room.count, limit)
                return unsafe SSL_read_ex(ssl, room.baseAddress, wanted, &count) == 1 ? count : 0
            }
            guard isRead > 0 else {
                readStopped()
                break
            }
            input.dataRead()
            // Saves a call that would return nothing.
            if unsafe input.isEmpty && SSL_has_pending(ssl) == 0 { break }
        }
        buffers?.recycleInput(plaintext)
        guard plaintext.readableBytes == 0 else { return .data(plaintext) }
        if case .open = state { return .needsMore }
        return next()
    }

    /// Ends the session if there is no more plaintext for another reason than that more bytes must
    /// arrive: close_notify, too many bytes without data, or an error.
    private func readStopped() {
        switch unsafe SSL_get_error(ssl, 0) {
        case SSL_ERROR_WANT_READ:
            if input.isLimitReached {
                fail(.inputLimitExceeded(max: CiphertextInput.bytesWithoutDataMax))
            }
        case SSL_ERROR_ZERO_RETURN:
            state = .closed
            input.removeAll()
        default: fail(failureCause())
        }
        ERR_clear_error()
    }
}

// MARK: - Writing

extension TLSSession {
    /// Encrypts `plaintext` into the output; only after `.established`.
    ///
    /// Nothing is written once the session has failed or ``close()`` was called.
    ///
    /// - Parameters:
    ///   - plaintext: the bytes to send.
    ///   - now: the present time, to detect pauses, after which records are small again.
    package func write(_ plaintext: ByteBuffer, now: Instant) {
        guard beginWrite(plaintext.readableBytes, pieces: 1, now: now) else { return }
        unsafe plaintext.withUnsafeReadableBytes { bytes in
            _ = unsafe encrypt(bytes, isLast: true)
        }
    }

    /// Encrypts `pieces` in order, as ``write(_:now:)`` does with one buffer that holds them all.
    ///
    /// Small pieces are combined into records, with one copy; a piece that fills a record is not
    /// copied.
    package func write(_ pieces: [ByteBuffer], now: Instant) {
        if pieces.count == 1 { return write(pieces[0], now: now) }
        let count = pieces.reduce(0) { $0 + $1.readableBytes }
        guard beginWrite(count, pieces: pieces.count, now: now) else { return }
        let capacity = min(count, RecordSizePolicy.largeBytes)
        unsafe withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { room in
            var gathered = 0
            for (index, piece) in pieces.enumerated() {
                unsafe piece.withUnsafeReadableBytes { bytes in
                    unsafe gather(
                        bytes, into: room, &gathered, isLast: index == pieces.count - 1)
                }
            }
            unsafe flush(room, &gathered)
        }
    }

    /// Writes close_notify: no more data follows, but data from the other side can still be read.
    ///
    /// Does nothing before the handshake is complete, and once the session has failed.
    package func close() {
        switch state {
        case .open, .closed: break
        case .handshaking, .failed: return
        }
        ERR_clear_error()
        _ = unsafe SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// Reserves output for `count` bytes; returns false if there is nothing to write, or nothing
    /// may be written any more.
    private func beginWrite(_ count: Int, pieces: Int, now: Instant) -> Bool {
        switch state {
        case .open, .closed: break
        case .failed: return false
        case .handshaking: preconditionFailure("written before the handshake was done")
        }
        guard count > 0, unsafe SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN == 0 else { return false }
        recordSizes.beginWrite(now: now)
        reserve(recordSizes.ciphertextBytesMax(count, pieces: pieces))
        return true
    }

    /// Appends `bytes` to the data gathered in `room`, and writes every full record.
    private func gather(
        _ bytes: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer,
        _ gathered: inout Int, isLast: Bool
    ) {
        if bytes.count >= RecordSizePolicy.largeBytes { unsafe flush(room, &gathered) }
        var rest = unsafe bytes
        while rest.count > 0 {
            if gathered == 0 {
                unsafe rest = unsafe encrypt(rest, isLast: isLast)
                if rest.count == 0 { return }
            }
            let count = min(rest.count, recordSizes.bytesMax - gathered)
            unsafe UnsafeMutableRawBufferPointer(rebasing: room[gathered...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            gathered += count
            unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[count...])
            if gathered == recordSizes.bytesMax { unsafe flush(room, &gathered) }
        }
    }

    /// Writes the data gathered in `room` as one record, if there is any.
    private func flush(_ room: UnsafeMutableRawBufferPointer, _ gathered: inout Int) {
        guard gathered > 0 else { return }
        unsafe encrypt(record: UnsafeRawBufferPointer(rebasing: room[..<gathered]))
        gathered = 0
    }

    /// Writes the full records at the start of `bytes`, and the rest too if nothing follows;
    /// returns the rest.
    private func encrypt(
        _ bytes: UnsafeRawBufferPointer, isLast: Bool
    ) -> UnsafeRawBufferPointer {
        var rest = unsafe bytes
        while rest.count >= recordSizes.bytesMax || isLast && rest.count > 0 {
            let count = min(rest.count, recordSizes.bytesMax)
            unsafe encrypt(record: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[count...])
        }
        return unsafe rest
    }

    /// Writes one record, and changes the key if it has been used for long; does nothing once the
    /// session has failed.
    private func encrypt(record: UnsafeRawBufferPointer) {
        if case .failed = state { return }
        var written = 0
        ERR_clear_error()
        guard unsafe SSL_write_ex(ssl, record.baseAddress, record.count, &written) == 1 else {
            fail(failureCause())
            return
        }
        recordSizes.recordWritten()
        recordsWithKey += 1
        if recordsWithKey >= recordsPerKeyMax { updateKey() }
    }

    /// Changes the key before the next record (RFC 8446 §4.6.3); does nothing in TLS 1.2, which has
    /// no such function.
    private func updateKey() {
        recordsWithKey = 0
        guard unsafe SSL_version(ssl) == TLS1_3_VERSION else { return }
        _ = unsafe SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED)
        ERR_clear_error()
    }
}

/// The size of the plaintext in each record.
///
/// A record can be read only once it has arrived in full. While the sender's congestion window is
/// small, a record of 16 KiB takes several round trips; records that fit into one segment are
/// readable as they arrive. So the first ten records are small, as many as segments in the initial
/// window (RFC 6928), and again after a pause of a second, when the window may have shrunk (RFC
/// 9293 §3.8.6 and RFC 5681 §4.1 allow it). All others have the maximum size (RFC 8446 §5.1).
struct RecordSizePolicy {
    /// The plaintext bytes that fit into 1500 with the record's header, content type and tag (22
    /// bytes) and the headers of TCP over IPv6 with timestamps.
    static let smallBytes = 1370
    static let largeBytes = 16 * 1024
    static let smallCount = 10
    static let pause = Interval.seconds(1)
    /// The maximum overhead of a record: header, explicit nonce of TLS 1.2 or content type of TLS
    /// 1.3, and tag.
    static let overheadBytes = 29

    private var smallLeft = Self.smallCount
    private var last: Instant?

    /// Starts a write at `now`; after a pause, records are small again.
    mutating func beginWrite(now: Instant) {
        if let last, now - last >= Self.pause { smallLeft = Self.smallCount }
        last = now
    }

    /// The maximum number of plaintext bytes in the next record.
    var bytesMax: Int { smallLeft > 0 ? Self.smallBytes : Self.largeBytes }

    /// Counts a record that was written; ``smallCount`` of them end the small ones.
    mutating func recordWritten() {
        if smallLeft > 0 { smallLeft -= 1 }
    }

    /// Returns the maximum number of ciphertext bytes for `count` bytes of plaintext, if each of
    /// `pieces` may end a record early.
    func ciphertextBytesMax(_ count: Int, pieces: Int) -> Int {
        count + (count / Self.largeBytes + smallLeft + pieces + 1) * Self.overheadBytes
    }
}
