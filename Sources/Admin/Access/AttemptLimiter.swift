package import Ground

/// How often tokens may be guessed at from one address; bounded, whoever asks.
///
/// A bucket of attempts for each address, of IPv6 for each /64, that fills again with time. The
/// one that is full again first makes room for another.
package struct AttemptLimiter: Sendable {
    package struct Settings: Hashable, Sendable {
        /// Wrong tokens in a row.
        package var attemptsMax = 10
        /// Until one more is looked at.
        package var refill = Interval.seconds(6)
        package var addressesMax = 1_024

        package init() {}
    }

    private let settings: Settings
    /// By ``group(_:)``, when all attempts will be there again.
    private var fullAt: [UInt128: Instant] = [:]

    package init(_ settings: Settings = Settings()) {
        self.settings = settings
    }

    /// For how long no token from `address` is looked at; nil if one is.
    package func wait(of address: IPAddress?, at now: Instant) -> Interval? {
        guard let fullAt = fullAt[Self.group(address)] else { return nil }
        let room = Interval(
            nanoseconds: settings.refill.nanoseconds * Int64(settings.attemptsMax - 1))
        let free = now + room
        return fullAt > free ? fullAt - free : nil
    }

    /// A wrong token came from `address`.
    package mutating func failed(_ address: IPAddress?, at now: Instant) {
        let group = Self.group(address)
        fullAt[group] = max(fullAt[group] ?? now, now) + settings.refill
        guard fullAt.count > settings.addressesMax else { return }
        let next = fullAt.min { ($0.value, $0.key) < ($1.value, $1.key) }
        if let next { fullAt[next.key] = nil }
    }

    /// An IPv4 address, or the /64 of an IPv6 one; 0 for one that is not known.
    private static func group(_ address: IPAddress?) -> UInt128 {
        switch address?.unmapped {
        case .v4(let number): UInt128(number)
        case .v6(let number): (number >> 64) << 64
        case nil: 0
        }
    }
}
