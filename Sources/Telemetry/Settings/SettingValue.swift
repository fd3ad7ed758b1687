package import Ground

/// The parsed value of a setting; the case follows from the ``SettingKind``.
package enum SettingValue: Hashable, Sendable {
    case bytes(UInt64)
    case duration(Interval)
    case count(UInt64)
    case address(ListenAddress)
    /// The word `off`: the port is not opened, or the function is disabled.
    case off
    case path(String)
    case choice(String)
    case network(Network)
    case originPattern(OriginPattern)
    case site(SitePattern, BaseURL)
    /// A media type in lower case.
    case mediaType(String)
    /// A lower-case host, or an IPv6 address without brackets, and a port.
    case hostPort(host: String, port: UInt16)
    case name(String)
}

extension SettingValue {
    /// The value in the form that an operator writes.
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

/// The type of a setting's values and their range.
package enum SettingKind: Hashable, Sendable {
    case bytes(ClosedRange<UInt64>)
    case duration(ClosedRange<Interval>)
    /// A duration, or `off`.
    case durationOrOff(ClosedRange<Interval>)
    case count(ClosedRange<UInt64>)
    /// A numeric address and a port.
    case address
    /// A numeric address and a port, or `off`.
    case addressOrOff
    case path
    case choice([String])
    /// One network of a list.
    case network
    /// One origin pattern of a list.
    case originPattern
    /// One site of a list: its Host pattern and the base URL of its origin.
    case site
    /// One media type of a list, without parameters.
    case mediaType
    /// A host name or a numeric address, and a port.
    case hostPort
    /// A name chosen by the operator, in the characters of host names.
    case name

    /// The noun for a value in a sentence, with its article.
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

    /// The placeholder for a value in a synopsis.
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

    /// The permitted units of a value; empty for kinds without a unit.
    package var unit: String {
        switch self {
        case .bytes: SizeText.unitNames.reversed().joined(separator: ", ")
        case .duration, .durationOrOff: DurationText.unitNames.reversed().joined(separator: ", ")
        default: ""
        }
    }

    /// The permitted range or choices as text.
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

/// The address of a listening socket: a numeric address and a port, 0 to let the kernel choose.
package struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// The numeric address.
    package let address: IPAddress
    /// The port; 0 to let the kernel choose.
    package let port: UInt16

    /// Creates an address from its parts.
    package init(address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// Parses `127.0.0.1:8080`, `[::1]:8080`, or `localhost` (127.0.0.1) with a port; `nil`
    /// otherwise.
    package init?(_ text: String) {
        guard let parts = HostPort(text), let port = parts.port else { return nil }
        if parts.host == "localhost" {
            self.init(address: .v4(0x7F00_0001), port: port)
        } else {
            guard let address = parts.address else { return nil }
            self.init(address: address, port: port)
        }
    }

    /// The address in the form that ``init(_:)`` accepts.
    package var description: String {
        address.bitCount == 128 ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}
