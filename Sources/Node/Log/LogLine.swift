import Ground
import HTTPRules
package import Logging
package import NodeConfiguration
import Telemetry

/// An event of the node's log as one line of text.
///
/// Control and format characters of all values are escaped, so that none ends the line or changes
/// its direction.
package struct LogLine {
    private let time: String
    private let level: Logger.Level
    private let message: String
    private let fields: [(key: String, value: Logger.MetadataValue)]

    /// Creates a line; `time` is in the format of RFC 3339.
    package init(time: String, level: Logger.Level, message: String, _ metadata: Logger.Metadata) {
        self.time = time
        self.level = level
        self.message = message
        fields = metadata.sorted { $0.key < $1.key }.map { (key: $0.key, value: $0.value) }
    }

    /// Returns the line in `format`, with the line break.
    package func text(_ format: Configuration.LogFormat) -> String {
        switch format {
        case .text: text
        case .logfmt: logfmt
        case .json: json
        }
    }

    // MARK: Text and logfmt

    /// The width of a level, which aligns messages after levels of up to five letters.
    private static let levelWidth = 5

    /// The line for people.
    private var text: String {
        let level = level.rawValue
        let space = String(repeating: " ", count: max(0, Self.levelWidth - level.count) + 1)
        return "\(time) \(level)\(space)\(Self.visible(message))\(pairs)\n"
    }

    /// The line as logfmt.
    private var logfmt: String {
        "\(time) level=\(level) message=\(Self.word(message))\(pairs)\n"
    }

    /// The metadata as logfmt pairs, each after a space.
    private var pairs: String {
        fields.map { " \($0.key)=\(Self.word(Self.plain($0.value)))" }.joined()
    }

    /// Returns the text with invisible characters escaped.
    private static func visible(_ text: String) -> String {
        text.unicodeScalars.map { $0.isInvisible ? $0.jsonEscape : String($0) }.joined()
    }

    /// Returns a metadata value as text.
    private static func plain(_ value: Logger.MetadataValue) -> String {
        switch value {
        case .string(let text): text
        case .stringConvertible(let value): "\(value)"
        case .array(let values): values.map(plain).joined(separator: ", ")
        case .dictionary(let values):
            values.sorted { $0.key < $1.key }.map { "\($0.key) \(plain($0.value))" }
                .joined(separator: ", ")
        }
    }

    /// Returns the text, in quotes unless it can only be read as one word.
    private static func word(_ text: String) -> String {
        let isWord = text.unicodeScalars.allSatisfy { scalar in
            !scalar.isInvisible && !scalar.properties.isWhitespace
                && scalar != "\"" && scalar != "=" && scalar != "\\"
        }
        return isWord && !text.isEmpty ? text : text.jsonQuoted
    }

    // MARK: JSON

    /// The line as a JSON object; metadata keys that are taken get an underscore.
    private var json: String {
        var line = "{\"time\":\(time.jsonQuoted),\"level\":\"\(level)\""
        line += ",\"message\":\(message.jsonQuoted)"
        for (key, value) in fields {
            let isTaken = key == "time" || key == "level" || key == "message"
            line += ",\((isTaken ? key + "_" : key).jsonQuoted):\(Self.json(value))"
        }
        return line + "}\n"
    }

    /// Returns a metadata value as JSON.
    private static func json(_ value: Logger.MetadataValue) -> String {
        switch value {
        case .string(let text): return text.jsonQuoted
        case .stringConvertible(let value):
            return value is any FixedWidthInteger || value is Bool
                ? "\(value)" : "\(value)".jsonQuoted
        case .array(let values):
            return "[" + values.map(json).joined(separator: ",") + "]"
        case .dictionary(let values):
            let members = values.sorted { $0.key < $1.key }
            return "{"
                + members.map { "\($0.key.jsonQuoted):\(json($0.value))" }
                .joined(separator: ",") + "}"
        }
    }
}

/// A wall time in the formats of log lines, made from the parts of an IMF-fixdate (RFC 9110
/// §5.6.7).
struct CivilTime {
    private let day: String
    private let month: String
    private let year: String
    private let clock: String
    private let milliseconds: Int64

    /// Creates the time from milliseconds since 1970.
    init(milliseconds time: Int64) {
        var bytes: [UInt8] = []
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: 1_000)
        HTTPDate.append(WallTime(seconds: seconds), to: &bytes)
        let part = { (range: Range<Int>) in String(decoding: bytes[range], as: UTF8.self) }
        day = part(5..<7)
        month = part(8..<11)
        year = part(12..<16)
        clock = part(17..<25)
        milliseconds = rest
    }

    /// The time as in `21/Nov/2026:01:02:03 +0000`.
    var logText: String { "\(day)/\(month)/\(year):\(clock) +0000" }

    /// The time as in `2026-11-21T01:02:03.004Z`.
    var isoText: String {
        let number = (HTTPDate.monthNames.firstIndex(of: month) ?? 0) + 1
        let zeros = milliseconds < 10 ? "00" : milliseconds < 100 ? "0" : ""
        return "\(year)-\(number < 10 ? "0" : "")\(number)-\(day)T\(clock).\(zeros)\(milliseconds)Z"
    }
}
