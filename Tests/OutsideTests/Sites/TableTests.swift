import Harness
import Testing

extension Outside {
    /// What the RFCs ask of a shared cache, case by case, through a node that listens and an origin
    /// whose every answer is written.
    @Suite("The table of RFC sections")
    struct TableTests {
        static let files = [
            "storing", "statuses", "methods", "control", "request-control", "freshness", "age",
            "heuristic", "stale", "validation", "freshening", "invalidation", "vary", "partial",
            "conditional", "connection", "interim", "authorization", "stale-extensions", "targeted",
            "cache-status", "settings", "targets",
        ]

        @Test("Every case of the section is as expected", arguments: files)
        func section(_ file: String) throws {
            let cases = try TableReader.cases(of: file)
            let stage = try TableStage()
            defer { stage.stop() }
            var right = 0
            for (index, one) in cases.enumerated() {
                let run = TableRun(one, path: "/\(file)-\(index + 1)", on: stage)
                let complaints = try run.complaints()
                guard !complaints.isEmpty else {
                    right += 1
                    continue
                }
                let lines = ["\(file) \(index + 1): \(one.name) [\(one.section)]"] + complaints
                Issue.record("\(lines.joined(separator: "\n    "))")
            }
            print("\(file): \(right) of \(cases.count) cases as expected")
            #expect(stage.origin.malformedHeads == [])
            #expect(stage.node.isRunning)
        }

        @Test("There are several hundred cases, and no two in a section have one name")
        func count() throws {
            var count = 0
            for file in Self.files {
                let names = try TableReader.cases(of: file).map(\.name)
                #expect(Set(names).count == names.count, "\(file)")
                count += names.count
            }
            #expect(count >= 300)
        }
    }
}
