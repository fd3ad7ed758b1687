import Ground
import HTTPRules
import Telemetry
import Wire

extension SiteOption {
    /// Takes over what was said of this setting, which is not the origin.
    func apply(_ value: SiteText.Value, to settings: inout SiteSettings) throws(SiteRefusal) {
        switch self {
        case .origin: break
        case .defaultTTL: settings.defaultTTL = try value.one(Self.interval)
        case .ttlLimit: settings.ttlMax = try value.one(Self.interval)
        case .negativeTTL: settings.negativeTTLs = try Self.statusTTLs(value)
        case .types: settings.types = SiteTypes(try value.each(Self.mediaRange))
        case .objectLimit: settings.objectBytesMax = try value.one(Self.bytes)
        case .storesSetCookie: settings.storesSetCookie = try value.one(Self.isOn)
        case .ignoreCredentials: settings.ignoresCredentials = try value.one(Self.isOn)
        case .memoryShare: settings.memoryShare = try value.one(Self.percent)
        case .diskShare: settings.diskShare = try value.one(Self.percent)
        case .staleWhileRevalidate:
            settings.staleWhileRevalidate = try value.one(Self.interval)
        case .cluster: settings.isShared = try value.one(Self.isOn)
        case .grace: settings.grace = try value.one(Self.interval)
        case .honoursRequestControl: settings.honoursRequestControl = try value.one(Self.isOn)
        case .keepTags: settings.keepsTags = try value.one(Self.isOn)
        case .originals: settings.originals = try Self.originals(value)
        case .rewriteLocation: settings.rewritesLocation = try value.one(Self.isOn)
        case .clientTTL: settings.clientTTL = try value.one(Self.interval)
        case .tags: settings.tagFields = FieldNames(try value.each(Self.answerFieldName))
        case .removeResponseFields:
            settings.removedResponseFields = FieldNames(try value.each(Self.answerFieldName))
        case .setResponseFields:
            settings.setResponseFields = try fields(value, Self.answerFieldName)
        case .host, .ignoreQuery, .methods, .upgrade, .forwardFields, .requestTrailers,
            .removeRequestFields, .setRequestFields, .reduce, .forwardedFor, .via, .signed,
            .originCA, .originPins:
            try applyToRequests(value, &settings)
        }
    }

    private func applyToRequests(
        _ value: SiteText.Value, _ settings: inout SiteSettings
    ) throws(SiteRefusal) {
        switch self {
        case .host: settings.sentHost = try value.one(Self.sentHost)
        case .ignoreQuery: settings.ignoredQuery = try value.each(Self.parameter)
        case .methods: settings.methods = try value.each(Self.token)
        case .upgrade: settings.upgrades = try value.each(Self.protocolName)
        case .forwardFields:
            let names = try value.each(Self.fieldName)
            settings.forwardsOthers = names.contains("all")
            settings.forwardedFields = FieldNames(names.filter { $0 != "all" })
        case .requestTrailers: settings.forwardsTrailers = try value.one(Self.isOn)
        case .removeRequestFields:
            settings.removedRequestFields = FieldNames(try value.each(Self.requestFieldName))
        case .setRequestFields:
            settings.setRequestFields = try fields(value, Self.requestFieldName)
        case .reduce:
            settings.reductions = SiteSettings.Reductions(try value.each(Self.reduction))
        case .forwardedFor:
            settings.forwardedFor = try value.one(SiteSettings.ForwardedFor.init(rawValue:))
        case .via: settings.addsVia = try value.one(Self.isOn)
        case .signed: settings.isSigned = try value.one(Self.isOn)
        case .originCA: settings.originCAFile = try value.one { $0.isEmpty ? nil : $0 }
        case .originPins: settings.originPins = try value.each { TLSPin($0)?.text }
        default: preconditionFailure("\(self) is no setting of requests")
        }
    }

    private static func interval(_ text: String) -> Interval? {
        DurationText.parse(text).flatMap { $0 <= .seconds(3650 * 86_400) ? $0 : nil }
    }

    private static func bytes(_ text: String) -> UInt64? {
        SizeText.parse(text).flatMap { (1...1 << 40).contains($0) ? $0 : nil }
    }

    private static func percent(_ text: String) -> Int? {
        let digits = text.utf8.dropLast()
        guard text.hasSuffix("%"), digits.count <= 3, digits.allSatisfy(ASCII.isDigit),
            let number = Int(text.dropLast()), (1...100).contains(number)
        else { return nil }
        return number
    }

    private static func isOn(_ text: String) -> Bool? {
        switch text {
        case "on", "true": true
        case "off", "false": false
        default: nil
        }
    }

    private static func sentHost(_ text: String) -> SiteSettings.SentHost? {
        switch text {
        case "origin": return .origin
        case "client": return .client
        default:
            guard let name = SitePattern(text), name != .everything else { return nil }
            return .name("\(name)")
        }
    }

    private static func token(_ text: String) -> String? {
        !text.isEmpty && text.utf8.allSatisfy(ASCII.isToken) ? text : nil
    }

    /// A protocol that an origin may switch to.
    private static func protocolName(_ text: String) -> String? {
        token(text).map { $0.lowercased() }.flatMap { Upgrade.mayForward($0) ? $0 : nil }
    }

    private static func fieldName(_ text: String) -> String? {
        token(text)?.lowercased()
    }

    /// A field that may be taken from answers, or put into them.
    private static func answerFieldName(_ text: String) -> String? {
        fieldName(text).flatMap { AnswerFieldRules.mayChange(Array($0.utf8)) ? $0 : nil }
    }

    /// The same of requests.
    private static func requestFieldName(_ text: String) -> String? {
        fieldName(text).flatMap { RequestFieldRules.mayChange(Array($0.utf8)) ? $0 : nil }
    }

    private static func reduction(_ text: String) -> SiteSettings.Reductions? {
        switch text {
        case "accept": .accept
        case "accept-encoding": .acceptEncoding
        default: nil
        }
    }

    private static func originals(
        _ value: SiteText.Value
    ) throws(SiteRefusal) -> [OriginalRule] {
        var rules: [OriginalRule] = []
        for text in try value.texts() {
            guard rules.count < SiteOriginals.rulesMax else { throw text.refused(.tooMany) }
            let rule: OriginalRule
            do throws(OriginalRuleFault) {
                rule = try OriginalRule(text.text)
            } catch {
                throw text.refused(.original(error))
            }
            guard !rules.contains(rule) else { throw text.refused(.repeated) }
            rules.append(rule)
        }
        return rules
    }

    private static func mediaRange(_ text: String) -> String? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] != "*",
            parts.allSatisfy({ token(String($0)) != nil }),
            !parts[1].contains("*") || parts[1] == "*"
        else { return nil }
        return text.lowercased()
    }

    /// A name of a parameter as it stands in a query, perhaps with `*` at its end alone.
    private static func parameter(_ text: String) -> String? {
        let name = text.hasSuffix("*") ? text.dropLast() : text[...]
        let isName = name.utf8.allSatisfy { byte in
            byte > 0x20 && byte < 0x7F && !"*&=#".utf8.contains(byte)
        }
        return !name.isEmpty && isName ? text : nil
    }

    private static func statusTTLs(
        _ value: SiteText.Value
    ) throws(SiteRefusal) -> [SiteSettings.StatusTTL] {
        var found: [SiteSettings.StatusTTL] = []
        for pair in try value.asPairs() {
            let (name, text) = (pair.name, pair.value)
            guard name.text.utf8.count == 3, let status = UInt16(name.text),
                (200...599).contains(status)
            else { throw name.refused() }
            guard let ttl = interval(text.text) else { throw text.refused() }
            guard !found.contains(where: { $0.status == status }) else {
                throw name.refused(.repeated)
            }
            found.append(SiteSettings.StatusTTL(status: status, ttl: ttl))
        }
        return found.sorted { $0.status < $1.status }
    }

    private func fields(
        _ value: SiteText.Value, _ mayBe: (String) -> String?
    ) throws(SiteRefusal) -> [SiteSettings.Field] {
        guard case .pairs(let pairs) = value else { throw value.ofOtherShape }
        var names: [String] = []
        var found: [SiteSettings.Field] = []
        for pair in pairs {
            let (name, text) = (pair.name, pair.value.text)
            guard let lower = mayBe(name.text) else { throw name.refused() }
            guard !names.contains(lower) else { throw name.refused(.repeated) }
            names.append(lower)
            var field = SiteSettings.Field(name: Array(name.text.utf8), value: [])
            if pair.isFile {
                guard isSecret, !text.isEmpty else { throw value.ofOtherShape }
                field.file = text
            } else {
                guard Self.isFieldValue(text.utf8), !isSecret || text != SiteText.redacted else {
                    throw name.refused(.fieldValue)
                }
                field.value = Array(text.utf8)
            }
            found.append(field)
        }
        return found
    }

    /// Visible characters and blanks between them (RFC 9110 §5.5).
    static func isFieldValue(_ bytes: some BidirectionalCollection<UInt8>) -> Bool {
        let isBlank = { (byte: UInt8?) in byte == 0x20 || byte == 0x09 }
        return bytes.count <= 4096
            && bytes.allSatisfy { $0 > 0x1F && $0 != 0x7F || $0 == 0x09 }
            && !isBlank(bytes.first) && !isBlank(bytes.last)
    }
}
