import Ground
import Origin
import Telemetry

/// Everything that one event loop takes over at once when settings change.
struct LoopSettings: Sendable {
    /// What the loop's origin client goes by.
    struct OriginChanges: Sendable {
        var settings: OriginSettings
        var addressGuard: AddressGuard
        var patterns: [OriginPattern]
    }

    var node: NodeSettings
    /// Nil if they are as they were.
    var origins: OriginChanges?
    /// Nil for no access log.
    var accessLog: AccessLine.Format?

    /// What `configuration` is for a loop, after a change of it.
    init(_ configuration: Configuration, _ budget: DescriptorBudget, _ change: ConfigurationChange)
    {
        node = NodeSettings(configuration, budget)
        accessLog = AccessLine.Format(configuration.accessLog)
        guard change.affects(.origins) || change.hasNewOriginTrust else { return }
        origins = OriginChanges(
            settings: OriginSettings(configuration, budget),
            addressGuard: AddressGuard(allowing: configuration.allowPrivateOrigins),
            patterns: configuration.allowOrigins)
    }
}
