import COpenSSL
package import Ground

/// The keys that session tickets are sealed with (RFC 5077 §4): whoever holds them can read what a
/// session of TLS 1.2 said, so they live in memory only and not for long.
///
/// A value: the owner makes it, rotates it in time, and hands it to every context that is to accept
/// the same tickets.
package struct TicketKeys: Hashable, Sendable {
    /// How long a ticket is accepted; every key is forgotten so long after a newer one took over.
    package static let lifetime = Interval.seconds(24 * 60 * 60)
    /// How long a key makes tickets.
    package static let period = Interval.seconds(12 * 60 * 60)
    /// Bytes of dice for each key.
    package static let entropyBytes = Key.nameBytes + Key.cipherBytes + Key.authenticationBytes
    /// More often than that is not rotated in a ticket's lifetime; the oldest key is forgotten.
    package static let keysMax = 8

    /// The newest first; never empty.
    private(set) var keys: [Key]

    struct Key: Hashable, Sendable {
        static let nameBytes = 16
        static let cipherBytes = 32
        static let authenticationBytes = 32

        /// Stands in front of each ticket.
        var name: [UInt8]
        /// For AES-256-CBC.
        var cipher: [UInt8]
        /// For HMAC-SHA256.
        var authentication: [UInt8]
        var made: Instant

        init(made: Instant, entropy: [UInt8]) {
            precondition(entropy.count == TicketKeys.entropyBytes, "\(entropy.count) bytes of dice")
            name = Array(entropy.prefix(Self.nameBytes))
            cipher = Array(entropy.dropFirst(Self.nameBytes).prefix(Self.cipherBytes))
            authentication = Array(entropy.suffix(Self.authenticationBytes))
            self.made = made
        }
    }

    /// One key, made of `dice`: ``diceBytes`` bytes that nobody can guess.
    package init(now: Instant, entropy: [UInt8]) {
        keys = [Key(made: now, entropy: entropy)]
    }

    /// True if the newest key has made tickets for a ``period``.
    package func isRotationDue(now: Instant) -> Bool {
        now - keys[0].made >= Self.period
    }

    /// Makes tickets with a new key from now on, and forgets those whose last ticket has passed its
    /// lifetime.
    package mutating func rotate(now: Instant, entropy: [UInt8]) {
        keys.insert(Key(made: now, entropy: entropy), at: 0)
        removeExpired(now: now)
        keys = Array(keys.prefix(Self.keysMax))
    }

    /// Forgets the keys whose last ticket has passed its lifetime.
    package mutating func removeExpired(now: Instant) {
        let isNeeded = keys.indices.filter { index in
            // A key made its last ticket when the next newer one was made.
            index == 0 || now - keys[index - 1].made < Self.lifetime
        }
        keys = isNeeded.map { keys[$0] }
    }
}

/// The keys that all sessions of a context use at the time, on whatever thread they run.
///
/// The lock is OpenSSL's; it is held for the copy of one reference.
@safe
final class SharedTicketKeys: @unchecked Sendable {
    private let lock: UnsafeMutableRawPointer
    private var keys: TicketKeys?

    init() throws(TLSSetupError) {
        guard let made = unsafe CRYPTO_THREAD_lock_new() else {
            throw .library(reason: OpenSSLError.popErrorText())
        }
        unsafe lock = made
    }

    deinit {
        unsafe CRYPTO_THREAD_lock_free(lock)
    }

    var current: TicketKeys? {
        get {
            let isLocked = unsafe CRYPTO_THREAD_read_lock(lock)
            precondition(isLocked == 1)
            defer { unsafe CRYPTO_THREAD_unlock(lock) }
            return keys
        }
        set {
            let isLocked = unsafe CRYPTO_THREAD_write_lock(lock)
            precondition(isLocked == 1)
            defer { unsafe CRYPTO_THREAD_unlock(lock) }
            keys = newValue
        }
    }
}

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
