import Ground
import Store
import Telemetry
import Tiers
import Wire

/// The values of every setting and where each came from: what a ``Configuration`` is made of.
///
/// The accessors trap if a setting's row is not of the kind asked for.
struct ConfigurationValues {
    private var values: [SettingName: [SettingValue]] = [:]
    private var sources: [SettingName: SettingSource] = [:]
    /// Sites with settings of their own, in the order of the file.
    var siteBlocks: [SiteBlock] = []
    var images = ImageBlock()

    /// Takes over the values of one setting.
    mutating func set(_ name: SettingName, _ values: [SettingValue], from source: SettingSource) {
        self.values[name] = values
        sources[name] = source
    }

    /// Takes over the values of one setting and where they came from.
    mutating func copy(_ name: SettingName, from other: ConfigurationValues) {
        values[name] = other.values[name]
        sources[name] = other.sources[name]
    }

    func source(_ name: SettingName) -> SettingSource {
        sources[name] ?? .builtIn
    }

    /// The values as an operator may write them; none for an empty list and for what was not given.
    func texts(_ name: SettingName) -> [String] {
        all(name).map(\.text)
    }

    func bytes(_ name: SettingName) -> Int {
        guard case .bytes(let bytes) = single(name) else { wrongKind(name) }
        return Int(bytes)
    }

    func count(_ name: SettingName) -> Int {
        guard case .count(let count) = single(name) else { wrongKind(name) }
        return Int(count)
    }

    /// The count, or nil where 0 stands for something else.
    func countUnlessZero(_ name: SettingName) -> Int? {
        let count = count(name)
        return count == 0 ? nil : count
    }

    func interval(_ name: SettingName) -> Interval {
        guard case .duration(let interval) = single(name) else { wrongKind(name) }
        return interval
    }

    /// The interval, or nil where none stands for something else.
    func intervalUnlessZero(_ name: SettingName) -> Interval? {
        let interval = interval(name)
        return interval == .zero ? nil : interval
    }

    /// The interval, or nil for `off`.
    func intervalUnlessOff(_ name: SettingName) -> Interval? {
        if case .off = single(name) { return nil }
        return interval(name)
    }

    /// The path; nil if none was given.
    func path(_ name: SettingName) -> String? {
        guard let value = all(name).first else { return nil }
        guard case .path(let path) = value else { wrongKind(name) }
        return path
    }

    func paths(_ name: SettingName) -> [String] {
        all(name).map { value in
            guard case .path(let path) = value else { wrongKind(name) }
            return path
        }
    }

    /// The version of TLS that a choice of versions names.
    func tlsVersion(_ name: SettingName) -> TLSVersion {
        guard case .choice(let text) = single(name) else { wrongKind(name) }
        return text == "1.3" ? .tls13 : .tls12
    }

    /// True for a choice of on and off that is on.
    func isOn(_ name: SettingName) -> Bool {
        guard case .choice(let text) = single(name) else { wrongKind(name) }
        return text == "on"
    }

    func choice<Choice: RawRepresentable<String>>(_ name: SettingName) -> Choice {
        guard case .choice(let text) = single(name), let choice = Choice(rawValue: text)
        else { wrongKind(name) }
        return choice
    }

    /// Of a setting that always has one.
    func address(_ name: SettingName) -> ListenAddress {
        guard case .address(let address) = single(name) else { wrongKind(name) }
        return address
    }

    /// Without those that are `off`.
    func addresses(_ name: SettingName) -> [ListenAddress] {
        all(name).compactMap { value in
            switch value {
            case .address(let address): address
            case .off: nil
            default: wrongKind(name)
            }
        }
    }

    func networks(_ name: SettingName) -> [Network] {
        all(name).map { value in
            guard case .network(let network) = value else { wrongKind(name) }
            return network
        }
    }

    func originPatterns(_ name: SettingName) -> [OriginPattern] {
        all(name).map { value in
            guard case .originPattern(let pattern) = value else { wrongKind(name) }
            return pattern
        }
    }

    /// Sites without settings of their own, in the order given.
    func plainSites(_ name: SettingName) -> [(pattern: SitePattern, origin: BaseURL)] {
        all(name).map { value in
            guard case .site(let pattern, let origin) = value else { wrongKind(name) }
            return (pattern, origin)
        }
    }

    func mediaTypes(_ name: SettingName) -> [String] {
        all(name).map { value in
            guard case .mediaType(let type) = value else { wrongKind(name) }
            return type
        }
    }

    /// A name; nil if none was given.
    func name(_ name: SettingName) -> String? {
        all(name).first.map { value in
            guard case .name(let text) = value else { wrongKind(name) }
            return text
        }
    }

    /// Host and port; nil if none was given.
    func hostPort(_ name: SettingName) -> (host: String, port: UInt16)? {
        hostPorts(name).first
    }

    func hostPorts(_ name: SettingName) -> [(host: String, port: UInt16)] {
        all(name).map { value in
            guard case .hostPort(let host, let port) = value else { wrongKind(name) }
            return (host, port)
        }
    }

    private func all(_ name: SettingName) -> [SettingValue] {
        values[name] ?? []
    }

    private func single(_ name: SettingName) -> SettingValue {
        let values = all(name)
        precondition(values.count == 1, "\(name) has \(values.count) values")
        return values[0]
    }

    private func wrongKind(_ name: SettingName) -> Never {
        preconditionFailure("\(name) is \(all(name)), which is not of the kind asked for")
    }
}

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
