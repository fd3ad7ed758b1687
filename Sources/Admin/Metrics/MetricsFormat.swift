import Ground
import HTTPRules

/// How metrics are written down.
package enum MetricsFormat: Hashable, CaseIterable, Sendable {
    /// The text format that Prometheus has read from the beginning, version 0.0.4.
    case text
    /// OpenMetrics 1.0.
    case openMetrics

    package var contentType: String {
        switch self {
        case .text: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }

    /// ``contentType`` without parameters.
    package var mediaType: String {
        switch self {
        case .text: "text/plain"
        case .openMetrics: "application/openmetrics-text"
        }
    }

    var version: String {
        switch self {
        case .text: "0.0.4"
        case .openMetrics: "1.0.0"
        }
    }

    /// What a client gets that sends `accept`, the values of its Accept lines (RFC 9110 §12.5.1).
    ///
    /// That which it likes better; of two that it likes equally the one that it names more closely,
    /// else text. Who takes neither gets text all the same: it is a page for people, too.
    package init(accepting accept: [[UInt8]]) {
        var wishes: [MetricsFormat: MediaPreference] = [:]
        for range in accept.flatMap({ MediaRange.list($0.span) }) {
            for format in Self.allCases {
                guard let wish = range.preference(for: format) else { continue }
                let former = wishes[format]
                if former.map({ $0.specificity < wish.specificity }) ?? true {
                    wishes[format] = wish
                }
            }
        }
        guard let wish = wishes[.openMetrics], wish.weight > 0 else {
            self = .text
            return
        }
        self =
            wish > wishes[.text] ?? MediaPreference(weight: 0, specificity: 0)
            ? .openMetrics : .text
    }

    /// A help text with the format's escapes: backslash and line feed, in OpenMetrics quotes too.
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

/// How much a client wants something.
private struct MediaPreference: Comparable {
    /// In thousandths; 0 for not at all.
    let weight: Int
    /// By what it is named: everything, a type, a subtype, parameters too.
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

    /// Those of one line that can be read.
    static func list(_ bytes: Span<UInt8>) -> [MediaRange] {
        var ranges: [MediaRange] = []
        var cursor = 0
        while let element = FieldSyntax.nextElement(bytes, at: 0..<bytes.count, cursor: &cursor) {
            if let range = MediaRange(bytes, element) { ranges.append(range) }
        }
        return ranges
    }

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

    /// Takes in a parameter; false if it makes no sense.
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
        // What else may be asked for, as `escaping`, makes no difference here.
        default: break
        }
        return true
    }

    /// `0.5` as thousandths; nil if it is no weight (RFC 9110 §12.4.2).
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

    /// What it says of a format; nil if that is not among what it names.
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
