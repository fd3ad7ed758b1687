import Foundation
import Telemetry
import Testing

@Suite("The page about metrics")
struct MetricsPageTests {
    /// The page from its table on, generated from the families.
    private var expected: String {
        var text =
            "| metric | kind | labels | meaning | if it looks wrong |\n|---|---|---|---|---|\n"
        for family in MetricTable.families {
            let labels = family.labels.map { label in
                let values = family.values(of: label)?.map { "`\($0)`" }
                return values.map { "`\(label)`: " + $0.joined(separator: ", ") } ?? "`\(label)`"
            }
            let cells = [
                "`\(family.name)`", family.kind.rawValue, labels.joined(separator: "; "),
                family.meaning, family.advice,
            ]
            text += "| " + cells.joined(separator: " | ") + " |\n"
        }
        return text
    }

    @Test("The page lists every family as in the table")
    func page() throws {
        let file = Deployed.repository.appending(
            path: "Sources/Telemetry/Telemetry.docc/Metrics.md")
        let page = try String(contentsOf: file, encoding: .utf8)
        let table = page.range(of: "| metric |").map { String(page[$0.lowerBound...]) }
        let isSame = table == expected
        // Written to a file from which it can be copied.
        let made = FileManager.default.temporaryDirectory.appending(path: "nuthatch-metrics.md")
        if !isSame { try expected.write(to: made, atomically: true, encoding: .utf8) }
        #expect(isSame, "the expected text from its table on is in \(made.path)")
    }
}
