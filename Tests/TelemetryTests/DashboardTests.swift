import Foundation
import Telemetry
import Testing

@Suite("The Grafana dashboard uses existing metrics")
struct DashboardTests {
    private struct Dashboard: Decodable {
        var uid: String
        var schemaVersion: Int
        var panels: [Panel]
        var templating: Templating
    }

    private struct Templating: Decodable {
        var list: [Variable]
    }

    private struct Variable: Decodable {
        var name: String
        var type: String
        var definition: String?
    }

    private struct Panel: Decodable {
        var id: Int
        var type: String
        var title: String
        var description: String?
        var datasource: Source?
        var gridPos: Place
        var targets: [Target]?
    }

    private struct Source: Decodable {
        var type: String
        var uid: String
    }

    private struct Place: Decodable {
        var x: Int
        var y: Int
        var w: Int
        var h: Int

        var cells: [[Int]] {
            (x..<x + w).flatMap { column in (y..<y + h).map { [column, $0] } }
        }
    }

    private struct Target: Decodable {
        var refId: String
        var expr: String
        var legendFormat: String
    }

    private let dashboard: Dashboard

    init() throws {
        dashboard = try JSONDecoder().decode(
            Dashboard.self, from: Data(contentsOf: Deployed.file("grafana/dashboard.json")))
    }

    private var drawn: [Panel] { dashboard.panels.filter { $0.type != "row" } }

    @Test("Every name and label is in the table, and queries select the chosen nodes")
    func names() {
        for panel in drawn {
            for target in panel.targets ?? [] {
                let expression = Expression(target.expr)
                #expect(expression.faults() == [], "\(panel.title): \(target.expr)")
                #expect(!expression.selectors.isEmpty)
                for selector in expression.selectors {
                    for label in ["job", "instance"] {
                        let matcher = selector.matchers.first { $0.label == label }
                        #expect(matcher?.value == "$\(label)", "\(panel.title): \(target.expr)")
                    }
                }
            }
        }
    }

    @Test("A legend uses labels that its series have")
    func legends() {
        for panel in drawn {
            for target in panel.targets ?? [] {
                let shown = target.legendFormat.matches(of: /\{\{([a-z]+)\}\}/).map {
                    String($0.output.1)
                }
                let grouping = Expression(target.expr).grouping
                #expect(shown.allSatisfy(grouping.contains), "\(panel.title): \(target.expr)")
            }
        }
    }

    @Test("A panel's description is from the table, and it queries the chosen source")
    func panels() throws {
        #expect(drawn.count > 40)
        for panel in drawn {
            let targets = try #require(panel.targets)
            let meanings = targets.flatMap { Expression($0.expr).families.map(\.meaning) }
            #expect(meanings.contains(panel.description ?? ""), "\(panel.title)")
            #expect(panel.datasource?.type == "prometheus")
            #expect(panel.datasource?.uid == "${datasource}", "\(panel.title)")
            #expect(Set(targets.map(\.refId)).count == targets.count && !targets.isEmpty)
        }
    }

    @Test("Panels have unique ids and do not overlap")
    func layout() {
        let panels = dashboard.panels
        #expect(Set(panels.map(\.id)).count == panels.count)
        let cells = panels.flatMap(\.gridPos.cells)
        #expect(Set(cells).count == cells.count)
        #expect(panels.allSatisfy { $0.gridPos.x + $0.gridPos.w <= 24 })
        #expect(dashboard.uid == "nuthatch" && dashboard.schemaVersion >= 39)
    }

    @Test("Source, job, node and site can be chosen")
    func variables() {
        let variables = dashboard.templating.list
        #expect(variables.map(\.name) == ["datasource", "job", "instance", "site"])
        #expect(variables.first?.type == "datasource")
        for variable in variables.dropFirst() {
            let expression = Expression(variable.definition ?? "")
            #expect(expression.faults() == [] && expression.families.count == 1)
        }
    }
}
