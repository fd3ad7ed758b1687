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
