import COpenSSL
import Certificates
import Wire

/// An end run by OpenSSL alone with settings that this product does not have: old versions, other
/// algorithms, client certificates, forged peers.
@safe
final class RawEnd {
    let ssl: OpaquePointer
    private let context: OpaquePointer
    private let input: OpaquePointer
    private let outputBIO: OpaquePointer
    private(set) var data: [UInt8] = []
    private(set) var isEstablished = false
    private(set) var hasFailed = false
    /// The number of the alert received.
    private(set) var alert: UInt8?

    init(isServer: Bool, setUp: (_ context: OpaquePointer) -> Void) {
        let method = unsafe isServer ? TLS_server_method() : TLS_client_method()
        unsafe context = unsafe SSL_CTX_new(method)
        unsafe setUp(context)
        unsafe ssl = unsafe SSL_new(context)
        unsafe input = unsafe BIO_new(BIO_s_mem())
        unsafe outputBIO = unsafe BIO_new(BIO_s_mem())
        // An empty buffer is not the end of the input.
        _ = unsafe BIO_ctrl(input, BIO_C_SET_BUF_MEM_EOF_RETURN, -1, nil)
        unsafe SSL_set_bio(ssl, input, outputBIO)
        unsafe isServer ? SSL_set_accept_state(ssl) : SSL_set_connect_state(ssl)
    }

    deinit {
        unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
        unsafe SSL_free(ssl)
        unsafe SSL_CTX_free(context)
    }

    /// A client that verifies nothing.
    static func client(
        name: String? = nil, setUp: (_ context: OpaquePointer) -> Void = { _ in }
    ) -> RawEnd {
        let end = unsafe RawEnd(isServer: false, setUp: setUp)
        guard let name else { return end }
        var bytes = name.utf8.map { CChar(bitPattern: $0) } + [0]
        unsafe SSL_ctrl(end.ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, 0, &bytes)
        return end
    }

    static func server(
        _ certificate: TestCertificate, setUp: (_ context: OpaquePointer) -> Void = { _ in }
    ) -> RawEnd {
        unsafe RawEnd(isServer: true) { context in
            unsafe show(certificate, in: context)
            unsafe setUp(context)
        }
    }

    static func show(_ certificate: TestCertificate, in context: OpaquePointer) {
        unsafe SSL_CTX_use_certificate(context, certificate.certificate)
        unsafe SSL_CTX_use_PrivateKey(context, certificate.key)
    }

    /// Allows only `version`, one of `TLS1_…_VERSION`, even if it is as old as 1.0.
    static func only(_ version: CInt, in context: OpaquePointer) {
        if version < TLS1_2_VERSION {
            unsafe SSL_CTX_set_security_level(context, 0)
            unsafe SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0")
        }
        unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(version), nil)
        unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(version), nil)
    }

    /// Continues as far as possible.
    func advance() {
        guard !hasFailed else { return }
        ERR_clear_error()
        if !isEstablished {
            let result = unsafe SSL_do_handshake(ssl)
            guard result == 1 else {
                unsafe note(SSL_get_error(ssl, result))
                return
            }
            isEstablished = true
        }
        var room = [UInt8](repeating: 0, count: 16 * 1024)
        var count = 0
        while unsafe SSL_read_ex(ssl, &room, room.count, &count) == 1 { data += room.prefix(count) }
        unsafe note(SSL_get_error(ssl, 0))
    }

    private func note(_ error: CInt) {
        if error == SSL_ERROR_SSL {
            hasFailed = true
            let reason = ERR_GET_REASON(ERR_peek_error())
            if reason > SSL_AD_REASON_OFFSET { alert = UInt8(reason - SSL_AD_REASON_OFFSET) }
        }
        ERR_clear_error()
    }

    func write(_ bytes: [UInt8]) {
        var count = 0
        unsafe SSL_write_ex(ssl, bytes, bytes.count, &count)
    }

    func take() -> [UInt8] {
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe Int(BIO_read(outputBIO, &room, CInt(room.count)))
            guard count > 0 else { return bytes }
            bytes += room.prefix(count)
        }
    }

    func give(_ bytes: [UInt8]) {
        unsafe BIO_write(input, bytes, CInt(bytes.count))
        advance()
    }

    /// The certificate of the other end.
    var shown: OpaquePointer? { unsafe SSL_get0_peer_certificate(ssl) }

    func sees(_ certificate: TestCertificate) -> Bool {
        guard let shown = unsafe shown else { return false }
        return unsafe X509_cmp(shown, certificate.certificate) == 0
    }
}

/// Delivers between `raw` and `session` until neither has anything to send.
@discardableResult
func run(_ raw: RawEnd, _ session: TLSSession) -> PairEnd {
    let end = PairEnd(session)
    session.start()
    raw.advance()
    run(raw, end)
    return end
}

func run(_ raw: RawEnd, _ end: PairEnd) {
    while true {
        let up = raw.take()
        let down = end.take()
        if up.isEmpty, down.isEmpty { return }
        if !up.isEmpty { end.give(up) }
        if !down.isEmpty { raw.give(down) }
    }
}
