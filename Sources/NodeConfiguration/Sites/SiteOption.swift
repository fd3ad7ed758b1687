import Ground
import HTTPRules
import Telemetry
import Wire

/// The settings of one site; the raw value is the key in the file.
package enum SiteOption: String, CaseIterable, Hashable, Sendable {
    case origin
    case host
    case defaultTTL = "default-ttl"
    case ttlLimit = "ttl-limit"
    case negativeTTL = "negative-ttl"
    case types
    case objectLimit = "object-limit"
    case storesSetCookie = "stores-set-cookie"
    case ignoreCredentials = "ignore-credentials"
    case memoryShare = "memory-share"
    case diskShare = "disk-share"
    case cluster
    case staleWhileRevalidate = "stale-while-revalidate"
    case grace
    case honoursRequestControl = "honours-request-control"
    case ignoreQuery = "ignore-query"
    case methods
    case upgrade
    case forwardFields = "forward-fields"
    case requestTrailers = "request-trailers"
    case removeRequestFields = "remove-request-fields"
    case setRequestFields = "set-request-fields"
    case reduce
    case forwardedFor = "forwarded-for"
    case via
    case rewriteLocation = "rewrite-location"
    case clientTTL = "client-ttl"
    case removeResponseFields = "remove-response-fields"
    case setResponseFields = "set-response-fields"
    case tags
    case keepTags = "keep-tags"
    case originals
    case signed
    case originCA = "origin-ca"
    case originPins = "origin-pins"

    /// The description of allowed values.
    package var allowedFormat: String {
        switch self {
        case .origin: "http://ORIGIN[:PORT][/PATH] or https://ORIGIN[:PORT][/PATH]"
        case .host: "origin, client, or HOST or HOST:PORT"
        case .defaultTTL, .ttlLimit, .staleWhileRevalidate, .grace, .clientTTL:
            "a duration of 0s…3650d in ms, s, m, h, d"
        case .negativeTTL: "a mapping or a list of STATUS=DURATION, STATUS of 200…599"
        case .types: "a list of TYPE/SUBTYPE or TYPE/*"
        case .objectLimit: "a size of 1B…1TiB, at most the node's object-limit"
        case .memoryShare, .diskShare: "1%…100%"
        case .storesSetCookie, .ignoreCredentials, .honoursRequestControl, .requestTrailers, .via,
            .keepTags, .rewriteLocation, .signed, .cluster:
            "on or off, true or false"
        case .ignoreQuery: "a list of names, or beginnings of names with * behind them"
        case .methods: "a list of methods, in their own case"
        case .upgrade: "a list of protocols, none of them HTTP or TLS"
        case .forwardFields: "a list of field names, all among them for those that need no name"
        case .removeRequestFields, .removeResponseFields, .tags: "a list of field names"
        case .setRequestFields:
            "a mapping of field names to values or to {file: PATH}, none of them of framing or one "
                + "hop"
        case .setResponseFields:
            "a mapping of field names to values, none of them of framing or one hop"
        case .originals:
            "a list of at most \(SiteOriginals.rulesMax): \(OriginalRule.allowed)"
        case .originCA: "a PEM file with issuers, which are believed in place of all others"
        case .originPins: "a list of sha256/ and 32 bytes in base64: keys of certificates"
        case .reduce: "a list of accept, accept-encoding"
        case .forwardedFor: "append, replace, off"
        }
    }

    /// An example of a valid value.
    package var example: String {
        switch self {
        case .origin: "http://127.0.0.1:9000"
        case .host: "client"
        case .defaultTTL, .ttlLimit, .staleWhileRevalidate, .grace, .clientTTL: "10m"
        case .negativeTTL: "{404: 10s}"
        case .types: "[image/*, text/css]"
        case .objectLimit: "16MiB"
        case .memoryShare, .diskShare: "25%"
        case .storesSetCookie, .ignoreCredentials, .honoursRequestControl, .requestTrailers, .via,
            .keepTags, .rewriteLocation, .signed, .cluster:
            "off"
        case .ignoreQuery: "[utm_*, fbclid]"
        case .methods: "[GET, HEAD]"
        case .upgrade: "[websocket]"
        case .forwardFields: "[Accept, Accept-Language]"
        case .removeRequestFields: "[Cookie]"
        case .removeResponseFields: "[X-Powered-By]"
        case .tags: "[Surrogate-Key]"
        case .originals: "[imgproxy]"
        case .setRequestFields: "{X-Edge: nuthatch}"
        case .setResponseFields: "{Access-Control-Allow-Origin: \"*\"}"
        case .originCA: "/etc/nuthatch/tls/origin-ca.pem"
        case .originPins: "[sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]"
        case .reduce: "[accept-encoding]"
        case .forwardedFor: "replace"
        }
    }

    /// True if no values are shown, because any field may hold a secret.
    var isSecret: Bool { self == .setRequestFields }

    /// Returns the option with the name closest to `text`; `nil` if none is close.
    static func nearest(to text: String, among options: [SiteOption]) -> SiteOption? {
        Spelling.nearest(to: text, among: options.map { ($0, $0.rawValue) })
    }
}

extension SiteOption {
    /// Parses the value and applies it to `settings`; does nothing for the origin.
    func apply(_ value: RawSiteBlock.Value, to settings: inout SiteSettings) throws(SiteOptionError)
    {
        switch self {
        case .origin: break
        case .defaultTTL: settings.defaultTTL = try value.scalar(Self.interval)
        case .ttlLimit: settings.ttlMax = try value.scalar(Self.interval)
        case .negativeTTL: settings.negativeTTLs = try Self.statusTTLs(value)
        case .types: settings.types = SiteMediaTypes(try value.elements(Self.mediaRange))
        case .objectLimit: settings.objectBytesMax = try value.scalar(Self.bytes)
        case .storesSetCookie: settings.storesSetCookie = try value.scalar(Self.boolean)
        case .ignoreCredentials: settings.ignoresCredentials = try value.scalar(Self.boolean)
        case .memoryShare: settings.memoryShare = try value.scalar(Self.percent)
        case .diskShare: settings.diskShare = try value.scalar(Self.percent)
        case .staleWhileRevalidate:
            settings.staleWhileRevalidate = try value.scalar(Self.interval)
        case .cluster: settings.usesPeers = try value.scalar(Self.boolean)
        case .grace: settings.grace = try value.scalar(Self.interval)
        case .honoursRequestControl: settings.honoursRequestControl = try value.scalar(Self.boolean)
        case .keepTags: settings.exposesTags = try value.scalar(Self.boolean)
        case .originals: settings.originals = try Self.originals(value)
        case .rewriteLocation: settings.rewritesLocation = try value.scalar(Self.boolean)
        case .clientTTL: settings.clientTTL = try value.scalar(Self.interval)
        case .tags: settings.tagFields = FieldNames(try value.elements(Self.answerFieldName))
        case .removeResponseFields:
            settings.removedResponseFields = FieldNames(try value.elements(Self.answerFieldName))
        case .setResponseFields:
            settings.overriddenResponseFields = try fields(value, Self.answerFieldName)
        case .host, .ignoreQuery, .methods, .upgrade, .forwardFields, .requestTrailers,
            .removeRequestFields, .setRequestFields, .reduce, .forwardedFor, .via, .signed,
            .originCA, .originPins:
            try applyToRequests(value, &settings)
        }
    }

    /// Parses and applies the value of an option for requests.
    private func applyToRequests(
        _ value: RawSiteBlock.Value, _ settings: inout SiteSettings
    ) throws(SiteOptionError) {
        switch self {
        case .host: settings.originHostRule = try value.scalar(Self.sentHost)
        case .ignoreQuery: settings.ignoredQuery = try value.elements(Self.parameter)
        case .methods: settings.methods = try value.elements(Self.token)
        case .upgrade: settings.upgrades = try value.elements(Self.protocolName)
        case .forwardFields:
            let names = try value.elements(Self.fieldName)
            settings.forwardsOthers = names.contains("all")
            settings.forwardedFields = FieldNames(names.filter { $0 != "all" })
        case .requestTrailers: settings.forwardsTrailers = try value.scalar(Self.boolean)
        case .removeRequestFields:
            settings.removedRequestFields = FieldNames(try value.elements(Self.requestFieldName))
        case .setRequestFields:
            settings.overriddenRequestFields = try fields(value, Self.requestFieldName)
        case .reduce:
            settings.normalisations = SiteSettings.Normalisations(
                try value.elements(Self.reduction))
        case .forwardedFor:
            settings.forwardedFor = try value.scalar(SiteSettings.ForwardedFor.init(rawValue:))
        case .via: settings.addsVia = try value.scalar(Self.boolean)
        case .signed: settings.requiresSignature = try value.scalar(Self.boolean)
        case .originCA: settings.originCAFile = try value.scalar { $0.isEmpty ? nil : $0 }
        case .originPins: settings.originPins = try value.elements { TLSPin($0)?.text }
        default: preconditionFailure("\(self) is no setting of requests")
        }
    }

    /// Parses a duration of at most 3650 days.
    private static func interval(_ text: String) -> Interval? {
        DurationText.parse(text).flatMap { $0 <= .seconds(3650 * 86_400) ? $0 : nil }
    }

    /// Parses a size of 1 byte to 1 TiB.
    private static func bytes(_ text: String) -> UInt64? {
        SizeText.parse(text).flatMap { (1...1 << 40).contains($0) ? $0 : nil }
    }

    /// Parses a percentage of 1 to 100.
    private static func percent(_ text: String) -> Int? {
        let digits = text.utf8.dropLast()
        guard text.hasSuffix("%"), digits.count <= 3, digits.allSatisfy(ASCII.isDigit),
            let number = Int(text.dropLast()), (1...100).contains(number)
        else { return nil }
        return number
    }

    /// Parses on or off, true or false.
    private static func boolean(_ text: String) -> Bool? {
        switch text {
        case "on", "true": true
        case "off", "false": false
        default: nil
        }
    }

    /// Parses the rule for the Host field sent to the origin.
    private static func sentHost(_ text: String) -> SiteSettings.OriginHostRule? {
        switch text {
        case "origin": return .origin
        case "client": return .client
        default:
            guard let name = SitePattern(text), name != .catchAll else { return nil }
            return .name("\(name)")
        }
    }

    /// Returns the text if it is a token (RFC 9110 §5.6.2).
    private static func token(_ text: String) -> String? {
        !text.isEmpty && text.utf8.allSatisfy(ASCII.isToken) ? text : nil
    }

    /// Returns the protocol in lower case if it may be forwarded to the origin.
    private static func protocolName(_ text: String) -> String? {
        token(text).map { $0.lowercased() }.flatMap { Upgrade.mayForward($0) ? $0 : nil }
    }

    /// Returns the field name in lower case.
    private static func fieldName(_ text: String) -> String? {
        token(text)?.lowercased()
    }

    /// Returns the field name in lower case if configuration may change that response field.
    private static func answerFieldName(_ text: String) -> String? {
        fieldName(text).flatMap { ResponseFieldRules.mayChange(Array($0.utf8)) ? $0 : nil }
    }

    /// Returns the field name in lower case if configuration may change that request field.
    private static func requestFieldName(_ text: String) -> String? {
        fieldName(text).flatMap { RequestFieldRules.mayChange(Array($0.utf8)) ? $0 : nil }
    }

    /// Parses the name of a field whose values are normalised.
    private static func reduction(_ text: String) -> SiteSettings.Normalisations? {
        switch text {
        case "accept": .accept
        case "accept-encoding": .acceptEncoding
        default: nil
        }
    }

    /// Parses the rules for the originals of URLs.
    private static func originals(
        _ value: RawSiteBlock.Value
    ) throws(SiteOptionError) -> [OriginalRule] {
        var rules: [OriginalRule] = []
        for text in try value.scalars() {
            guard rules.count < SiteOriginals.rulesMax else { throw text.error(.tooMany) }
            let rule: OriginalRule
            do throws(OriginalRuleFault) {
                rule = try OriginalRule(text.text)
            } catch {
                throw text.error(.invalidOriginalRule(error))
            }
            guard !rules.contains(rule) else { throw text.error(.duplicate) }
            rules.append(rule)
        }
        return rules
    }

    /// Returns the media type or range in lower case.
    private static func mediaRange(_ text: String) -> String? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] != "*",
            parts.allSatisfy({ token(String($0)) != nil }),
            !parts[1].contains("*") || parts[1] == "*"
        else { return nil }
        return text.lowercased()
    }

    /// Returns the name of a query parameter, which may end with `*`.
    private static func parameter(_ text: String) -> String? {
        let name = text.hasSuffix("*") ? text.dropLast() : text[...]
        let isName = name.utf8.allSatisfy { byte in
            byte > 0x20 && byte < 0x7F && !"*&=#".utf8.contains(byte)
        }
        return !name.isEmpty && isName ? text : nil
    }

    /// Parses the freshness lifetimes by status.
    private static func statusTTLs(
        _ value: RawSiteBlock.Value
    ) throws(SiteOptionError) -> [SiteSettings.StatusTTL] {
        var found: [SiteSettings.StatusTTL] = []
        for pair in try value.pairs() {
            let (name, text) = (pair.name, pair.value)
            guard name.text.utf8.count == 3, let status = UInt16(name.text),
                (200...599).contains(status)
            else { throw name.error() }
            guard let ttl = interval(text.text) else { throw text.error() }
            guard !found.contains(where: { $0.status == status }) else {
                throw name.error(.duplicate)
            }
            found.append(SiteSettings.StatusTTL(status: status, ttl: ttl))
        }
        return found.sorted { $0.status < $1.status }
    }

    /// Parses fields and their values; `mayBe` returns the lower-case name of a permitted field.
    private func fields(
        _ value: RawSiteBlock.Value, _ mayBe: (String) -> String?
    ) throws(SiteOptionError) -> [SiteSettings.Field] {
        guard case .pairs(let pairs) = value else { throw value.wrongTypeError }
        var names: [String] = []
        var found: [SiteSettings.Field] = []
        for pair in pairs {
            let (name, text) = (pair.name, pair.value.text)
            guard let lower = mayBe(name.text) else { throw name.error() }
            guard !names.contains(lower) else { throw name.error(.duplicate) }
            names.append(lower)
            var field = SiteSettings.Field(name: Array(name.text.utf8), value: [])
            if pair.isFile {
                guard isSecret, !text.isEmpty else { throw value.wrongTypeError }
                field.file = text
            } else {
                guard Self.isFieldValue(text.utf8), !isSecret || text != RawSiteBlock.redacted
                else {
                    throw name.error(.invalidFieldValue)
                }
                field.value = Array(text.utf8)
            }
            found.append(field)
        }
        return found
    }

    /// Returns true for up to 4096 bytes of a valid field value, without blanks at its ends (RFC
    /// 9110 §5.5).
    static func isFieldValue(_ bytes: some BidirectionalCollection<UInt8>) -> Bool {
        let isBlank = { (byte: UInt8?) in byte == 0x20 || byte == 0x09 }
        return bytes.count <= 4096
            && bytes.allSatisfy { $0 > 0x1F && $0 != 0x7F || $0 == 0x09 }
            && !isBlank(bytes.first) && !isBlank(bytes.last)
    }
}
