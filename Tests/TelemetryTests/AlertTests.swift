import Foundation
import Telemetry
import Testing
import Yams

@Suite("Prometheus alerts use existing metrics")
struct AlertTests {
    private struct File: Decodable {
        var groups: [Group]
    }

    private struct Group: Decodable {
        var name: String
        var rules: [Rule]
    }

    private struct Rule: Decodable {
        var record: String?
        var alert: String?
        var expr: String
        var labels: [String: String]?
        var annotations: [String: String]?
    }

    private let rules: [Rule]

    init() throws {
        let text = try String(contentsOf: Deployed.file("grafana/rules.yaml"), encoding: .utf8)
        let file = try YAMLDecoder().decode(File.self, from: text)
        rules = file.groups.flatMap(\.rules)
    }

    private var alerts: [Rule] { rules.filter { $0.alert != nil } }

    @Test("Every name and label is in the table")
    func names() {
        let records = Set(rules.compactMap(\.record))
        #expect(records.count > 3 && alerts.count > 15)
        for rule in rules {
            let expression = Expression(rule.expr)
            #expect(!expression.selectors.isEmpty, "\(rule.expr)")
            #expect(expression.faults(records: records) == [], "\(rule.expr)")
        }
    }

    @Test("An alert has a unique name, a severity, a summary and advice")
    func annotations() throws {
        #expect(Set(alerts.compactMap(\.alert)).count == alerts.count)
        for alert in alerts {
            let name = try #require(alert.alert)
            #expect(try /Nuthatch([A-Z][a-z]+)+/.wholeMatch(in: name) != nil)
            #expect(["critical", "warning"].contains(alert.labels?["severity"]), "\(name)")
            #expect(alert.annotations?.keys.sorted() == ["action", "summary"], "\(name)")
            let summary = try #require(alert.annotations?["summary"])
            #expect(
                summary.contains("{{ $labels.instance }}") && !summary.hasSuffix("."), "\(name)")
        }
    }

    @Test("The advice begins with that of one of its metrics")
    func advice() throws {
        for alert in alerts where !alert.expr.hasPrefix("up") {
            let action = try #require(alert.annotations?["action"])
            let advice = Expression(alert.expr).families.map(\.advice)
            #expect(advice.contains { action.hasPrefix($0) }, "\(alert.alert ?? "")")
        }
    }

    @Test("Labels used in an alert's text exist")
    func labels() {
        for alert in alerts {
            let expression = Expression(alert.expr)
            let all = Set(expression.families.flatMap(\.labels)).union(["job", "instance"])
            let isGrouped = alert.expr.contains("by (")
            let shown = (alert.annotations?.values.joined() ?? "")
                .matches(of: /\$labels\.([a-z]+)/).map { String($0.output.1) }
            for label in shown {
                #expect(isGrouped ? expression.grouping.contains(label) : all.contains(label))
            }
        }
    }
}

/// The files for deployment beside the program.
enum Deployed {
    static func file(_ path: String) -> URL {
        repository.appending(path: "deploy/\(path)")
    }

    static let repository = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
}
