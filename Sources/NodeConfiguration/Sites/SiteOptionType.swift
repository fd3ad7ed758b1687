import Ground
import HTTPRules
import Telemetry
import Wire

/// The type of an option's values: the allowed ones, and the parser of a part of the file.
struct SiteOptionType<Value: Sendable>: Sendable {
    /// The description of allowed values.
    let allowed: String
    /// An example of a valid value.
    let example: String
    /// Returns the value of a part of the file.
    let parse: @Sendable (RawSiteBlock.Value) throws(SiteOptionError) -> Value
    /// Returns a value as in the file; `nil` for one that stands for the absence of the option.
    let text: @Sendable (Value) -> String?

    /// Creates a type whose values are single texts; `read` returns `nil` for an invalid one.
    fileprivate init(
        _ allowed: String, example: String, one read: @escaping @Sendable (String) -> Value?,
        text: @escaping @Sendable (Value) -> String?
    ) {
        self.init(
            allowed: allowed, example: example,
            parse: { value throws(SiteOptionError) in try value.scalar(read) }, text: text)
    }

    /// Creates a type from its parts.
    init(
        allowed: String, example: String,
        parse: @escaping @Sendable (RawSiteBlock.Value) throws(SiteOptionError) -> Value,
        text: @escaping @Sendable (Value) -> String?
    ) {
        (self.allowed, self.example) = (allowed, example)
        (self.parse, self.text) = (parse, text)
    }
}

extension SiteOptionType<[String]> {
    /// Returns the type of lists whose elements are read by `read`, which returns `nil` for an
    /// invalid one.
    static func list(
        _ allowed: String, example: String, of read: @escaping @Sendable (String) -> String?
    ) -> SiteOptionType {
        SiteOptionType(
            allowed: allowed, example: example,
            parse: { value throws(SiteOptionError) in try value.elements(read) },
            text: { $0.isEmpty ? nil : "[\($0.joined(separator: ", "))]" })
    }

    /// Returns the type of the values that `make` creates of these lists, and that `names` turns
    /// back into lists.
    func map<Other>(
        _ make: @escaping @Sendable ([String]) -> Other,
        names: @escaping @Sendable (Other) -> [String]
    ) -> SiteOptionType<Other> {
        SiteOptionType<Other>(
            allowed: allowed, example: example,
            parse: { [parse] value throws(SiteOptionError) in make(try parse(value)) },
            text: { [text] value in text(names(value)) })
    }

    /// The type of accepted methods.
    static var methods: SiteOptionType {
        .list("a list of methods, case-sensitive", example: "[GET, HEAD]", of: SiteText.token)
    }

    /// The type of names of query parameters.
    static var parameters: SiteOptionType {
        .list(
            "a list of names, or prefixes of names followed by *",
            example: "[utm_*, fbclid]", of: SiteText.parameter)
    }

    /// The type of protocols that an origin may switch to.
    static var protocols: SiteOptionType {
        .list(
            "a list of protocols, none of them HTTP or TLS", example: "[websocket]",
            of: SiteText.protocolName)
    }

    /// The type of pins of certificates' keys.
    static var pins: SiteOptionType {
        .list(
            "a list of key pins, each sha256/ and 32 bytes in base64",
            example: "[sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]",
            of: { TLSPin($0)?.text })
    }
}

extension SiteOptionType<FieldNames> {
    /// The type of names of response fields that may be changed.
    static func responseFields(example: String) -> SiteOptionType {
        SiteOptionType<[String]>.list(
            "a list of field names", example: example, of: SiteText.responseFieldName
        ).map(FieldNames.init, names: \.texts)
    }

    /// The type of names of request fields that may be changed.
    static var requestFields: SiteOptionType {
        SiteOptionType<[String]>.list(
            "a list of field names", example: "[Cookie]", of: SiteText.requestFieldName
        ).map(FieldNames.init, names: \.texts)
    }
}

extension SiteOptionType<ForwardedFields> {
    /// The type of names of request fields that are forwarded, `all` among them.
    static var forwardedFields: SiteOptionType {
        SiteOptionType<[String]>.list(
            "a list of field names, which may include all",
            example: "[Accept, Accept-Language]", of: SiteText.fieldName
        ).map(
            {
                ForwardedFields(
                    names: FieldNames($0.filter { $0 != "all" }), all: $0.contains("all"))
            },
            names: { ($0.all ? ["all"] : []) + $0.names.texts })
    }
}

/// The request fields that are forwarded.
struct ForwardedFields {
    /// The fields that are forwarded by name.
    var names: FieldNames
    /// True if other fields are forwarded, except those that origins are known to act on.
    var all: Bool
}

extension SiteSettings {
    /// The request fields that are forwarded.
    var forwarding: ForwardedFields {
        get { ForwardedFields(names: forwardedFields, all: forwardsOthers) }
        set { (forwardedFields, forwardsOthers) = (newValue.names, newValue.all) }
    }
}

extension FieldNames {
    /// The names as texts.
    fileprivate var texts: [String] { names.map { String(decoding: $0, as: UTF8.self) } }
}

extension SiteOptionType<SiteMediaTypes?> {
    /// The type of media types and ranges.
    static var mediaTypes: SiteOptionType {
        let ranges = SiteOptionType<[String]>.list(
            "a list of TYPE/SUBTYPE or TYPE/*", example: "[image/*, text/css]",
            of: SiteText.mediaRange)
        return ranges.map(SiteMediaTypes.init, names: { _ in [] })
    }
}

extension SiteOptionType<SiteSettings.Normalisations> {
    /// The type of request fields that are reduced.
    static var normalisations: SiteOptionType {
        let names = [
            "accept": SiteSettings.Normalisations.accept, "accept-encoding": .acceptEncoding,
        ]
        let list = SiteOptionType<[String]>.list(
            "a list of accept, accept-encoding", example: "[accept-encoding]",
            of: { names[$0] == nil ? nil : $0 })
        return list.map(
            { SiteSettings.Normalisations($0.compactMap { names[$0] }) },
            names: { value in names.filter { value.contains($0.value) }.keys.sorted() })
    }
}

// MARK: Single values

extension SiteOptionType<Interval> {
    /// The type of durations of at most 3650 days.
    static var duration: SiteOptionType {
        SiteOptionType(
            "a duration of 0s…3650d in ms, s, m, h, d", example: "10m", one: SiteText.interval,
            text: { DurationText.format($0) })
    }
}

extension SiteOptionType<UInt64> {
    /// The type of sizes of 1 byte to 1 TiB.
    static var size: SiteOptionType {
        SiteOptionType(
            "a size of 1B…1TiB, at most the node's object-limit", example: "16MiB",
            one: { SizeText.parse($0).flatMap { (1...1 << 40).contains($0) ? $0 : nil } },
            text: { SizeText.format($0) })
    }
}

extension SiteOptionType<Int> {
    /// The type of percentages of 1 to 100.
    static var percent: SiteOptionType {
        SiteOptionType("1%…100%", example: "25%", one: SiteText.percent, text: { "\($0)%" })
    }
}

extension SiteOptionType<Bool> {
    /// The type of switches.
    static var onOff: SiteOptionType {
        let words = ["on": true, "true": true, "off": false, "false": false]
        return SiteOptionType(
            "on or off, true or false", example: "off", one: { words[$0] },
            text: { $0 ? "on" : "off" })
    }
}

extension SiteOptionType<String> {
    /// The type of files of issuers.
    static var issuers: SiteOptionType {
        SiteOptionType(
            "a PEM file with issuers, which are trusted instead of all others",
            example: "/etc/nuthatch/tls/origin-ca.pem", one: { $0.isEmpty ? nil : $0 },
            text: { $0 })
    }
}

extension SiteOptionType<SiteSettings.ForwardedFor> {
    /// The type of the rule for X-Forwarded-For.
    static var forwardedFor: SiteOptionType {
        let words = SiteSettings.ForwardedFor.allCases.map(\.rawValue)
        return SiteOptionType(
            words.joined(separator: ", "), example: "replace",
            one: SiteSettings.ForwardedFor.init(rawValue:), text: \.rawValue)
    }
}

extension SiteOptionType<SiteSettings.OriginHostRule> {
    /// The type of the rule for the Host field sent to the origin.
    static var originHost: SiteOptionType {
        SiteOptionType(
            "origin, client, or HOST or HOST:PORT", example: "client", one: SiteText.originHost,
            text: { rule in
                switch rule {
                case .origin: "origin"
                case .client: "client"
                case .name(let name): name
                }
            })
    }
}

// MARK: Mappings and rules

extension SiteOptionType<[SiteSettings.StatusTTL]> {
    /// The type of freshness lifetimes by status.
    static var statusTTLs: SiteOptionType {
        SiteOptionType(
            allowed: "a mapping or a list of STATUS=DURATION, STATUS of 200…599",
            example: "{404: 10s}", parse: SiteText.statusTTLs,
            text: { ttls in
                let pairs = ttls.map { "\($0.status): \(DurationText.format($0.ttl))" }
                return pairs.isEmpty ? nil : "{\(pairs.joined(separator: ", "))}"
            })
    }
}

extension SiteOptionType<[SiteSettings.Field]> {
    /// The type of fields and their values.
    ///
    /// - Parameters:
    ///   - allowed: the description of allowed values.
    ///   - example: an example.
    ///   - isSecret: true if values may be secrets, and may be in files.
    ///   - read: returns the lower-case name of a permitted field.
    /// - Returns: the type.
    static func fields(
        _ allowed: String, example: String, isSecret: Bool = false,
        _ read: @escaping @Sendable (String) -> String?
    ) -> SiteOptionType {
        SiteOptionType(
            allowed: allowed, example: example,
            parse: { value throws(SiteOptionError) in
                try SiteText.fields(value, isSecret: isSecret, read)
            }, text: { _ in nil })
    }
}

extension SiteOptionType<[OriginalRule]> {
    /// The type of rules for the originals of URLs.
    static var originals: SiteOptionType {
        SiteOptionType(
            allowed: "a list of at most \(SiteOriginals.rulesMax): \(OriginalRule.allowed)",
            example: "[imgproxy]", parse: SiteText.originals, text: { _ in nil })
    }
}
