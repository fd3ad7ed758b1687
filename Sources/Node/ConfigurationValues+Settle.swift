import Ground
import Telemetry
import Store
import Tiers

extension ConfigurationValues {
    /// Holds settings against each other, and fills in defaults that depend on another setting.
    ///
    /// Gives what does not fit; with any fault the values are of no use.
    mutating func reconcile() -> [ConfigurationError] {
        let faults = [
            reconcileSize(.objectLimit, atMost: .memoryLimit),
            reconcileSize(.urlLimit, atMost: .requestHeadLimit),
            diskError, reconcileOrigins(), certificateError, adminError, secretError,
        ]
        return faults.compactMap(\.self) + siteFaults()
    }

    /// What was said and has no effect.
    var warnings: [String] {
        var warnings: [String] = []
        if path(.cacheDir) == nil, source(.diskLimit) != .builtIn, bytes(.diskLimit) > 0 {
            warnings.append(noEffect(.diskLimit, without: .cacheDir))
        }
        if path(.clusterSecretFile) == nil, source(.peerListen) != .builtIn {
            warnings.append(noEffect(.peerListen, without: .clusterSecretFile))
        }
        return warnings
    }

    private func noEffect(_ name: SettingName, without other: SettingName) -> String {
        "setting \(name.rawValue) (from \(source(name).text(for: name))) has no effect "
            + "without setting \(other.rawValue)"
    }

    /// A disk cache needs room for a few segments.
    private var diskError: ConfigurationError? {
        let bytes = UInt64(bytes(.diskLimit))
        let needed = DiskPlan.limitBytesMin + JournalSpace.minimum.bytes
        guard bytes > 0, bytes < needed else { return nil }
        return .diskTooSmall(
            SizeText.format(bytes), from: source(.diskLimit),
            neededBytes: needed)
    }

    /// Each certificate has its key, and what is there beside TLS or for it has no meaning alone.
    private var certificateError: ConfigurationError? {
        let (certificates, keys) = (paths(.tlsCertificate).count, paths(.tlsKey).count)
        guard certificates == keys else {
            return .unpairedKeys(certificates: certificates, keys: keys)
        }
        let dependent = [SettingName.plainListen, .clientCA].first { !texts($0).isEmpty }
        guard certificates == 0, let dependent else { return nil }
        return .requiresTLS(dependent, from: source(dependent))
    }

    /// Beyond loopback operators have to prove that they are such.
    private var adminError: ConfigurationError? {
        let open = addresses(.adminListen).first { !$0.address.isLoopback }
        guard let open, path(.adminTokenFile) == nil, path(.clientCA) == nil else { return nil }
        return .unprotectedAdminPort(listen: open, from: source(.adminListen))
    }

    /// Peers are spoken to only with a secret.
    private var secretError: ConfigurationError? {
        let dependent = [SettingName.join, .peerAdvertise].first { !texts($0).isEmpty }
        guard path(.clusterSecretFile) == nil, let dependent else { return nil }
        return .requiresClusterSecret(dependent, from: source(dependent))
    }

    /// A size that was given must not pass the other one; a default follows it down.
    private mutating func reconcileSize(
        _ name: SettingName, atMost limit: SettingName
    ) -> ConfigurationError? {
        let bytes = bytes(name)
        let bytesMax = self.bytes(limit)
        guard bytes > bytesMax else { return nil }
        guard source(name) == .builtIn else {
            return .valueAboveLimit(
                name, SizeText.format(UInt64(bytes)), from: source(name),
                limit: limit, SizeText.format(UInt64(bytesMax)), limitFrom: source(limit))
        }
        set(name, [.bytes(UInt64(bytesMax))], from: .builtIn)
        return nil
    }

    /// Without sites, who can be reached only from this machine may fetch from anywhere.
    ///
    /// All others must be told. With sites nothing is fetched but for those.
    private mutating func reconcileOrigins() -> ConfigurationError? {
        guard source(.allowOrigin) == .builtIn, sites.isEmpty else { return nil }
        let listen = addresses(.listen) + addresses(.plainListen)
        if let open = listen.first(where: { !$0.address.isLoopback }) {
            return .missingOrigins(listen: open, from: source(.listen))
        }
        set(.allowOrigin, [.originPattern(.everything)], from: .builtIn)
        return nil
    }
}
