import Telemetry

/// A PromQL expression, parsed as far as these tests need it.
struct Expression {
    /// A metric name with its label matchers.
    struct Selector {
        var name: String
        var matchers: [Matcher] = []
    }

    struct Matcher {
        var label: String
        var sign: String
        var value: String
    }

    var selectors: [Selector] = []
    /// The labels by which results are grouped or joined.
    var grouping: Set<String> = []

    init(_ text: String) {
        let selector = /\b(up|[a-z_]+:nuthatch_[a-z0-9_:]+|nuthatch_[a-z_]+)\b(\{[^}]*\})?/
        let matcher = /([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"/
        for match in text.matches(of: selector) {
            let matchers = (match.output.2 ?? "").matches(of: matcher).map {
                Matcher(
                    label: String($0.output.1), sign: String($0.output.2),
                    value: String($0.output.3))
            }
            selectors.append(Selector(name: String(match.output.1), matchers: matchers))
        }
        let list = /\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^()]*)\)/
        for match in text.matches(of: list) {
            let names = match.output.1.split(separator: ",").map { name in
                String(name.filter { $0 != " " && $0 != "\n" })
            }
            grouping.formUnion(names)
        }
    }

    /// The families in the table that it uses.
    var families: [MetricFamily] {
        selectors.compactMap { selector in
            MetricTable.families.first { $0.sampleNames.contains(selector.name) }
        }
    }

    /// The contradictions to the table; `records` are the names of recording rules.
    func faults(records: Set<String> = []) -> [String] {
        var faults: [String] = []
        var labels: Set<String> = ["job", "instance"]
        for selector in selectors where selector.name != "up" && !records.contains(selector.name) {
            guard let family = families.first(where: { $0.sampleNames.contains(selector.name) })
            else {
                faults.append("\(selector.name) is not in the table")
                continue
            }
            labels.formUnion(family.labels)
            if selector.name.hasSuffix("_bucket") { labels.insert("le") }
            faults += selector.matchers.flatMap { $0.faults(of: family) }
        }
        return faults + grouping.subtracting(labels).sorted().map { "nothing has a label \($0)" }
    }
}

extension Expression.Matcher {
    fileprivate func faults(of family: MetricFamily) -> [String] {
        if ["job", "instance"].contains(label) { return [] }
        guard family.labels.contains(label) else { return ["\(family.name) has no \(label)"] }
        // The values of a dashboard's variable are unknown here.
        guard let allowed = family.values(of: label), !value.contains("$") else { return [] }
        let values = sign.hasSuffix("~") ? value.split(separator: "|").map(String.init) : [value]
        return values.filter { !allowed.contains($0) }.map {
            "no \(family.name) has \(label) \($0)"
        }
    }
}

extension MetricFamily {
    /// The names of the family's series.
    var sampleNames: [String] {
        kind == .histogram ? ["_bucket", "_sum", "_count"].map { name + $0 } : [name]
    }
}
