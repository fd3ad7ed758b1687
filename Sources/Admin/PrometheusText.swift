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
        if !snapshot.sites.isEmpty { append(snapshot.sites, to: &text) }
        return text
    }

    private static func append(_ sites: [SiteFigures], to text: inout String) {
        for family in SiteMetricFamily.table {
            text += "# HELP \(family.name) \(escapeHelp(family.meaning))\n"
            text += "# TYPE \(family.name) counter\n"
            for site in sites {
                for member in family.members {
                    let label = family.label.isEmpty ? "" : ",\(family.label)=\"\(member.label)\""
                    // A site's name is a host and a port, which need no escapes.
                    text += "\(family.name){site=\"\(site.name)\"\(label)} \(site[member.metric])\n"
                }
            }
        }
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
