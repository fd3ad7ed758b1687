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
