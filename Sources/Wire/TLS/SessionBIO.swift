import COpenSSL

/// Where OpenSSL reads and writes the ciphertext of a session: straight from the buffer that
/// arrived and to the end of the output, each with one copy.
///
/// The library's memory BIOs would copy once more.
enum SessionBIO {
    /// A BIO for `session`, which must outlive it; nil if OpenSSL has no memory.
    static func make(for session: TLSSession) -> OpaquePointer? {
        guard let method = unsafe method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(session).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    private static let flags =
        BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_IO_SPECIAL | BIO_FLAGS_SHOULD_RETRY

    /// Made once; never changed after that, and never freed.
    private nonisolated(unsafe) static let method: OpaquePointer? = {
        let kind = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        guard let method = unsafe BIO_meth_new(kind, "session") else { return nil }
        unsafe BIO_meth_set_read_ex(method) { bio, room, roomCount, readCount in
            guard let bio = unsafe bio, let room = unsafe room, let session = unsafe owner(of: bio)
            else { return 0 }
            let count = unsafe session.readCiphertext(
                into: UnsafeMutableRawBufferPointer(start: room, count: roomCount))
            unsafe BIO_clear_flags(bio, flags)
            guard count > 0 else {
                unsafe BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
                return 0
            }
            unsafe readCount?.pointee = count
            return 1
        }
        unsafe BIO_meth_set_write_ex(method) { bio, bytes, count, writtenCount in
            guard let bio = unsafe bio, let session = unsafe owner(of: bio) else { return 0 }
            unsafe BIO_clear_flags(bio, flags)
            unsafe session.writeCiphertext(UnsafeRawBufferPointer(start: bytes, count: count))
            unsafe writtenCount?.pointee = count
            return 1
        }
        unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in
            // Everything is written at once; nothing else is known here.
            command == BIO_CTRL_FLUSH ? 1 : 0
        }
        return unsafe method
    }()

    private static func owner(of bio: OpaquePointer) -> TLSSession? {
        guard let data = unsafe BIO_get_data(bio) else { return nil }
        return unsafe Unmanaged<TLSSession>.fromOpaque(data).takeUnretainedValue()
    }
}
