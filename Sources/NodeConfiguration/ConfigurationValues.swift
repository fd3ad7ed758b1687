import Ground
import Store
import Telemetry
import Tiers
import Wire

/// The values of all settings and their sources, from which a ``Configuration`` is made.
///
/// The accessors trap if a setting's row in the table is of another kind.
struct ConfigurationValues {
    private var values: [SettingName: [SettingValue]] = [:]
    private var sources: [SettingName: SettingSource] = [:]
    /// The sites with settings of their own, in the order of the file.
    var siteBlocks: [SiteBlock] = []
    /// The settings of images.
    var images = ImageBlock()

    /// Sets the values of a setting.
    mutating func set(_ name: SettingName, _ values: [SettingValue], from source: SettingSource) {
        self.values[name] = values
        sources[name] = source
    }

    /// Copies the values of a setting and their source.
    mutating func copy(_ name: SettingName, from other: ConfigurationValues) {
        values[name] = other.values[name]
        sources[name] = other.sources[name]
    }

    /// Returns the source of a setting's values.
    func source(_ name: SettingName) -> SettingSource {
        sources[name] ?? .builtIn
    }

    /// Returns the values as an operator may write them; empty for an empty list and for an absent
    /// value.
    func texts(_ name: SettingName) -> [String] {
        all(name).map(\.text)
    }

    /// Returns a size in bytes.
    func bytes(_ name: SettingName) -> Int {
        guard case .bytes(let bytes) = single(name) else { wrongKind(name) }
        return Int(bytes)
    }

    /// Returns a count.
    func count(_ name: SettingName) -> Int {
        guard case .count(let count) = single(name) else { wrongKind(name) }
        return Int(count)
    }

    /// Returns a count; `nil` for 0.
    func countUnlessZero(_ name: SettingName) -> Int? {
        let count = count(name)
        return count == 0 ? nil : count
    }

    /// Returns a duration.
    func interval(_ name: SettingName) -> Interval {
        guard case .duration(let interval) = single(name) else { wrongKind(name) }
        return interval
    }

    /// Returns a duration; `nil` for zero.
    func intervalUnlessZero(_ name: SettingName) -> Interval? {
        let interval = interval(name)
        return interval == .zero ? nil : interval
    }

    /// Returns a duration; `nil` for `off`.
    func intervalUnlessOff(_ name: SettingName) -> Interval? {
        if case .off = single(name) { return nil }
        return interval(name)
    }

    /// Returns a path; `nil` if none was given.
    func path(_ name: SettingName) -> String? {
        guard let value = all(name).first else { return nil }
        guard case .path(let path) = value else { wrongKind(name) }
        return path
    }

    /// Returns a list of paths.
    func paths(_ name: SettingName) -> [String] {
        all(name).map { value in
            guard case .path(let path) = value else { wrongKind(name) }
            return path
        }
    }

    /// Returns the version of TLS that the setting names.
    func tlsVersion(_ name: SettingName) -> TLSVersion {
        guard case .choice(let text) = single(name) else { wrongKind(name) }
        return text == "1.3" ? .tls13 : .tls12
    }

    /// Returns true if the setting is `on`.
    func isOn(_ name: SettingName) -> Bool {
        guard case .choice(let text) = single(name) else { wrongKind(name) }
        return text == "on"
    }

    /// Returns the value of a setting with fixed choices.
    func choice<Choice: RawRepresentable<String>>(_ name: SettingName) -> Choice {
        guard case .choice(let text) = single(name), let choice = Choice(rawValue: text)
        else { wrongKind(name) }
        return choice
    }

    /// Returns the address of a setting that always has one.
    func address(_ name: SettingName) -> ListenAddress {
        guard case .address(let address) = single(name) else { wrongKind(name) }
        return address
    }

    /// Returns the addresses of a list, without `off`.
    func addresses(_ name: SettingName) -> [ListenAddress] {
        all(name).compactMap { value in
            switch value {
            case .address(let address): address
            case .off: nil
            default: wrongKind(name)
            }
        }
    }

    /// Returns a list of networks.
    func networks(_ name: SettingName) -> [Network] {
        all(name).map { value in
            guard case .network(let network) = value else { wrongKind(name) }
            return network
        }
    }

    /// Returns a list of origin patterns.
    func originPatterns(_ name: SettingName) -> [OriginPattern] {
        all(name).map { value in
            guard case .originPattern(let pattern) = value else { wrongKind(name) }
            return pattern
        }
    }

    /// Returns the sites without settings of their own, in the order given.
    func plainSites(_ name: SettingName) -> [(pattern: SitePattern, origin: BaseURL)] {
        all(name).map { value in
            guard case .site(let pattern, let origin) = value else { wrongKind(name) }
            return (pattern, origin)
        }
    }

    /// Returns a list of media types.
    func mediaTypes(_ name: SettingName) -> [String] {
        all(name).map { value in
            guard case .mediaType(let type) = value else { wrongKind(name) }
            return type
        }
    }

    /// Returns a name; `nil` if none was given.
    func name(_ name: SettingName) -> String? {
        all(name).first.map { value in
            guard case .name(let text) = value else { wrongKind(name) }
            return text
        }
    }

    /// Returns a host and port; `nil` if none was given.
    func hostPort(_ name: SettingName) -> (host: String, port: UInt16)? {
        hostPorts(name).first
    }

    /// Returns a list of hosts and ports.
    func hostPorts(_ name: SettingName) -> [(host: String, port: UInt16)] {
        all(name).map { value in
            guard case .hostPort(let host, let port) = value else { wrongKind(name) }
            return (host, port)
        }
    }

    /// Returns all values of a setting.
    private func all(_ name: SettingName) -> [SettingValue] {
        values[name] ?? []
    }

    /// Returns the value of a setting that has exactly one.
    private func single(_ name: SettingName) -> SettingValue {
        let values = all(name)
        precondition(values.count == 1, "\(name) has \(values.count) values")
        return values[0]
    }

    /// Traps, because the table and an accessor disagree.
    private func wrongKind(_ name: SettingName) -> Never {
        preconditionFailure("\(name) is \(all(name)), which is not of the kind asked for")
    }
}

extension ConfigurationValues {
    /// Checks the settings against each other, and adjusts the defaults that depend on other
    /// settings.
    ///
    /// - Returns: the faults; if there are any, the values must not be used.
    mutating func reconcile() -> [ConfigurationError] {
        let faults = [
            reconcileSize(.objectLimit, atMost: .memoryLimit),
            reconcileSize(.urlLimit, atMost: .requestHeadLimit),
            diskError, reconcileOrigins(), certificateError, adminError, secretError,
        ]
        return faults.compactMap(\.self) + siteFaults()
    }

    /// The warnings about settings that have no effect.
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

    /// Returns a warning about a setting that needs another one.
    private func noEffect(_ name: SettingName, without other: SettingName) -> String {
        "setting \(name.rawValue) (from \(source(name).text(for: name))) has no effect "
            + "without setting \(other.rawValue)"
    }

    /// The fault of a disk limit that is too small for the segments that a cache needs.
    private var diskError: ConfigurationError? {
        let bytes = UInt64(bytes(.diskLimit))
        let needed = DiskPlan.limitBytesMin + JournalSpace.minimum.bytes
        guard bytes > 0, bytes < needed else { return nil }
        return .diskTooSmall(
            SizeText.format(bytes), from: source(.diskLimit),
            neededBytes: needed)
    }

    /// The fault of certificates without keys, or of settings that need TLS without any.
    private var certificateError: ConfigurationError? {
        let (certificates, keys) = (paths(.tlsCertificate).count, paths(.tlsKey).count)
        guard certificates == keys else {
            return .unpairedKeys(certificates: certificates, keys: keys)
        }
        let dependent = [SettingName.plainListen, .clientCA].first { !texts($0).isEmpty }
        guard certificates == 0, let dependent else { return nil }
        return .requiresTLS(dependent, from: source(dependent))
    }

    /// The fault of an admin port beyond loopback without authentication.
    private var adminError: ConfigurationError? {
        let open = addresses(.adminListen).first { !$0.address.isLoopback }
        guard let open, path(.adminTokenFile) == nil, path(.clientCA) == nil else { return nil }
        return .unprotectedAdminPort(listen: open, from: source(.adminListen))
    }

    /// The fault of settings for peers without a secret.
    private var secretError: ConfigurationError? {
        let dependent = [SettingName.join, .peerAdvertise].first { !texts($0).isEmpty }
        guard path(.clusterSecretFile) == nil, let dependent else { return nil }
        return .requiresClusterSecret(dependent, from: source(dependent))
    }

    /// Checks that a given size is at most the other one, and lowers a default to it.
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

    /// Allows all origins on a node that is reachable only from this machine, and requires
    /// configured origins of any other.
    ///
    /// With sites, only their origins are used.
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
