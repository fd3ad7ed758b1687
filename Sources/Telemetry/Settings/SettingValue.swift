package import Ground

/// A setting's value after its text was read; which case it is follows from the setting's kind.
package enum SettingValue: Hashable, Sendable {
    case bytes(UInt64)
    case duration(Interval)
    case count(UInt64)
    case address(ListenAddress)
    /// The port is not opened.
    case off
    case path(String)
    case choice(String)
    case network(Network)
    case originPattern(OriginPattern)
    case site(SitePattern, BaseURL)
    /// In lower case.
    case mediaType(String)
    /// A host in lower case, or an IPv6 address without brackets, and a port.
    case hostPort(host: String, port: UInt16)
    case name(String)
}

extension SettingValue {
    /// The value as an operator may write it.
    package var text: String {
        switch self {
        case .bytes(let bytes): SizeText.format(bytes)
        case .duration(let interval): DurationText.format(interval)
        case .count(let count): "\(count)"
        case .address(let address): "\(address)"
        case .off: "off"
        case .path(let path): path
        case .choice(let choice): choice
        case .network(let network): "\(network)"
        case .originPattern(let pattern): "\(pattern)"
        case .site(let pattern, let origin): "\(pattern)=\(origin)"
        case .mediaType(let type): type
        case .hostPort(let host, let port):
            host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .name(let name): name
        }
    }
}

/// What a setting's text must be, and within which bounds.
package enum SettingKind: Hashable, Sendable {
    case bytes(ClosedRange<UInt64>)
    case duration(ClosedRange<Interval>)
    /// A duration, or `off`.
    case durationOrOff(ClosedRange<Interval>)
    case count(ClosedRange<UInt64>)
    /// A numeric address and a port.
    case address
    /// The same, or `off`.
    case addressOrOff
    case path
    case choice([String])
    /// One network of a list.
    case network
    /// One pattern of a list.
    case originPattern
    /// One site of a list: what it answers to, and where its answers come from.
    case site
    /// One media type of a list, without parameters.
    case mediaType
    /// A name or a numeric address, and a port.
    case hostPort
    /// What the operator calls something, in the letters of a host name.
    case name

    /// What a value is called in a sentence, with its article.
    package var noun: String {
        switch self {
        case .bytes: "a size"
        case .duration, .durationOrOff: "a duration"
        case .count: "a number"
        case .address, .addressOrOff: "an address and port"
        case .path: "a path"
        case .choice: "a choice"
        case .network: "a network"
        case .originPattern: "an origin pattern"
        case .site: "a site"
        case .mediaType: "a media type"
        case .hostPort: "a host and port"
        case .name: "a name"
        }
    }

    /// What stands for a value in a synopsis.
    package var placeholder: String {
        switch self {
        case .bytes: "size"
        case .duration: "duration"
        case .durationOrOff: "duration|off"
        case .count: "number"
        case .address: "address:port"
        case .addressOrOff: "address:port|off"
        case .path: "path"
        case .choice(let choices): choices.joined(separator: "|")
        case .network: "network"
        case .originPattern: "pattern"
        case .site: "host=url"
        case .mediaType: "type/subtype"
        case .hostPort: "host:port"
        case .name: "name"
        }
    }

    /// The units in which a value may be written; empty for kinds without a unit.
    package var unit: String {
        switch self {
        case .bytes: SizeText.unitNames.reversed().joined(separator: ", ")
        case .duration, .durationOrOff: DurationText.unitNames.reversed().joined(separator: ", ")
        default: ""
        }
    }

    /// The bounds or the choices.
    package var allowed: String {
        switch self {
        case .bytes(let range):
            "\(SizeText.format(range.lowerBound))…\(SizeText.format(range.upperBound))"
        case .duration(let range):
            "\(DurationText.format(range.lowerBound))…\(DurationText.format(range.upperBound))"
        case .durationOrOff(let range):
            "\(DurationText.format(range.lowerBound))…\(DurationText.format(range.upperBound))"
                + " or off"
        case .count(let range): "\(range.lowerBound)…\(range.upperBound)"
        case .address: "IPV4:PORT, [IPV6]:PORT or localhost:PORT"
        case .addressOrOff: "IPV4:PORT, [IPV6]:PORT, localhost:PORT or off"
        case .path: "a path"
        case .choice(let choices): choices.joined(separator: ", ")
        case .network: "ADDRESS or ADDRESS/BITS, IPv4 or IPv6"
        case .originPattern: "*, HOST or *.SUFFIX, each perhaps with :PORT"
        case .site: "*, HOST or HOST:PORT, then =http://ORIGIN[:PORT][/PATH] or =https://…"
        case .mediaType: "TYPE/SUBTYPE without parameters"
        case .hostPort: "HOST:PORT, IPV4:PORT or [IPV6]:PORT"
        case .name:
            "1 to 64 letters, digits, dots, hyphens and underscores, or \(NodeID.directoryName)"
        }
    }
}

/// Where a port is opened: a numeric address and a port, 0 for one that the kernel chooses.
package struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    package let address: IPAddress
    package let port: UInt16

    package init(address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// `127.0.0.1:8080`, `[::1]:8080`, or `localhost` (which is 127.0.0.1) with a port.
    package init?(_ text: String) {
        guard let parts = HostPort(text), let port = parts.port else { return nil }
        if parts.host == "localhost" {
            self.init(address: .v4(0x7F00_0001), port: port)
        } else {
            guard let address = parts.address else { return nil }
            self.init(address: address, port: port)
        }
    }

    package var description: String {
        address.bitCount == 128 ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}
