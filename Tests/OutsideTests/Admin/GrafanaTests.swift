import Foundation
import Harness
import Testing

extension Outside {
    @Suite(
        "promtool accepts the alert rules and the dashboard's queries",
        .enabled(if: (try? Program.find("promtool")) != nil))
    struct GrafanaTests {
        private let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "deploy/grafana")

        private func promtool(_ arguments: String...) throws -> ProgramResult {
            try Program.run(try Program.find("promtool"), arguments)
        }

        @Test("The rules are well formed, and alert exactly when they should")
        func rules() throws {
            let check = try promtool("check", "rules", folder.appending(path: "rules.yaml").path)
            #expect(check.status == 0, "\(check.errors)")
            let test = try promtool(
                "test", "rules", folder.appending(path: "rules-test.yaml").path)
            let output = String(decoding: test.output, as: UTF8.self)
            #expect(test.status == 0, "\(output) \(test.errors)")
        }

        @Test("Every expression of the dashboard is valid")
        func expressions() throws {
            let data = try Data(contentsOf: folder.appending(path: "dashboard.json"))
            let dashboard = try JSONSerialization.jsonObject(with: data) as? [String: Any]
            let panels = try #require(dashboard?["panels"] as? [[String: Any]])
            let targets = panels.flatMap { $0["targets"] as? [[String: Any]] ?? [] }
            let expressions = targets.compactMap { $0["expr"] as? String }
            #expect(expressions.count > 60)
            // promtool reads expressions only in rules; JSON is valid YAML.
            let rules = expressions.enumerated().map { number, expression in
                [
                    "record": "panel:\(number)",
                    "expr": expression.replacing("$__rate_interval", with: "5m"),
                ]
            }
            let file: [String: Any] = ["groups": [["name": "panels", "rules": rules]]]
            let temporary = try TemporaryFolder()
            let path = temporary.appending(path: "panels.yaml")
            try JSONSerialization.data(
                withJSONObject: file, options: .withoutEscapingSlashes
            ).write(to: path)
            let result = try promtool("check", "rules", path.path)
            #expect(result.status == 0, "\(result.errors)")
        }
    }
}
