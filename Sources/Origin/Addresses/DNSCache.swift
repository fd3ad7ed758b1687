package import Ground

/// A cache of name resolutions, positive and negative, with a lifetime for each.
///
/// The system's resolver does not report a TTL, so one configured lifetime holds for all names. The
/// address guard checks addresses at every use, not here. A value without a lock; see
/// ``OriginCoordinator``.
package struct DNSCache: Sendable {
    /// Limits of a ``DNSCache``.
    package struct Settings: Hashable, Sendable {
        /// Time for which addresses are used without another query.
        package var lifetime: Interval
        /// Time for which a failed resolution is not retried.
        package var failureLifetime: Interval
        /// Maximum number of cached names.
        package var namesMax: Int

        /// Creates settings from their parts.
        package init(lifetime: Interval, failureLifetime: Interval, namesMax: Int) {
            self.lifetime = lifetime
            self.failureLifetime = failureLifetime
            self.namesMax = namesMax
        }
    }

    /// The cached outcome of resolving one name.
    package enum Resolution: Hashable, Sendable {
        /// The name has these addresses; never empty.
        case addresses([IPAddress])
        /// The name does not exist, or has no address.
        case notFound
        /// The resolver gave no result; carries its reason.
        case failed(String)
    }

    private struct Entry: Sendable {
        var resolution: Resolution
        var expiresAt: Instant
        /// When the resolver's own result expires; independent of ``expiresAt``, which is extended
        /// while stale addresses serve.
        var freshUntil: Instant
        var lastUsedAt: Instant
    }

    /// Maximum age past expiry at which addresses serve while the resolver fails.
    ///
    /// RFC 8767 §5 suggests days; one day suffices to repair a resolver.
    private static let staleLifetimeMax = Interval.seconds(86_400)

    /// Time to wait for the resolver where stale addresses are known (RFC 8767 §5, client response
    /// timer).
    static let clientResponseTimeout = Interval.seconds(2)
    /// Time for which stale addresses are used without a query after the resolver has failed (RFC
    /// 8767 §5 recommends 30 seconds).
    private static let staleLifetime = Interval.seconds(30)

    /// The lifetimes and the limit in force.
    package var settings: Settings
    private var entries: [String: Entry] = [:]

    /// Creates an empty cache.
    package init(settings: Settings) {
        self.settings = settings
    }

    /// Number of cached names, expired ones included.
    package var count: Int { entries.count }

    /// Returns the unexpired resolution of `host`, or `nil` if a query is needed.
    package mutating func lookup(_ host: String, now: Instant) -> Resolution? {
        guard let entry = entries[host], now < entry.expiresAt else { return nil }
        entries[host]?.lastUsedAt = now
        return entry.resolution
    }

    /// Records the addresses that the resolver returned for `host`.
    package mutating func storeAddresses(_ addresses: [IPAddress], of host: String, now: Instant) {
        store(.addresses(addresses), of: host, for: settings.lifetime, now: now)
    }

    /// Records that `host` does not exist.
    package mutating func storeNotFound(_ host: String, now: Instant) {
        store(.notFound, of: host, for: settings.failureLifetime, now: now)
    }

    /// Records that the resolver failed.
    ///
    /// - Returns: the last known addresses, which serve for 30 seconds without another query; `nil`
    ///   if there are none, or if they expired more than a day ago.
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

    /// Returns the last known addresses of `host`, unless they expired more than a day ago.
    package func staleAddresses(_ host: String, now: Instant) -> [IPAddress]? {
        guard let entry = entries[host], case .addresses(let addresses) = entry.resolution,
            now < entry.freshUntil + Self.staleLifetimeMax
        else { return nil }
        return addresses
    }

    /// Expires the addresses of `host` because none of them accepted a connection.
    ///
    /// The next fetch queries the resolver and may still fall back on them.
    package mutating func expire(_ host: String, now: Instant) {
        guard let entry = entries[host], now < entry.expiresAt else { return }
        entries[host]?.expiresAt = now
    }

    /// Stores a resolution; of too many names, the tenth that was used least recently is dropped.
    private mutating func store(
        _ response: Resolution, of host: String, for lifetime: Interval, now: Instant
    ) {
        entries[host] = Entry(
            resolution: response, expiresAt: now + lifetime, freshUntil: now + lifetime,
            lastUsedAt: now)
        guard entries.count > settings.namesMax else { return }
        // A tenth at once, so that a flood of names does not sort the table at every insertion.
        let order = entries.map { ($0.value.lastUsedAt, $0.key) }.sorted { $0 < $1 }
        let surplus = entries.count - settings.namesMax + settings.namesMax / 10
        for (_, name) in order.prefix(surplus) where name != host { entries[name] = nil }
    }
}
