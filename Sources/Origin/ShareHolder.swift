package import Ground

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
