import COpenSSL

/// Gives OpenSSL the keys for session tickets (RFC 5077 §4).
enum TicketEncryption {
    /// Seals tickets of `context`'s sessions with the keys of the session's own
    /// ``TLSServerContext``.
    static func install(in context: OpenSSLContext) {
        _ = unsafe SSL_CTX_set_tlsext_ticket_key_evp_cb(context.pointer) {
            session, name, vector, cipher, authentication, isSealing in
            guard let session = unsafe session, let name = unsafe name, let vector = unsafe vector,
                let keys = unsafe TLSSession.session(ssl: session)?.ticketKeys
            else { return TicketEncryption.refused }
            return isSealing == 1
                ? unsafe TicketEncryption.seal(keys.keys[0], name, vector, cipher, authentication)
                : unsafe TicketEncryption.open(
                    keys.keys, name, vector, cipher, authentication,
                    isForOneUse: SSL_version(session) == TLS1_3_VERSION)
        }
    }

    private static let failed: CInt = -1
    /// No such key: a full handshake follows.
    private static let refused: CInt = 0
    private static let accepted: CInt = 1
    /// The client is to get a new ticket.
    private static let acceptedAndReplaced: CInt = 2

    /// Looked up once; never changed, and never freed.
    private nonisolated(unsafe) static let algorithm = unsafe EVP_CIPHER_fetch(
        nil, "AES-256-CBC", nil)
    private static let vectorBytes: CInt = 16

    private static func seal(
        _ key: TicketKeys.Key, _ name: UnsafeMutablePointer<UInt8>,
        _ vector: UnsafeMutablePointer<UInt8>, _ cipher: OpaquePointer?,
        _ authentication: OpaquePointer?
    ) -> CInt {
        for index in key.name.indices { unsafe name[index] = key.name[index] }
        let isSet =
            unsafe RAND_bytes(vector, vectorBytes) == 1
            && EVP_EncryptInit_ex(cipher, algorithm, nil, key.cipher, vector) == 1
            && authenticate(authentication, with: key)
        return isSet ? accepted : failed
    }

    private static func open(
        _ keys: [TicketKeys.Key], _ name: UnsafeMutablePointer<UInt8>,
        _ vector: UnsafeMutablePointer<UInt8>, _ cipher: OpaquePointer?,
        _ authentication: OpaquePointer?, isForOneUse: Bool
    ) -> CInt {
        let wanted = unsafe Array(
            UnsafeBufferPointer(start: name, count: TicketKeys.Key.nameBytes))
        guard let index = keys.firstIndex(where: { $0.name == wanted }) else { return refused }
        let isSet =
            unsafe EVP_DecryptInit_ex(cipher, algorithm, nil, keys[index].cipher, vector) == 1
            && authenticate(authentication, with: keys[index])
        guard isSet else { return failed }
        // A ticket that is used twice lets others follow the client (RFC 8446 §C.4).
        return index == 0 && !isForOneUse ? accepted : acceptedAndReplaced
    }

    private static func authenticate(
        _ context: OpaquePointer?, with key: TicketKeys.Key
    ) -> Bool {
        var hash = "SHA256".utf8.map { CChar(bitPattern: $0) } + [0]
        return unsafe hash.withUnsafeMutableBufferPointer { hash in
            let parameters = unsafe [
                OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, hash.baseAddress, 0),
                OSSL_PARAM_construct_end(),
            ]
            return unsafe EVP_MAC_init(
                context, key.authentication, key.authentication.count, parameters) == 1
        }
    }
}
