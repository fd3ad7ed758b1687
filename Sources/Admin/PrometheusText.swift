package import Telemetry

/// Metrics in the text format that Prometheus scrapes, version 0.0.4.
package enum PrometheusText {
    /// The media type of ``render(_:)``.
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// Every family of the table, in its order, with the values of `snapshot`.
    package static func render(_ snapshot: Snapshot) -> String {
        var text = ""
        for family in MetricFamily.table {
            text += "# HELP \(family.name) \(escapeHelp(family.meaning))\n"
            text += "# TYPE \(family.name) \(family.kind.rawValue)\n"
            for member in family.members {
                let label = family.label.isEmpty ? "" : "{\(family.label)=\"\(member.label)\"}"
                text += "\(family.name)\(label) \(snapshot[member.metric])\n"
            }
        }
        return text
    }

    /// The format's escapes for a help text: backslash and line feed.
    package static func escapeHelp(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            default: escaped.append(character)
            }
        }
        return escaped
    }
}
