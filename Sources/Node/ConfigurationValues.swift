import Ground
import Telemetry
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
