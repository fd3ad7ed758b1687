import COpenSSL
package import NIOCore

/// One TLS connection without a transport; confined to its event loop.
///
/// Call ``start()``; then pass arriving bytes to ``receive(_:)``, and call ``next()`` until it
/// needs more or the session has ended. After each of these calls, and after writing, send
/// ``takeOutput()``. The caller limits the duration of the handshake; its size is limited here.
/// OpenSSL checks the validity of certificates and the age of tickets against the machine's wall
/// clock, and draws keys from its own random generator.
@safe
package final class TLSSession {
    let ssl: OpaquePointer
    let endpoint: Endpoint
    let buffers: TLSBufferPool?
    var state = State.handshaking
    /// The arrived bytes that OpenSSL has not read.
    var input = CiphertextInput()
    /// The encrypted bytes to send; `nil` if there are none.
    var output: ByteBuffer?
    var recordSizes = RecordSizePolicy()
    /// The number of records after which the key is changed, in TLS 1.3 only.
    ///
    /// AES-GCM is safe for 2^24.5 records of full size (RFC 8446 §5.5), and peers stay connected
    /// for long.
    package var recordsPerKeyMax = 1 << 23
    /// The number of records written with the current key.
    var recordsWithKey = 0
    /// The last ticket from the server; `nil` if there is none, or it was taken.
    package internal(set) var newResumption: TLSResumption?
    /// The reason why the other side's certificates were refused; `nil` if they were not.
    var verificationFailure: TLSFailureCause?
    /// True if the dialling peer named last a secret that is not accepted here.
    package internal(set) var wasUnknownIdentity = false

    /// The state of a session.
    enum State {
        case handshaking
        case open
        /// close_notify has arrived.
        case closed
        case failed(TLSFailure)
    }

    /// The role of this end, with its context.
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

    /// Creates the server's end of an accepted connection; `buffers` is the pool of its event loop.
    package convenience init(_ server: TLSServerContext, buffers: TLSBufferPool? = nil) {
        self.init(.server(server), buffers: buffers)
        unsafe SSL_set_accept_state(ssl)
        guard server.ticketKeys == nil else { return }
        _ = unsafe SSL_set_options(ssl, openssl_op_no_ticket)
        unsafe SSL_set_num_tickets(ssl, 0)
    }

    /// Creates the client's end of a connection to an origin.
    ///
    /// - Parameters:
    ///   - client: the shared configuration.
    ///   - host: the host, which the certificate must name.
    ///   - resuming: the state of an earlier session; ignored if it is from another host or
    ///     context.
    ///   - protocols: the application protocols to offer; `nil` for those of the context.
    ///   - buffers: the pool of the event loop.
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

    /// Creates one end of a connection between two nodes with a common secret.
    ///
    /// - Parameters:
    ///   - peer: the shared configuration.
    ///   - dials: true for the node that opened the connection.
    ///   - buffers: the pool of the event loop.
    package convenience init(peer: TLSPeerContext, dials: Bool, buffers: TLSBufferPool? = nil) {
        self.init(.peer(peer, dials: dials), buffers: buffers)
        unsafe dials ? SSL_set_connect_state(ssl) : SSL_set_accept_state(ssl)
    }

    private init(_ end: Endpoint, buffers: TLSBufferPool?) {
        // Fails only if there is no memory, like any allocation of the language.
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
        // Otherwise OpenSSL would invalidate the ticket of a connection that ends without
        // close_notify.
        unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
        unsafe SSL_free(ssl)
    }

    /// True if the handshake is done, the other side has not sent close_notify, and the session has
    /// not failed.
    package var isEstablished: Bool {
        if case .open = state { true } else { false }
    }

    /// Returns the session that owns `ssl`, for OpenSSL's callbacks; `nil` during its creation.
    static func session(ssl: OpaquePointer) -> TLSSession? {
        guard let data = unsafe SSL_get_ex_data(ssl, 0) else { return nil }
        return unsafe Unmanaged<TLSSession>.fromOpaque(data).takeUnretainedValue()
    }

    /// Starts the handshake: a client or a dialling peer writes its ClientHello; a server and an
    /// accepting peer do nothing.
    package func start() {
        switch endpoint {
        case .client, .peer(_, dials: true):
            if case .needsMore = handshake() { return }
        case .server, .peer: return
        }
    }

    /// Accepts bytes from the connection, which are kept, not copied, until ``next()`` has read
    /// them; ignored once the session has ended.
    ///
    /// The session fails if the first bytes of the connection are not a TLS record.
    package func receive(_ ciphertext: ByteBuffer) {
        guard ciphertext.readableBytes > 0 else { return }
        switch state {
        case .handshaking, .open:
            if let cause = input.append(ciphertext) { fail(cause) }
        case .closed, .failed: return
        }
    }

    /// Returns the next event; call again until it is `.needsMore`, or `.closed` or `.failed`,
    /// which repeat for ever.
    package func next() -> TLSEvent {
        switch state {
        case .handshaking: input.isEmpty ? .needsMore : handshake()
        case .open: read()
        case .closed: .closed
        case .failed(let failure): .failed(failure)
        }
    }

    /// Records the end of the connection by the other side; call once ``next()`` needs more.
    ///
    /// - Returns: `nil` if the connection ended properly, with close_notify, or had failed already;
    ///   else the failure.
    package func inputClosed() -> TLSEvent? {
        switch state {
        case .handshaking, .open: fail(.truncated)
        case .closed, .failed: nil
        }
    }

    /// Returns the last ticket from the server, once; `nil` if there is no new one.
    package func takeResumption() -> TLSResumption? {
        newResumption.take()
    }

    /// Returns the bytes to send, in one buffer; `nil` if there are none.
    package func takeOutput() -> ByteBuffer? {
        guard let full = output.take() else { return nil }
        buffers?.recycleOutput(full)
        return full
    }

    /// Fails the session with `cause`, which further calls of ``next()`` return, and drops the
    /// bytes that are not read.
    @discardableResult
    func fail(_ cause: TLSFailureCause) -> TLSEvent {
        let failure = TLSFailure(cause, as: endpoint.role)
        state = .failed(failure)
        input.removeAll()
        return .failed(failure)
    }

    /// Appends encrypted bytes to the output.
    func writeCiphertext(_ bytes: UnsafeRawBufferPointer) {
        reserve(bytes.count)
        _ = unsafe output?.writeBytes(bytes)
    }

    /// Reserves `count` more bytes of output.
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

/// The BIO that connects OpenSSL to a session's buffers.
///
/// Ciphertext is read from the arrived buffer and appended to the output with one copy each;
/// OpenSSL's memory BIOs would copy once more.
enum SessionBIO {
    /// Creates a BIO for `session`, which must outlive it; `nil` if OpenSSL has no memory.
    static func make(for session: TLSSession) -> OpaquePointer? {
        guard let method = unsafe method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(session).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    private static let flags =
        BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_IO_SPECIAL | BIO_FLAGS_SHOULD_RETRY

    /// The BIO's methods, created once, never modified and never freed.
    private nonisolated(unsafe) static let method: OpaquePointer? = {
        let kind = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        guard let method = unsafe BIO_meth_new(kind, "session") else { return nil }
        unsafe BIO_meth_set_read_ex(method) { bio, room, roomCount, readCount in
            guard let bio = unsafe bio, let room = unsafe room, let session = unsafe owner(of: bio)
            else { return 0 }
            let count = unsafe session.input.read(
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
            // Everything is written at once; no other command is supported.
            command == BIO_CTRL_FLUSH ? 1 : 0
        }
        return unsafe method
    }()

    /// Returns the session that `bio` was made for.
    private static func owner(of bio: OpaquePointer) -> TLSSession? {
        guard let data = unsafe BIO_get_data(bio) else { return nil }
        return unsafe Unmanaged<TLSSession>.fromOpaque(data).takeUnretainedValue()
    }
}
