import Ground
import Telemetry

extension ConfigurationValues {
    /// Holds settings against each other, and fills in defaults that depend on another setting.
    mutating func settle() throws(ConfigurationError) {
        try settleSize(.objectLimit, atMost: .memoryLimit)
        try settleSize(.urlLimit, atMost: .requestHeadLimit)
        try settleOrigins()
    }

    /// A size that was given must not pass the other one; a default follows it down.
    private mutating func settleSize(
        _ name: SettingName, atMost limit: SettingName
    ) throws(ConfigurationError) {
        let bytes = bytes(name)
        let bytesMax = self.bytes(limit)
        guard bytes > bytesMax else { return }
        guard source(name) == .builtIn else {
            throw .above(
                name, SizeText.render(UInt64(bytes)), from: source(name),
                limit: limit, SizeText.render(UInt64(bytesMax)), limitFrom: source(limit))
        }
        set(name, [.bytes(UInt64(bytesMax))], from: .builtIn)
    }

    /// Who can be reached only from this machine may fetch from anywhere; all others must be told.
    private mutating func settleOrigins() throws(ConfigurationError) {
        guard source(.allowOrigin) == .builtIn else { return }
        if let open = addresses(.listen).first(where: { !$0.address.isLoopback }) {
            throw .originsNotSaid(listen: open, from: source(.listen))
        }
        set(.allowOrigin, [.originPattern(.everything)], from: .builtIn)
    }
}
