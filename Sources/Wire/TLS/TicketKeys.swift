import COpenSSL
package import Ground

/// The keys that encrypt session tickets (RFC 5077 §4).
///
/// A holder of the keys can decrypt recorded TLS 1.2 sessions, so they are kept in memory only, and
/// not for long. The owner of this value creates it, rotates it in time, and passes it to every
/// context that is to accept the same tickets.
package struct TicketKeys: Hashable, Sendable {
    /// The lifetime of a ticket; a key is dropped that long after a newer one replaced it.
    package static let lifetime = Interval.seconds(24 * 60 * 60)
    /// The time for which a key encrypts new tickets.
    package static let period = Interval.seconds(12 * 60 * 60)
    /// The number of random bytes for each key.
    package static let entropyBytes = Key.nameBytes + Key.cipherBytes + Key.authenticationBytes
    /// The maximum number of keys; if rotation exceeds it within a ticket's lifetime, the oldest is
    /// dropped.
    package static let keysMax = 8

    /// The keys, the newest first; never empty.
    private(set) var keys: [Key]

    /// One key: a name, and the secrets for encryption and authentication.
    struct Key: Hashable, Sendable {
        static let nameBytes = 16
        static let cipherBytes = 32
        static let authenticationBytes = 32

        /// The key's name, with which each ticket begins.
        var name: [UInt8]
        /// The key for AES-256-CBC.
        var cipher: [UInt8]
        /// The key for HMAC-SHA256.
        var authentication: [UInt8]
        /// The time from which the key has encrypted new tickets.
        var made: Instant

        init(made: Instant, entropy: [UInt8]) {
            precondition(entropy.count == TicketKeys.entropyBytes, "\(entropy.count) bytes of dice")
            name = Array(entropy.prefix(Self.nameBytes))
            cipher = Array(entropy.dropFirst(Self.nameBytes).prefix(Self.cipherBytes))
            authentication = Array(entropy.suffix(Self.authenticationBytes))
            self.made = made
        }
    }

    /// Creates one key; `entropy` is ``entropyBytes`` unpredictable bytes.
    package init(now: Instant, entropy: [UInt8]) {
        keys = [Key(made: now, entropy: entropy)]
    }

    /// Returns true if the newest key has been in use for a ``period``.
    package func isRotationDue(now: Instant) -> Bool {
        now - keys[0].made >= Self.period
    }

    /// Adds a new key, which encrypts tickets from now on, and drops expired ones and those beyond
    /// ``keysMax``.
    ///
    /// - Parameters:
    ///   - now: the present time.
    ///   - entropy: ``entropyBytes`` unpredictable bytes.
    package mutating func rotate(now: Instant, entropy: [UInt8]) {
        keys.insert(Key(made: now, entropy: entropy), at: 0)
        removeExpired(now: now)
        keys = Array(keys.prefix(Self.keysMax))
    }

    /// Drops the keys whose last ticket has expired.
    package mutating func removeExpired(now: Instant) {
        let isNeeded = keys.indices.filter { index in
            // A key encrypted its last ticket when the next newer one was made.
            index == 0 || now - keys[index - 1].made < Self.lifetime
        }
        keys = isNeeded.map { keys[$0] }
    }
}

/// The current keys of a context, shared by its sessions on all threads.
///
/// The lock is OpenSSL's, and is held only while one reference is copied.
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

    /// The current keys; `nil` before the first ones are set.
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

/// Provides OpenSSL with the keys for session tickets (RFC 5077 §4).
enum TicketEncryption {
    /// Encrypts the tickets of `context`'s sessions with the keys of the session's own
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
    /// The key is unknown; a full handshake follows.
    private static let refused: CInt = 0
    private static let accepted: CInt = 1
    /// The ticket is valid, and the client gets a new one.
    private static let acceptedAndReplaced: CInt = 2

    /// The cipher, fetched once; never modified and never freed.
    private nonisolated(unsafe) static let algorithm = unsafe EVP_CIPHER_fetch(
        nil, "AES-256-CBC", nil)
    private static let vectorBytes: CInt = 16

    /// Sets up the encryption of a new ticket with `key`, and writes the key's name and a random
    /// vector.
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

    /// Sets up the decryption of a ticket with the key that it names.
    ///
    /// Returns ``acceptedAndReplaced`` for a ticket that is for one use, or whose key is not the
    /// newest; ``refused`` if the key is unknown.
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
        // A ticket used twice lets observers link the connections of a client (RFC 8446 §C.4).
        return index == 0 && !isForOneUse ? accepted : acceptedAndReplaced
    }

    /// Sets up the HMAC of a ticket with `key`; returns false if OpenSSL fails.
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
