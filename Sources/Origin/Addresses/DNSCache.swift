package import Ground

/// What is known of names: their addresses, or that they have none, each for a time.
///
/// The system's resolver does not say how long an answer may be kept, so one time holds for all.
/// Addresses are judged by the address guard at every use, not here.
package struct DNSCache: Sendable {
    /// Limits of a ``DNSCache``.
    package struct Settings: Hashable, Sendable {
        /// How long addresses are used without asking again.
        package var lifetime: Interval
        /// How long a name that was not found is not asked for again.
        package var failureLifetime: Interval
        /// Names remembered.
        package var namesMax: Int

        package init(lifetime: Interval, failureLifetime: Interval, namesMax: Int) {
            self.lifetime = lifetime
            self.failureLifetime = failureLifetime
            self.namesMax = namesMax
        }
    }

    /// What is known of one name.
    package enum Resolution: Hashable, Sendable {
        case addresses([IPAddress])
        case notFound
        /// The resolver gave no answer; carries its reason.
        case failed(String)
    }

    private struct Entry: Sendable {
        var resolution: Resolution
        var expiresAt: Instant
        /// When the resolver's own answer expired.
        var freshUntil: Instant
        var lastUsedAt: Instant
    }

    /// While a resolver gives no answer, addresses that have expired serve so much longer (RFC
    /// 8767 §5 has days; a day is enough to mend a resolver).
    private static let staleLifetimeMax = Interval.seconds(86_400)

    /// How long a resolver is waited for where addresses were known before.
    static let clientResponseTimeout = Interval.seconds(2)
    /// How long addresses known before are used without asking, once the resolver gave no answer
    /// (RFC 8767 §5 recommends 30 seconds).
    private static let staleLifetime = Interval.seconds(30)

    package var settings: Settings
    private var entries: [String: Entry] = [:]

    package init(settings: Settings) {
        self.settings = settings
    }

    /// Names remembered.
    package var count: Int { entries.count }

    /// What is known of `host` and not yet expired.
    package mutating func lookup(_ host: String, now: Instant) -> Resolution? {
        guard let entry = entries[host], now < entry.expiresAt else { return nil }
        entries[host]?.lastUsedAt = now
        return entry.resolution
    }

    /// The resolver gave addresses.
    package mutating func storeAddresses(_ addresses: [IPAddress], of host: String, now: Instant) {
        store(.addresses(addresses), of: host, for: settings.lifetime, now: now)
    }

    /// The resolver says that there is no such name.
    package mutating func storeNotFound(_ host: String, now: Instant) {
        store(.notFound, of: host, for: settings.failureLifetime, now: now)
    }

    /// The resolver gave no answer: the addresses known last serve for a while; nil if none are.
    package mutating func storeFailure(
        _ host: String, reason: String, now: Instant
    ) -> [IPAddress]? {
        guard let known = staleAddresses(host, now: now) else {
            store(.failed(reason), of: host, for: settings.failureLifetime, now: now)
            return nil
        }
        entries[host]?.expiresAt = now + Self.staleLifetime
        return known
    }

    /// The addresses known last, if they have not expired long ago.
    package func staleAddresses(_ host: String, now: Instant) -> [IPAddress]? {
        guard let entry = entries[host], case .addresses(let addresses) = entry.resolution,
            now < entry.freshUntil + Self.staleLifetimeMax
        else { return nil }
        return addresses
    }

    /// None of the addresses took a connection: the next fetch asks again, and may still fall back
    /// on them.
    package mutating func expire(_ host: String, now: Instant) {
        guard let entry = entries[host], now < entry.expiresAt else { return }
        entries[host]?.expiresAt = now
    }

    private mutating func store(
        _ response: Resolution, of host: String, for lifetime: Interval, now: Instant
    ) {
        entries[host] = Entry(
            resolution: response, expiresAt: now + lifetime, freshUntil: now + lifetime,
            lastUsedAt: now)
        guard entries.count > settings.namesMax else { return }
        // A tenth at once, so that a flood of names does not search for the oldest at each.
        let order = entries.map { ($0.value.lastUsedAt, $0.key) }.sorted { $0 < $1 }
        let surplus = entries.count - settings.namesMax + settings.namesMax / 10
        for (_, name) in order.prefix(surplus) where name != host { entries[name] = nil }
    }
}
