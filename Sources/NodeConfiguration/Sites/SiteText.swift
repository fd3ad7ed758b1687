import Ground
import HTTPRules
import Telemetry

/// The forms of texts in the options of sites and images.
enum SiteText {
    /// Parses a duration of at most 3650 days.
    static func interval(_ text: String) -> Interval? {
        DurationText.parse(text).flatMap { $0 <= .seconds(3650 * 86_400) ? $0 : nil }
    }

    /// Parses a percentage of 1 to 100.
    static func percent(_ text: String) -> Int? {
        let digits = text.utf8.dropLast()
        guard text.hasSuffix("%"), digits.count <= 3, digits.allSatisfy(ASCII.isDigit),
            let number = Int(text.dropLast()), (1...100).contains(number)
        else { return nil }
        return number
    }

    /// Parses the rule for the Host field sent to the origin.
    static func originHost(_ text: String) -> SiteSettings.OriginHostRule? {
        switch text {
        case "origin": return .origin
        case "client": return .client
        default:
            guard let name = SitePattern(text), name != .catchAll else { return nil }
            return .name("\(name)")
        }
    }

    /// Returns the text if it is a token (RFC 9110 §5.6.2).
    static func token(_ text: String) -> String? {
        !text.isEmpty && text.utf8.allSatisfy(ASCII.isToken) ? text : nil
    }

    /// Returns the protocol in lower case if it may be forwarded to the origin.
    static func protocolName(_ text: String) -> String? {
        token(text).map { $0.lowercased() }.flatMap { Upgrade.mayForward($0) ? $0 : nil }
    }

    /// Returns the field name in lower case.
    static func fieldName(_ text: String) -> String? {
        token(text)?.lowercased()
    }

    /// Returns the field name in lower case if configuration may change that response field.
    static func responseFieldName(_ text: String) -> String? {
        fieldName(text).flatMap { ResponseFieldRules.mayChange(Array($0.utf8)) ? $0 : nil }
    }

    /// Returns the field name in lower case if configuration may change that request field.
    static func requestFieldName(_ text: String) -> String? {
        fieldName(text).flatMap { RequestFieldRules.mayChange(Array($0.utf8)) ? $0 : nil }
    }

    /// Parses the rules for the originals of URLs.
    static func originals(
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

    /// Returns the media type or range in lower case; `nil` if it is malformed or `*/*`.
    static func mediaRange(_ text: String) -> String? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] != "*",
            parts.allSatisfy({ token(String($0)) != nil }),
            !parts[1].contains("*") || parts[1] == "*"
        else { return nil }
        return text.lowercased()
    }

    /// Returns the text if it is the name of a query parameter, or a prefix of such names and `*`.
    static func parameter(_ text: String) -> String? {
        let name = text.hasSuffix("*") ? text.dropLast() : text[...]
        let isName = name.utf8.allSatisfy { byte in
            byte > 0x20 && byte < 0x7F && !"*&=#".utf8.contains(byte)
        }
        return !name.isEmpty && isName ? text : nil
    }

    /// Parses the freshness lifetimes by status, sorted by status; a status may be given once.
    static func statusTTLs(
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

    /// Parses fields and their values, each field once; `mayBe` returns the lower-case name of a
    /// permitted field.
    ///
    /// With `isSecret`, values may be in files, and the placeholder of a hidden value is refused.
    static func fields(
        _ value: RawSiteBlock.Value, isSecret: Bool, _ mayBe: (String) -> String?
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
                guard isFieldValue(text.utf8), !isSecret || text != RawSiteBlock.redacted
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
