package import Ground

/// Who holds how many of a number of places, and who may have another.
///
/// A taker belongs to several holders, such as a client and a site, and needs room with each. A
/// share is not reserved: it is what a holder may have at most, so that it cannot have all.
///
/// Invariant: a holder without places is not in `held`.
package struct QuotaTable: Hashable, Sendable {
    /// How many places there are, and which part of them each kind of holder may have, in
    /// hundredths, rounded up: never less than one place.
    package struct Limits: Hashable, Sendable {
        package var slotsMax: Int
        package var clientPercent: Int
        package var originPercent: Int
        package var uploadPercent: Int

        package init(
            slotsMax: Int, clientPercent: Int = 100, originPercent: Int = 100,
            uploadPercent: Int = 100
        ) {
            self.slotsMax = slotsMax
            self.clientPercent = clientPercent
            self.originPercent = originPercent
            self.uploadPercent = uploadPercent
        }

        /// Places that `holder` may have.
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

    /// Why there is no place.
    package enum Exhaustion: Hashable, Sendable {
        /// All are taken.
        case capacity
        /// One of the holders has its share.
        case quota
    }

    package var limits: Limits
    /// Places taken.
    package private(set) var count = 0
    private var counts: [QuotaHolder: Int] = [:]

    package init(_ limits: Limits) {
        self.limits = limits
    }

    /// Why one that belongs to `holders` gets no place; nil if it may take one.
    ///
    /// A share says more than that all is taken: it stays when others leave.
    package func exhaustion(to holders: [QuotaHolder]) -> Exhaustion? {
        for holder in holders {
            let shareMax = limits.slotsMax(of: holder)
            // A share of all is none.
            guard shareMax >= limits.slotsMax || counts[holder, default: 0] < shareMax else {
                return .quota
            }
        }
        return count < limits.slotsMax ? nil : .capacity
    }

    /// True if no holder has its share, whether or not there are places.
    package func hasQuota(for holders: [QuotaHolder]) -> Bool {
        exhaustion(to: holders) != .quota
    }

    /// Places that the client among `holders` has; 0 without one.
    package func clientCount(of holders: [QuotaHolder]) -> Int {
        for case .client(let address) in holders { return counts[.client(address), default: 0] }
        return 0
    }

    /// One that belongs to `holders` has a place.
    package mutating func acquire(_ holders: [QuotaHolder]) {
        count += 1
        for holder in holders { counts[holder, default: 0] += 1 }
    }

    /// It has none any more.
    package mutating func release(_ holders: [QuotaHolder]) {
        precondition(count > 0, "a place is given back that nobody has")
        count -= 1
        for holder in holders { counts[holder] = counts[holder].flatMap { $0 > 1 ? $0 - 1 : nil } }
    }
}

/// Who holds places of something limited, and has a share of it.
package enum QuotaHolder: Hashable, Sendable {
    /// A client, by its address.
    case client(IPAddress)
    /// A site, by its name.
    case site(String)
    /// Origins of one owner, by the part of their names that can be registered.
    case origin(String)
    /// Origins behind one address.
    case address(IPAddress)
    /// Requests whose bodies are on their way to an origin.
    case uploads
    /// Connections to an origin that speak another protocol than HTTP.
    case upgrades

    /// The client at `address`; nil for this machine itself, where a proxy or an operator asks.
    package init?(clientAt address: IPAddress?) {
        guard let address = address?.unmapped, !address.isLoopback else { return nil }
        self = .client(address.subscriberPrefix)
    }

    /// Those to whom a fetch from `origin` at `address` belongs.
    package init(originAt address: IPAddress) {
        self = .address(address.unmapped.subscriberPrefix)
    }

    /// The owner of `origin`, as far as its name tells: its last two labels, or three if the last
    /// but one is short and the last is a country's, as in `a.co.uk`.
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
    /// An IPv4 address, or the /64 of an IPv6 one, all of which one subscriber has.
    fileprivate var subscriberPrefix: IPAddress {
        guard case .v6(let number) = self else { return self }
        return .v6((number >> 64) << 64)
    }
}
