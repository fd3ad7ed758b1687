import Ground

/// A row of the table of settings: the properties of a setting apart from its value.
package struct Setting: Hashable, Sendable {
    /// The headings of settings in `--help`.
    package enum Section: String, CaseIterable, Sendable {
        case node = "Node"
        case memory = "Memory"
        case disk = "Disk"
        case origins = "Origins"
        case clients = "Clients"
        case tls = "TLS"
        case cluster = "Cluster"
    }

    /// The name of the setting.
    package let name: SettingName
    /// The heading in `--help`.
    package let section: Section
    /// The type of the values.
    package let kind: SettingKind
    /// The texts of the default values; empty if there is none.
    package let defaults: [String]
    /// The rule by which the default is computed; empty if ``defaults`` is the whole default.
    package let defaultNote: String
    /// True if the setting may be repeated; values are separated by white space in the environment.
    package let isList: Bool
    /// True if a running node cannot apply a new value.
    package let needsRestart: Bool
    /// The meaning for the operator, in one line without a full stop.
    package let meaning: String
    /// The advice for a limit that is reached or a value that does not fit.
    package let advice: String

    /// Creates a row from its parts.
    package init(
        _ name: SettingName, in section: Section, _ kind: SettingKind, default defaults: String...,
        note defaultNote: String = "", isList: Bool = false, needsRestart: Bool = false,
        meaning: String, advice: String
    ) {
        self.name = name
        self.section = section
        self.kind = kind
        self.defaults = defaults
        self.defaultNote = defaultNote
        self.isList = isList
        self.needsRestart = needsRestart
        self.meaning = meaning
        self.advice = advice
    }

    /// The default as displayed to an operator.
    package var defaultText: String {
        if !defaultNote.isEmpty { return defaultNote }
        return defaults.isEmpty ? "none" : defaults.joined(separator: " ")
    }

    /// An example of a valid value; `nil` if there is none.
    package var example: String? {
        switch kind {
        case .network: "10.0.0.0/8"
        case .originPattern: "*.example.com"
        case .site: "www.example.com=http://127.0.0.1:9000"
        case .mediaType: "application/json"
        case .hostPort: name == .originProxy ? "proxy.example.com:3128" : "nuthatch:8082"
        case .name: "nuthatch-1"
        case .address: defaults.first ?? "127.0.0.1:8088"
        case .path:
            switch name {
            case .config: "nuthatch.yaml"
            case .decisionTokenFile: "/etc/nuthatch/decision-token"
            case .tlsCertificate: "/etc/nuthatch/tls/www.pem"
            case .tlsKey: "/etc/nuthatch/tls/www.key"
            case .clientCA, .originCA: "/etc/nuthatch/tls/ca.pem"
            case .signingKeyFile: "/etc/nuthatch/signing-keys"
            case .purgeTokenFile: "/etc/nuthatch/purge-tokens"
            case .adminTokenFile: "/etc/nuthatch/admin-tokens"
            case .clusterSecretFile: "/etc/nuthatch/cluster-secret"
            default: "/var/cache/nuthatch"
            }
        default: defaults.first
        }
    }

    /// The paragraph for `--help`: meaning, units, range, default and environment variable.
    package var help: String {
        var parts = ["Allowed: \(kind.allowed)"]
        if !kind.unit.isEmpty { parts.append("Units: \(kind.unit)") }
        if isList { parts.append("May be repeated; separated by white space in the environment") }
        parts.append("Default: \(defaultText)")
        if needsRestart { parts.append("Changes only at a restart") }
        parts.append("Environment: \(name.environmentName)")
        return meaning + ". " + parts.map { $0 + "." }.joined(separator: " ")
    }
}

extension Setting {
    /// Parses one value of this setting.
    ///
    /// - Throws: the error with the setting, the source, the reason and the allowed values.
    package func parse(
        _ text: String, from source: SettingSource
    ) throws(SettingError) -> SettingValue {
        do throws(ParseFailure) {
            return try parseValue(text)
        } catch {
            throw SettingError(setting: self, source: source, text: text, problem: error.problem)
        }
    }

    private struct ParseFailure: Error {
        let problem: SettingError.Problem
    }

    private func parseValue(_ text: String) throws(ParseFailure) -> SettingValue {
        switch kind {
        case .bytes(let range):
            return .bytes(try Self.bounded(SizeText.parse(text), range))
        case .duration(let range):
            return .duration(try Self.bounded(DurationText.parse(text), range))
        case .durationOrOff(let range):
            if text == "off" { return .off }
            return .duration(try Self.bounded(DurationText.parse(text), range))
        case .count(let range):
            return .count(try Self.bounded(Self.count(text), range))
        case .address:
            return .address(try Self.required(ListenAddress(text)))
        case .addressOrOff:
            if text == "off" { return .off }
            return .address(try Self.required(ListenAddress(text)))
        case .path:
            return .path(try Self.required(text.isEmpty ? nil : text))
        case .choice(let choices):
            return .choice(try Self.required(choices.first { $0 == text }))
        case .network:
            return .network(try Self.network(text))
        case .originPattern:
            return .originPattern(try Self.required(OriginPattern(text)))
        case .site:
            return try Self.site(text)
        case .mediaType:
            return .mediaType(try Self.required(Self.mediaType(text)))
        case .hostPort:
            let (host, port) = try Self.required(HostPort(text)?.endpoint)
            return .hostPort(host: host, port: port)
        case .name:
            let isName = text == NodeID.directoryName || Self.isName(text)
            return .name(try Self.required(isName ? text : nil))
        }
    }

    /// Parses the Host pattern before the first `=` and the base URL after it.
    private static func site(_ text: String) throws(ParseFailure) -> SettingValue {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let pattern = SitePattern(String(parts[0])) else {
            throw ParseFailure(problem: .malformed)
        }
        do throws(BaseURL.Problem) {
            return .site(pattern, try BaseURL(String(parts[1])))
        } catch {
            throw ParseFailure(problem: .malformed)
        }
    }

    private static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// Returns type and subtype in lower case (RFC 9110 §8.3.1).
    private static func mediaType(_ text: String) -> String? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let isType =
            parts.count == 2
            && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(ASCII.isToken) }
        return isType ? text.lowercased() : nil
    }

    private static func required<Value>(_ value: Value?) throws(ParseFailure) -> Value {
        guard let value else { throw ParseFailure(problem: .malformed) }
        return value
    }

    private static func bounded<Value: Comparable>(
        _ value: Value?, _ range: ClosedRange<Value>
    ) throws(ParseFailure) -> Value {
        let value = try required(value)
        if value < range.lowerBound { throw ParseFailure(problem: .belowRange) }
        if value > range.upperBound { throw ParseFailure(problem: .aboveRange) }
        return value
    }

    /// Parses decimal digits only; the standard library would accept a sign.
    private static func count(_ text: String) -> UInt64? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? UInt64(text) : nil
    }

    private static func network(_ text: String) throws(ParseFailure) -> Network {
        do throws(Network.Problem) {
            return try Network(parsing: text)
        } catch {
            switch error {
            case .malformed: throw ParseFailure(problem: .malformed)
            case .hostBitsSet(let meant): throw ParseFailure(problem: .hostBitsSet(meant: meant))
            }
        }
    }
}
