import Ground
import HTTPRules

/// A text format for metrics.
package enum MetricsFormat: Hashable, CaseIterable, Sendable {
    /// The original text format of Prometheus, version 0.0.4.
    case text
    /// OpenMetrics 1.0.
    case openMetrics

    /// The value of Content-Type for the format.
    package var contentType: String {
        switch self {
        case .text: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }

    /// The media type of ``contentType``, without parameters.
    package var mediaType: String {
        switch self {
        case .text: "text/plain"
        case .openMetrics: "application/openmetrics-text"
        }
    }

    /// The version of the format, as in the parameter `version` of its media type.
    var version: String {
        switch self {
        case .text: "0.0.4"
        case .openMetrics: "1.0.0"
        }
    }

    /// Selects the format for a client whose Accept lines are `accept` (RFC 9110 §12.5.1).
    ///
    /// The format with the higher weight wins; at equal weights, the one named more specifically,
    /// else text. A client that accepts neither gets text, which people can read too.
    package init(accepting accept: [[UInt8]]) {
        var preferences: [MetricsFormat: MediaPreference] = [:]
        for range in accept.flatMap({ MediaRange.list($0.span) }) {
            for format in Self.allCases {
                guard let preference = range.preference(for: format) else { continue }
                let former = preferences[format]
                if former.map({ $0.specificity < preference.specificity }) ?? true {
                    preferences[format] = preference
                }
            }
        }
        guard let preference = preferences[.openMetrics], preference.weight > 0 else {
            self = .text
            return
        }
        self =
            preference > preferences[.text] ?? MediaPreference(weight: 0, specificity: 0)
            ? .openMetrics : .text
    }

    /// Returns a help text with the format's escapes: backslash and line feed, and in OpenMetrics
    /// also quotes.
    package func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where self == .openMetrics: escaped += "\\\""
            default: escaped.append(character)
            }
        }
        return escaped
    }
}

/// The preference of a client for a media type.
private struct MediaPreference: Comparable {
    /// The weight in thousandths; 0 excludes the type.
    let weight: Int
    /// The specificity of the range: 0 for `*/*`, 1 for a type, 2 for a subtype, 3 with a version.
    let specificity: Int

    static func < (left: MediaPreference, right: MediaPreference) -> Bool {
        (left.weight, left.specificity) < (right.weight, right.specificity)
    }
}

/// One element of Accept.
private struct MediaRange {
    private var type = ""
    private var version: String?
    private var charset: String?
    private var weight = 1_000

    /// Returns the elements of one line that can be parsed.
    static func list(_ bytes: Span<UInt8>) -> [MediaRange] {
        var ranges: [MediaRange] = []
        var cursor = 0
        while let element = FieldSyntax.nextElement(bytes, at: 0..<bytes.count, cursor: &cursor) {
            if let range = MediaRange(bytes, element) { ranges.append(range) }
        }
        return ranges
    }

    /// Parses an element; `nil` if a parameter is malformed.
    private init?(_ bytes: Span<UInt8>, _ element: Range<Int>) {
        var start = element.lowerBound
        var isFirst = true
        while start <= element.upperBound {
            let end = FieldSyntax.find(
                UInt8(ascii: ";"), in: bytes, at: start..<element.upperBound)
            let part = FieldSyntax.trimmed(bytes, at: start..<end)
            let text = String(decoding: bytes.copy(part), as: UTF8.self).lowercased()
            if isFirst { type = text } else if !parseParameter(text) { return nil }
            (start, isFirst) = (end + 1, false)
        }
    }

    /// Records a parameter; returns false if it is malformed.
    private mutating func parseParameter(_ parameter: String) -> Bool {
        let halves = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2 else { return parameter != "q" }
        var value = halves[1]
        if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
            value = value.dropFirst().dropLast()
        }
        switch halves[0] {
        case "version": version = String(value)
        case "charset": charset = String(value)
        case "q":
            guard let weight = Self.weight(halves[1]) else { return false }
            self.weight = weight
        // Other parameters, such as `escaping`, do not matter here.
        default: break
        }
        return true
    }

    /// Returns a weight such as `0.5` in thousandths; `nil` if it is malformed (RFC 9110 §12.4.2).
    private static func weight(_ text: Substring) -> Int? {
        let digits = Array(text.utf8)
        guard let first = digits.first, digits.count <= 5, first == 0x30 || first == 0x31 else {
            return nil
        }
        var (weight, unit) = (Int(first - 0x30) * 1_000, 100)
        for (place, digit) in digits.enumerated().dropFirst() {
            if place == 1 {
                guard digit == UInt8(ascii: ".") else { return nil }
            } else {
                guard digit &- 0x30 < 10 else { return nil }
                weight += Int(digit - 0x30) * unit
                unit /= 10
            }
        }
        return weight <= 1_000 ? weight : nil
    }

    /// Returns the preference that the range expresses for `format`; `nil` if it does not match.
    func preference(for format: MetricsFormat) -> MediaPreference? {
        let mediaType = format.mediaType
        let main = mediaType.prefix { $0 != "/" }
        if type == "*/*" { return MediaPreference(weight: weight, specificity: 0) }
        if type == main + "/*" { return MediaPreference(weight: weight, specificity: 1) }
        guard type == mediaType, version ?? format.version == format.version,
            charset ?? "utf-8" == "utf-8"
        else { return nil }
        return MediaPreference(weight: weight, specificity: version == nil ? 2 : 3)
    }
}
