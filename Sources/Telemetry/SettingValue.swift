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
    /// In lower case.
    case mediaType(String)
    /// A host in lower case, or an IPv6 address without brackets, and a port.
    case hostPort(host: String, port: UInt16)
}
