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
}
