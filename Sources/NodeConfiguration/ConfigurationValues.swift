import Ground
import Store
import Telemetry
import Tiers

/// The values of all settings and their sources, from which a ``Configuration`` is made.
struct ConfigurationValues: SettingReader {
    private var entries: [String: SettingEntry] = [:]
    /// The sites with settings of their own, in the order of the file.
    var siteBlocks: [SiteBlock] = []
    /// The settings of images.
    var images = ImageBlock()

    /// The value of a setting; its default if none was set.
    subscript<Value>(key: SettingKey<Value>) -> Value { key.value(of: entries[key.setting.name]) }

    /// Sets the value of a setting.
    mutating func set(_ setting: Setting, _ entry: SettingEntry) {
        entries[setting.name] = entry
    }

    /// Replaces a default by a value that depends on other settings; its source stays the default.
    private mutating func adjust<Value>(_ key: SettingKey<Value>, to value: Value) {
        set(key.setting, key.entry(value, from: .builtIn))
    }

    /// Copies the value of a setting and its source.
    mutating func copy(_ setting: Setting, from other: ConfigurationValues) {
        entries[setting.name] = other.entries[setting.name]
    }

    /// Returns the source of a setting's value.
    func source(_ setting: Setting) -> SettingSource {
        entries[setting.name]?.source ?? .builtIn
    }

    /// Returns the value as an operator may write it; empty for an empty list and for an absent
    /// value.
    func texts(_ setting: Setting) -> [String] {
        entries[setting.name]?.texts ?? []
    }
}

extension ConfigurationValues {
    /// Checks the settings against each other, and adjusts the defaults that depend on other
    /// settings.
    ///
    /// - Returns: the faults; if there are any, the values must not be used.
    mutating func reconcile() -> [ConfigurationError] {
        let faults = [
            reconcileSize(Setting.memory.objectLimit, atMost: Setting.memory.memoryLimit),
            reconcileSize(Setting.clients.urlLimit, atMost: Setting.clients.requestHeadLimit),
            diskError, reconcileOrigins(), certificateError, adminError, secretError,
        ]
        return faults.compactMap(\.self) + siteFaults()
    }

    /// The warnings about settings that have no effect.
    var warnings: [String] {
        var warnings: [String] = []
        let (disk, cluster) = (Setting.disk, Setting.cluster)
        if self.cacheDir == nil, source(disk.diskLimit.setting) != .builtIn, self.diskLimit > 0 {
            warnings.append(noEffect(disk.diskLimit.setting, without: disk.cacheDir.setting))
        }
        if self.clusterSecretFile == nil, source(cluster.peerListen.setting) != .builtIn {
            warnings.append(
                noEffect(cluster.peerListen.setting, without: cluster.clusterSecretFile.setting))
        }
        return warnings
    }

    /// Returns a warning about a setting that needs another one.
    private func noEffect(_ setting: Setting, without other: Setting) -> String {
        "setting \(setting.name) (from \(source(setting).text)) has no effect "
            + "without setting \(other.name)"
    }

    /// The fault of a disk limit other than 0 that is too small for the segments that a cache
    /// needs.
    private var diskError: ConfigurationError? {
        let bytes = UInt64(self.diskLimit)
        let needed = DiskPlan.limitBytesMin + JournalSpace.minimum.bytes
        guard bytes > 0, bytes < needed else { return nil }
        return .diskTooSmall(
            SizeText.format(bytes), from: source(Setting.disk.diskLimit.setting),
            neededBytes: needed)
    }

    /// The fault of different numbers of certificates and keys, or of a setting that needs TLS
    /// without certificates.
    private var certificateError: ConfigurationError? {
        let (certificates, keys) = (self.tlsCertificate.count, self.tlsKey.count)
        guard certificates == keys else {
            return .unpairedKeys(certificates: certificates, keys: keys)
        }
        let dependent = [Setting.tls.plainListen.setting, Setting.tls.clientCA.setting]
            .first { !texts($0).isEmpty }
        guard certificates == 0, let dependent else { return nil }
        return .requiresTLS(dependent, from: source(dependent))
    }

    /// The fault of an admin port beyond loopback without authentication.
    private var adminError: ConfigurationError? {
        guard let open = self.adminListen, !open.address.isLoopback,
            self.adminTokenFile == nil, self.clientCA == nil
        else { return nil }
        return .unprotectedAdminPort(
            listen: open, from: source(Setting.node.adminListen.setting))
    }

    /// The fault of `join` or `peer-advertise` without a cluster secret.
    private var secretError: ConfigurationError? {
        let dependent = [Setting.cluster.join.setting, Setting.cluster.peerAdvertise.setting]
            .first { !texts($0).isEmpty }
        guard self.clusterSecretFile == nil, let dependent else { return nil }
        return .requiresClusterSecret(dependent, from: source(dependent))
    }

    /// Checks that a size is at most the other one; a default is lowered to it, and a given size is
    /// a fault.
    private mutating func reconcileSize(
        _ key: SettingKey<Int>, atMost limit: SettingKey<Int>
    ) -> ConfigurationError? {
        let (bytes, bytesMax) = (self[key], self[limit])
        guard bytes > bytesMax else { return nil }
        guard source(key.setting) == .builtIn else {
            return .valueAboveLimit(
                key.setting, SizeText.format(UInt64(bytes)), from: source(key.setting),
                limit: limit.setting, SizeText.format(UInt64(bytesMax)),
                limitFrom: source(limit.setting))
        }
        adjust(key, to: bytesMax)
        return nil
    }

    /// Allows all origins on a node that is reachable only from this machine, and requires
    /// configured origins of any other.
    ///
    /// Does nothing if `allow-origin` or any site is given: with sites, only their origins are
    /// used.
    private mutating func reconcileOrigins() -> ConfigurationError? {
        let allowed = Setting.origins.allowOrigin
        guard source(allowed.setting) == .builtIn, sites.isEmpty else { return nil }
        let listeners = [
            (Setting.node.listen.setting, self.listen),
            (Setting.tls.plainListen.setting, self.plainListen),
        ]
        for (setting, addresses) in listeners {
            guard let open = addresses.first(where: { !$0.address.isLoopback }) else { continue }
            return .missingOrigins(setting, listen: open, from: source(setting))
        }
        adjust(allowed, to: [.everything])
        return nil
    }
}
