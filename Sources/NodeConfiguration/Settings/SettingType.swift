import Cluster
package import Ground
package import Telemetry
import Wire

/// The type of a setting's values: the allowed ones, and the parser of their texts.
package struct SettingType<Value: Sendable>: Sendable {
    /// The type in words.
    package let kind: SettingKind
    /// Returns the value of a text.
    let parse: @Sendable (String) throws(SettingError.Problem) -> Value
    /// Returns the text of a value, as an operator may write it.
    let text: @Sendable (Value) -> String

    /// Creates a type whose texts are read by `parse`, which returns `nil` for a malformed one.
    init(
        _ kind: SettingKind, parse: @escaping @Sendable (String) -> Value?,
        text: @escaping @Sendable (Value) -> String
    ) {
        self.kind = kind
        self.parse = { given throws(SettingError.Problem) in
            guard let value = parse(given) else { throw .malformed }
            return value
        }
        self.text = text
    }

    /// Creates a type whose texts are read by `parse`.
    init(
        _ kind: SettingKind,
        throwing parse: @escaping @Sendable (String) throws(SettingError.Problem) -> Value,
        text: @escaping @Sendable (Value) -> String
    ) {
        self.kind = kind
        self.parse = parse
        self.text = text
    }

    /// Returns the type of the same values and of `nil`, which is written as `word`; values for
    /// which `isNone` returns true are read as `nil` too.
    private func orNone(
        _ word: String, kind: SettingKind, where isNone: @escaping @Sendable (Value) -> Bool
    ) -> SettingType<Value?> {
        SettingType<Value?>(
            kind,
            throwing: { [parse] text throws(SettingError.Problem) in
                if text == word { return nil }
                let value = try parse(text)
                return isNone(value) ? nil : value
            }, text: { [text] value in value.map(text) ?? word })
    }
}

// MARK: Quantities

extension SettingType where Value: Comparable {
    /// Creates the type of the quantities in a range.
    fileprivate init(
        _ range: ClosedRange<Value>, noun: String, placeholder: String, units: [String] = [],
        parse: @escaping @Sendable (String) -> Value?, text: @escaping @Sendable (Value) -> String
    ) {
        self.init(
            SettingKind(
                noun: noun, placeholder: placeholder,
                unit: units.reversed().joined(separator: ", "),
                allowed: "\(text(range.lowerBound))…\(text(range.upperBound))"),
            throwing: { given throws(SettingError.Problem) in
                guard let value = parse(given) else { throw .malformed }
                if value < range.lowerBound { throw .belowRange }
                if value > range.upperBound { throw .aboveRange }
                return value
            }, text: text)
    }
}

extension SettingType<Int> {
    /// Returns the type of sizes in bytes.
    static func bytes(_ range: ClosedRange<Int>) -> SettingType {
        SettingType(
            range, noun: "a size", placeholder: "size", units: SizeText.unitNames,
            parse: { SizeText.parse($0).map { Int(clamping: $0) } },
            text: { SizeText.format(UInt64($0)) })
    }

    /// Returns the type of counts.
    static func count(_ range: ClosedRange<Int>) -> SettingType {
        SettingType(
            range, noun: "a number", placeholder: "number",
            // Digits only; the standard library would accept a sign.
            parse: { text in
                text.utf8.allSatisfy(ASCII.isDigit)
                    ? UInt64(text).map { Int(clamping: $0) } : nil
            }, text: { "\($0)" })
    }
}

extension SettingType<Int?> {
    /// Returns the type of counts in which 0 means `nil`.
    static func countOrNone(_ range: ClosedRange<Int>) -> SettingType {
        let counts = SettingType<Int>.count(range)
        return counts.orNone("0", kind: counts.kind) { $0 == 0 }
    }
}

extension SettingType<Interval> {
    /// Returns the type of durations.
    static func duration(_ range: ClosedRange<Interval>) -> SettingType {
        SettingType(
            range, noun: "a duration", placeholder: "duration", units: DurationText.unitNames,
            parse: DurationText.parse, text: DurationText.format)
    }
}

extension SettingType<Interval?> {
    /// Returns the type of durations in which zero means `nil`.
    static func durationOrNone(_ range: ClosedRange<Interval>) -> SettingType {
        let durations = SettingType<Interval>.duration(range)
        return durations.orNone("0s", kind: durations.kind) { $0 == .zero }
    }

    /// Returns the type of durations and of `off`, which means `nil`.
    static func durationOrOff(_ range: ClosedRange<Interval>) -> SettingType {
        let durations = SettingType<Interval>.duration(range)
        var kind = durations.kind
        kind.placeholder += "|off"
        kind.allowed += " or off"
        return durations.orNone("off", kind: kind) { _ in false }
    }
}

extension ClosedRange<Interval> {
    /// The range of time limits that must be finite: 10 ms to a day.
    static let timeLimits = Interval.milliseconds(10)...Interval.seconds(86_400)
}

// MARK: Choices

extension SettingType {
    /// Returns the type of a choice among words, each with its value.
    private static func choice(
        _ choices: [(word: String, value: Value)]
    ) -> SettingType where Value: Equatable {
        let words = choices.map(\.word)
        return SettingType(
            SettingKind(
                noun: "a choice", placeholder: words.joined(separator: "|"),
                allowed: words.joined(separator: ", "), choices: words),
            parse: { text in choices.first { $0.word == text }?.value },
            text: { value in choices.first { $0.value == value }?.word ?? "" })
    }
}

extension SettingType<Bool> {
    /// The type of switches.
    static var onOff: SettingType { choice([("on", true), ("off", false)]) }
}

extension SettingType<TLSVersion> {
    /// The type of versions of TLS.
    static var tlsVersion: SettingType { choice([("1.2", .tls12), ("1.3", .tls13)]) }
}

extension SettingType where Value: CaseIterable & Equatable & RawRepresentable<String> {
    /// The type of a choice among the cases of an enumeration.
    static var choice: SettingType { choice(Value.allCases.map { ($0.rawValue, $0) }) }
}

// MARK: Texts

extension SettingType<String> {
    /// The type of paths of files.
    static var path: SettingType {
        SettingType(
            SettingKind(
                noun: "a path", placeholder: "path", allowed: "a path", completion: .file),
            parse: { $0.isEmpty ? nil : $0 }, text: { $0 })
    }

    /// The type of paths of directories.
    static var directory: SettingType {
        var kind = path.kind
        kind.completion = .directory
        return SettingType(kind, throwing: path.parse, text: path.text)
    }

    /// The type of media types without parameters; their values are in lower case (RFC 9110
    /// §8.3.1).
    static var mediaType: SettingType {
        SettingType(
            SettingKind(
                noun: "a media type", placeholder: "type/subtype",
                allowed: "TYPE/SUBTYPE without parameters", example: "application/json"),
            parse: { text in
                let parts = text.split(separator: "/", omittingEmptySubsequences: false)
                let isType =
                    parts.count == 2
                    && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(ASCII.isToken) }
                return isType ? text.lowercased() : nil
            }, text: { $0 })
    }

    /// The type of names chosen by the operator, in the characters of host names.
    static var name: SettingType {
        SettingType(
            SettingKind(
                noun: "a name", placeholder: "name",
                allowed: "1 to 64 letters, digits, dots, hyphens and underscores, or "
                    + NodeID.directoryName,
                example: "nuthatch-1"),
            parse: { text in
                let isName =
                    (1...64).contains(text.utf8.count)
                    && text.utf8.allSatisfy { byte in
                        ASCII.isLetter(byte) || ASCII.isDigit(byte) || "-._".utf8.contains(byte)
                    }
                return isName || text == NodeID.directoryName ? text : nil
            }, text: { $0 })
    }
}

// MARK: Addresses

extension SettingType<ListenAddress> {
    /// The type of a numeric address or `localhost`, and a port.
    static var address: SettingType {
        SettingType(
            SettingKind(
                noun: "an address and port", placeholder: "address:port",
                allowed: "IPV4:PORT, [IPV6]:PORT or localhost:PORT"),
            parse: ListenAddress.init, text: \.description)
    }
}

extension SettingType<ListenAddress?> {
    /// The type of a numeric address or `localhost`, and a port, or of `off`, which means `nil`.
    static var addressOrOff: SettingType {
        let addresses = SettingType<ListenAddress>.address
        var kind = addresses.kind
        kind.placeholder += "|off"
        kind.allowed = "IPV4:PORT, [IPV6]:PORT, localhost:PORT or off"
        return addresses.orNone("off", kind: kind) { _ in false }
    }
}

extension SettingType<PeerAddress> {
    /// The type of a host name or a numeric address, and a port.
    static var hostPort: SettingType {
        SettingType(
            SettingKind(
                noun: "a host and port", placeholder: "host:port",
                allowed: "HOST:PORT, IPV4:PORT or [IPV6]:PORT", example: "nuthatch:8082"),
            parse: { HostPort($0).flatMap(PeerAddress.init) }, text: \.description)
    }
}

extension SettingType<BaseURL> {
    /// The type of the URL of a service.
    static var baseURL: SettingType {
        SettingType(
            SettingKind(
                noun: "a URL", placeholder: "url",
                allowed: "http://HOST[:PORT][/PATH] or https://…",
                example: "http://127.0.0.1:8081"),
            parse: { try? BaseURL($0) }, text: \.description)
    }
}

extension SettingType<Network> {
    /// The type of networks.
    static var network: SettingType {
        SettingType(
            SettingKind(
                noun: "a network", placeholder: "network",
                allowed: "ADDRESS or ADDRESS/BITS, IPv4 or IPv6", example: "10.0.0.0/8"),
            throwing: { text throws(SettingError.Problem) in
                do throws(Network.Problem) {
                    return try Network(parsing: text)
                } catch {
                    switch error {
                    case .malformed: throw .malformed
                    case .hostBitsSet(let meant): throw .hostBitsSet(meant: meant)
                    }
                }
            }, text: { "\($0)" })
    }
}

extension SettingType<OriginPattern> {
    /// The type of patterns of origins.
    static var originPattern: SettingType {
        SettingType(
            SettingKind(
                noun: "an origin pattern", placeholder: "pattern",
                allowed: "*, HOST or *.SUFFIX, each perhaps with :PORT", example: "*.example.com"),
            parse: { OriginPattern($0) }, text: { "\($0)" })
    }
}

extension SettingType<PlainSite> {
    /// The type of sites without settings of their own.
    static var site: SettingType {
        SettingType(
            SettingKind(
                noun: "a site", placeholder: "host=url",
                allowed: "*, HOST or HOST:PORT, then =http://ORIGIN[:PORT][/PATH] or =https://…",
                example: "www.example.com=http://127.0.0.1:9000"),
            parse: PlainSite.init, text: { "\($0.pattern)=\($0.origin)" })
    }
}

/// A site without settings of its own: its Host pattern and the base URL of its origin.
package struct PlainSite: Hashable, Sendable {
    /// The Host pattern.
    package let pattern: SitePattern
    /// The base of the URLs that its responses come from.
    package let origin: BaseURL

    /// Parses the Host pattern before the first `=` and the base URL after it; `nil` if either is
    /// invalid.
    init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let pattern = SitePattern(String(parts[0])),
            let origin = try? BaseURL(String(parts[1]))
        else { return nil }
        (self.pattern, self.origin) = (pattern, origin)
    }
}
