import COpenSSL
package import NIOCore

/// One TLS connection: bytes in, bytes out; confined to its event loop.
///
/// ``start()``; then give it what arrives with ``receive(_:)`` and call ``next()`` until it needs
/// more; after each of these calls, and after writing, send ``takeOutput()``. How long a handshake
/// may take is for the caller to limit; how many bytes it may take is limited here. Certificates'
/// validity and the age of tickets are judged by the machine's wall clock, and keys are drawn from
/// its dice, by OpenSSL.
@safe
package final class TLSSession {
    /// Bytes of ciphertext, at most, in a handshake and after it without data among them: the
    /// largest record four times.
    package static let bytesWithoutDataMax = 64 * 1024

    let ssl: OpaquePointer
    let endpoint: Endpoint
    private let buffers: TLSBufferPool?
    var state = State.handshaking
    /// What has arrived and was not read; nil if there is nothing.
    var currentInput: ByteBuffer?
    /// What arrived after that.
    private var queuedInput: [ByteBuffer] = []
    /// Bytes that OpenSSL has read since data came last.
    var bytesWithoutData = 0
    /// How many of the connection's first two bytes have been looked at.
    private var firstBytes = 0
    var output: ByteBuffer?
    var recordSizes = RecordSizePolicy()
    /// How many records are written with one key: AES-GCM is safe for 2^24.5 of full size (RFC 8446
    /// §5.5), and peers stay connected for long.
    package var recordsPerKeyMax = 1 << 23
    /// Records written with the present key.
    var recordsWithKey = 0
    /// The last ticket that the server gave to this client.
    package internal(set) var newResumption: TLSResumption?
    /// Why ``check(_:)`` refused what the other side showed.
    var verificationFailure: TLSFailureCause?
    /// A peer named a secret that is not accepted here.
    var wasUnknownIdentity = false

    enum State {
        case handshaking
        case open
        /// close_notify has come.
        case closed
        case failed(TLSFailure)
    }

    /// Which end of which kind of connection this is.
    enum Endpoint {
        case server(TLSServerContext)
        case client(TLSClientContext, TLSServerName)
        case peer(TLSPeerContext, dials: Bool)

        var role: TLSRole {
            switch self {
            case .server: .server
            case .client: .client
            case .peer: .peer
            }
        }

        var context: OpenSSLContext {
            switch self {
            case .server(let server): server.defaultContext
            case .client(let client, _): client.context
            case .peer(let peer, _): peer.context
            }
        }
    }

    /// A connection of a client that was accepted; `buffers` are those of the loop.
    package convenience init(_ server: TLSServerContext, buffers: TLSBufferPool? = nil) {
        self.init(.server(server), buffers: buffers)
        unsafe SSL_set_accept_state(ssl)
        guard server.ticketKeys == nil else { return }
        _ = unsafe SSL_set_options(ssl, openssl_op_no_ticket)
        unsafe SSL_set_num_tickets(ssl, 0)
    }

    /// A connection to an origin.
    ///
    /// A resumption that was made with another host or context is not used. `protocols` are offered
    /// in place of the context's; nil for those.
    package convenience init(
        _ client: TLSClientContext, to host: TLSServerName, resuming: TLSResumption? = nil,
        offering protocols: [TLSApplicationProtocol]? = nil, buffers: TLSBufferPool? = nil
    ) {
        self.init(.client(client, host), buffers: buffers)
        unsafe SSL_set_connect_state(ssl)
        setServerName(host)
        if let resuming, resuming.host == host, resuming.context === client {
            unsafe SSL_set_session(ssl, resuming.ticket.pointer)
        }
        if let protocols {
            let list = TLSApplicationProtocol.list(protocols)
            _ = unsafe SSL_set_alpn_protos(ssl, list, UInt32(list.count))
        }
        ERR_clear_error()
    }

    /// A connection between two nodes with one secret.
    package convenience init(peer: TLSPeerContext, dials: Bool, buffers: TLSBufferPool? = nil) {
        self.init(.peer(peer, dials: dials), buffers: buffers)
        unsafe dials ? SSL_set_connect_state(ssl) : SSL_set_accept_state(ssl)
    }

    private init(_ end: Endpoint, buffers: TLSBufferPool?) {
        // Like any allocation of the language, it fails only if there is no memory.
        guard let made = unsafe SSL_new(end.context.pointer) else {
            preconditionFailure("no TLS session: \(OpenSSLError.popErrorText())")
        }
        unsafe ssl = unsafe made
        self.endpoint = end
        self.buffers = buffers
        guard let bio = unsafe SessionBIO.make(for: self) else {
            preconditionFailure("no BIO: \(OpenSSLError.popErrorText())")
        }
        unsafe SSL_set_bio(ssl, bio, bio)
        unsafe SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        // Otherwise a connection that ends without close_notify would spoil its ticket.
        unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
        unsafe SSL_free(ssl)
    }

    /// The handshake is done, and nothing has ended or failed since: data may be written.
    package var isEstablished: Bool {
        if case .open = state { true } else { false }
    }

    /// The session that OpenSSL calls back about.
    static func session(ssl: OpaquePointer) -> TLSSession? {
        guard let data = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
        return unsafe Unmanaged<TLSSession>.fromOpaque(data).takeUnretainedValue()
    }

    /// A client writes its hello; others have nothing to say yet.
    package func start() {
        switch endpoint {
        case .client, .peer(_, dials: true):
            if case .needsMore = handshake() { return }
        case .server, .peer: return
        }
    }

    /// Takes bytes from the connection; they are kept, not copied, until ``next()`` has read them.
    package func receive(_ ciphertext: ByteBuffer) {
        guard ciphertext.readableBytes > 0 else { return }
        switch state {
        case .handshaking, .open: break
        case .closed, .failed: return
        }
        guard firstBytes >= 2 || isTLSRecordPrefix(ciphertext) else { return }
        if currentInput == nil {
            currentInput = ciphertext
        } else {
            queuedInput.append(ciphertext)
        }
    }

    /// What has come, one thing at a time; call again until it says `.needsMore`.
    package func next() -> TLSEvent {
        switch state {
        case .handshaking: currentInput == nil ? .needsMore : handshake()
        case .open: read()
        case .closed: .closed
        case .failed(let failure): .failed(failure)
        }
    }

    /// The connection ended on the other side; to be called once ``next()`` needs more.
    ///
    /// Nil if it ended as it should, with close_notify, or had failed already.
    package func inputClosed() -> TLSEvent? {
        switch state {
        case .handshaking, .open: fail(.truncated)
        case .closed, .failed: nil
        }
    }

    /// The last ticket that the server gave, once; nil if none came since.
    package func takeResumption() -> TLSResumption? {
        newResumption.take()
    }

    /// What is to be sent, in one piece; nil if there is nothing.
    package func takeOutput() -> ByteBuffer? {
        guard let full = output.take() else { return nil }
        buffers?.recycleOutput(full)
        return full
    }

    /// Ends the session; the failure is remembered.
    @discardableResult
    func fail(_ cause: TLSFailureCause) -> TLSEvent {
        let failure = TLSFailure(cause, as: endpoint.role)
        state = .failed(failure)
        discardInput()
        return .failed(failure)
    }

    /// Forgets what has arrived.
    func discardInput() {
        currentInput = nil
        queuedInput = []
    }

    /// An empty buffer to put `capacity` bytes of plaintext into.
    func takeInput(capacity: Int) -> ByteBuffer {
        buffers?.takeInput(capacity: capacity) ?? ByteBufferAllocator().buffer(capacity: capacity)
    }

    func keepInput(_ buffer: ByteBuffer) {
        buffers?.recycleInput(buffer)
    }

    /// Looks at the connection's first bytes as they come: type of a record and major version (RFC
    /// 8446 §5.1).
    ///
    /// Clear text is told from TLS here, where OpenSSL would find many errors.
    private func isTLSRecordPrefix(_ ciphertext: ByteBuffer) -> Bool {
        for byte in ciphertext.readableBytesView.prefix(2 - firstBytes) {
            let isRight = firstBytes == 0 ? byte == 22 || byte == 21 : byte == 3
            guard isRight else {
                fail(.notTLS(firstByte: byte))
                return false
            }
            firstBytes += 1
        }
        return true
    }
}

// MARK: - Ciphertext

extension TLSSession {
    /// The next bytes that arrived; none if there are none, or if too many came without data.
    func readCiphertext(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard let held = currentInput else { return 0 }
        let allowed = Self.bytesWithoutDataMax - bytesWithoutData
        let count = min(room.count, held.readableBytes, allowed)
        guard count > 0 else { return 0 }
        unsafe held.withUnsafeReadableBytes { bytes in
            unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
        bytesWithoutData += count
        if count < held.readableBytes {
            currentInput?.moveReaderIndex(forwardBy: count)
        } else {
            // Often the only one; an array is made for those after it alone.
            currentInput = queuedInput.isEmpty ? nil : queuedInput.removeFirst()
        }
        return count
    }

    func writeCiphertext(_ bytes: UnsafeRawBufferPointer) {
        reserve(bytes.count)
        _ = unsafe output?.writeBytes(bytes)
    }

    /// Makes room for `count` more bytes of output.
    func reserve(_ count: Int) {
        if output == nil {
            output =
                buffers?.takeOutput(capacity: count)
                ?? ByteBufferAllocator().buffer(capacity: count)
        } else {
            output?.reserveCapacity(minimumWritableBytes: count)
        }
    }
}

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
