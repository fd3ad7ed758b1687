package import Ground

/// Counts of slots in use by holder, with a limit on the total and a quota per holder.
///
/// A request counts against several holders, such as a client and a site, and needs quota with
/// each. A quota is an upper bound, not a reservation: it keeps one holder from taking all slots.
///
/// Invariant: a holder without slots has no entry in `counts`.
package struct QuotaTable: Hashable, Sendable {
    /// The number of slots, and the percentage of them that each kind of holder may have.
    ///
    /// Quotas are rounded up, so they are at least one slot for any percentage above 0.
    package struct Limits: Hashable, Sendable {
        /// Number of slots.
        package var slotsMax: Int
        /// Percentage of the slots that one client may have.
        package var clientPercent: Int
        /// Percentage of the slots that one site, one owner of origins, or one origin address may
        /// have.
        package var originPercent: Int
        /// Percentage of the slots that all uploads, or all upgraded connections, may have.
        package var uploadPercent: Int

        /// Creates limits from their parts; percentages are 0 to 100.
        package init(
            slotsMax: Int, clientPercent: Int = 100, originPercent: Int = 100,
            uploadPercent: Int = 100
        ) {
            self.slotsMax = slotsMax
            self.clientPercent = clientPercent
            self.originPercent = originPercent
            self.uploadPercent = uploadPercent
        }

        /// Returns the number of slots that `holder` may have.
        package func slotsMax(of holder: QuotaHolder) -> Int {
            let percent =
                switch holder {
                case .client: clientPercent
                case .site, .origin, .address: originPercent
                case .uploads, .upgrades: uploadPercent
                }
            return (slotsMax * percent + 99) / 100
        }
    }

    /// The reason why no slot is available.
    package enum Exhaustion: Hashable, Sendable {
        /// All slots are in use.
        case capacity
        /// One of the holders has used up its quota.
        case quota
    }

    /// The limits in force.
    package var limits: Limits
    /// Slots in use.
    package private(set) var count = 0
    private var counts: [QuotaHolder: Int] = [:]

    /// Creates a table in which no slot is in use.
    package init(_ limits: Limits) {
        self.limits = limits
    }

    /// Returns why a request of `holders` gets no slot; `nil` if one is available.
    ///
    /// An exhausted quota takes precedence over exhausted capacity: it persists when others release
    /// slots.
    package func exhaustion(to holders: [QuotaHolder]) -> Exhaustion? {
        for holder in holders {
            let shareMax = limits.slotsMax(of: holder)
            // A quota of 100 % is no limit of its own.
            guard shareMax >= limits.slotsMax || counts[holder, default: 0] < shareMax else {
                return .quota
            }
        }
        return count < limits.slotsMax ? nil : .capacity
    }

    /// Returns true if no holder has used up its quota, whether or not a slot is free.
    package func hasQuota(for holders: [QuotaHolder]) -> Bool {
        exhaustion(to: holders) != .quota
    }

    /// Returns the number of slots of the client among `holders`; 0 without one.
    package func clientCount(of holders: [QuotaHolder]) -> Int {
        for case .client(let address) in holders { return counts[.client(address), default: 0] }
        return 0
    }

    /// Counts a slot against `holders`, without a check.
    package mutating func acquire(_ holders: [QuotaHolder]) {
        count += 1
        for holder in holders { counts[holder, default: 0] += 1 }
    }

    /// Releases a slot counted against `holders`.
    package mutating func release(_ holders: [QuotaHolder]) {
        precondition(count > 0, "a slot is released that was not acquired")
        count -= 1
        for holder in holders { counts[holder] = counts[holder].flatMap { $0 > 1 ? $0 - 1 : nil } }
    }
}

/// A party whose slots are counted and limited by a quota.
package enum QuotaHolder: Hashable, Sendable {
    /// A client, by its address, or by the /64 of an IPv6 address.
    case client(IPAddress)
    /// A site, by its name.
    case site(String)
    /// The origins of one owner, by the registrable part of their names.
    case origin(String)
    /// The origins behind one address.
    case address(IPAddress)
    /// All requests whose bodies are being sent to an origin.
    case uploads
    /// All connections to origins that were upgraded to a protocol other than HTTP.
    case upgrades

    /// Creates the holder for the client at `address`.
    ///
    /// `nil` for a loopback address, which is a local proxy or an operator, and for no address.
    package init?(clientAt address: IPAddress?) {
        guard let address = address?.unmapped, !address.isLoopback else { return nil }
        self = .client(address.subscriberPrefix)
    }

    /// Creates the holder that fetches from an origin at `address` count against.
    package init(originAt address: IPAddress) {
        self = .address(address.unmapped.subscriberPrefix)
    }

    /// Creates the holder for the owner of `origin`, estimated from its name.
    ///
    /// That is the last two labels, or three if the last has two letters and the one before it at
    /// most three, as in `a.co.uk`; for a literal address, the address.
    package init(ownerOf origin: OriginAuthority) {
        guard origin.literalAddress == nil else {
            self = .origin(origin.host)
            return
        }
        let labels = origin.host.split(separator: ".")
        let isShort =
            labels.count > 2 && labels[labels.count - 1].utf8.count == 2
            && labels[labels.count - 2].utf8.count <= 3
        self = .origin(labels.suffix(isShort ? 3 : 2).joined(separator: "."))
    }
}

extension IPAddress {
    /// The address that identifies a subscriber: an IPv4 address, or the /64 of an IPv6 address.
    fileprivate var subscriberPrefix: IPAddress {
        guard case .v6(let number) = self else { return self }
        return .v6((number >> 64) << 64)
    }
}

/// A per-client limit on the bytes per minute that are requested from origins and read by no
/// client.
///
/// Such bytes arise when a range request fetches the whole representation, and when clients
/// disconnect. The last amount consumed may exceed the limit; only later ones are refused.
///
/// Bounded: beyond `clientsMax` clients within a minute, further clients share the budget of
/// requests without a client.
package struct UnreadByteQuota: Sendable {
    /// Maximum number of bytes for each client within ``window``.
    package var bytesMax: UInt64

    /// The length of the window.
    package static let window = Interval.seconds(60)
    private let clientsMax: Int
    /// The start of the current window; `nil` before the first byte.
    private var windowStart: Instant?
    /// Bytes consumed by client; under `nil`, those without a client, such as by this node itself.
    private var consumed: [QuotaHolder?: UInt64] = [:]

    /// Creates a quota; `clientsMax` is the number of clients counted separately.
    package init(bytesMax: UInt64, clientsMax: Int = 16_384) {
        self.bytesMax = bytesMax
        self.clientsMax = clientsMax
    }

    /// Returns true if `client` may consume more.
    package func hasRemaining(for client: QuotaHolder?, now: Instant) -> Bool {
        (isWindowOver(now) ? 0 : consumed[holder(client), default: 0]) < bytesMax
    }

    /// Consumes `bytes` for `client`.
    ///
    /// - Returns: false, with nothing consumed, if `bytes` is not 0 and the client has none left.
    package mutating func consume(_ bytes: UInt64, for client: QuotaHolder?, now: Instant) -> Bool {
        guard bytes > 0 else { return true }
        guard hasRemaining(for: client, now: now) else { return false }
        if isWindowOver(now) {
            windowStart = now
            consumed.removeAll(keepingCapacity: true)
        }
        let holder = holder(client)
        let (sum, isOver) = consumed[holder, default: 0].addingReportingOverflow(bytes)
        consumed[holder] = isOver ? .max : sum
        return true
    }

    /// Returns true if the current window is over.
    private func isWindowOver(_ now: Instant) -> Bool {
        windowStart.map { now - $0 >= Self.window } ?? true
    }

    /// Returns whom bytes are charged to: the client, or `nil` if too many other clients are
    /// counted.
    private func holder(_ client: QuotaHolder?) -> QuotaHolder? {
        consumed[client] == nil && consumed.count >= clientsMax ? nil : client
    }
}
