import Harness
import Testing

extension Outside {
    /// The requirements of the RFCs for a shared cache, case by case, through a listening node and
    /// a scripted origin.
    @Suite("The table of RFC sections")
    struct TableTests {
        static let files = [
            "storing", "statuses", "methods", "control", "request-control", "freshness", "age",
            "heuristic", "stale", "validation", "freshening", "invalidation", "vary", "partial",
            "conditional", "connection", "interim", "authorization", "stale-extensions", "targeted",
            "cache-status", "settings", "targets",
        ]

        @Test("Every case of the section holds", arguments: files)
        func section(_ file: String) throws {
            let stage = try TableStage()
            defer { stage.stop() }
            try play(file, on: stage)
        }

        @Test(
            "Every case holds through a node of three that owns none of its keys",
            arguments: files)
        func clusteredSection(_ file: String) throws {
            let stage = try TableStage(owners: 2)
            defer { stage.stop() }
            try play(file, on: stage)
            let asked = stage.node.metric("nuthatch_peer_questions_total{kind=\"get\"}") ?? 0
            #expect(asked > 0)
        }

        /// Cases that a cluster handles differently, by section and number.
        private static let clustered: [String: Set<Int>] = [
            // A truncated response of a peer is fetched again if nothing of it was sent.
            "storing": [77],
            // An owner cannot relay a 304, so the node sends its own request.
            "validation": [26],
        ]

        private func play(_ file: String, on stage: TableStage) throws {
            let others = stage.owners.isEmpty ? [] : Self.clustered[file] ?? []
            let cases = try TableReader.cases(of: file)
            var right = 0
            for (index, one) in cases.enumerated() where !others.contains(index + 1) {
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
            for node in [stage.node] + stage.owners { #expect(node.isRunning) }
        }

        @Test("There are several hundred cases, and names are unique within a section")
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
