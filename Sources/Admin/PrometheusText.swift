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
        append(snapshot.outcomes, to: &text)
        if !snapshot.sites.isEmpty { append(snapshot.sites, to: &text) }
        return text
    }

    private static func append(_ outcomes: OutcomeFigures, to text: inout String) {
        let bytes = "nuthatch_body_bytes_total"
        text += "# HELP \(bytes) Bytes of bodies given to clients, by how the cache took part\n"
        text += "# TYPE \(bytes) counter\n"
        for row in outcomes.rows {
            text += "\(bytes){cache=\"\(row.outcome.label)\"} \(row.bodyBytes)\n"
        }
        let name = "nuthatch_request_duration_seconds"
        text += "# HELP \(name) Time from a request's head to the end of its answer\n"
        text += "# TYPE \(name) histogram\n"
        for row in outcomes.rows {
            let label = "cache=\"\(row.outcome.label)\""
            var sum: UInt64 = 0
            for (place, count) in row.counts.enumerated() {
                sum += count
                let bounds = LatencyBuckets.bounds
                let bound = place < bounds.count ? seconds(bounds[place] * 1_000) : "+Inf"
                text += "\(name)_bucket{\(label),le=\"\(bound)\"} \(sum)\n"
            }
            text += "\(name)_sum{\(label)} \(seconds(row.nanoseconds))\n"
            text += "\(name)_count{\(label)} \(sum)\n"
        }
    }

    /// Nanoseconds as seconds, without zeros at the end.
    private static func seconds(_ nanoseconds: UInt64) -> String {
        let rest = String(nanoseconds % 1_000_000_000)
        let digits = String(repeating: "0", count: 9 - rest.count) + rest
        let kept = digits.reversed().drop { $0 == "0" }.reversed()
        let whole = "\(nanoseconds / 1_000_000_000)"
        return kept.isEmpty ? whole : whole + "." + String(kept)
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
