import Foundation
import Harness
import Testing

extension Outside {
    @Suite("nuthatch members lists the members and removes dead ones")
    struct MembersCommandTests {
        private func members(
            _ node: NodeProcess, _ arguments: String...
        ) throws -> ProgramResult {
            try NodeProcess.run(
                ["members"] + arguments + ["--admin-listen", "127.0.0.1:\(node.adminPort)"])
        }

        /// Returns the columns of the table row of the member `id`.
        private func line(_ node: NodeProcess, _ id: String) throws -> [String] {
            let result = try members(node)
            #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
            let lines = String(decoding: result.output, as: UTF8.self).split(separator: "\n")
            let line = lines.first { $0.contains(id) } ?? ""
            return line.split(separator: " ").map(String.init)
        }

        @Test("A killed node is listed until it is forgotten, and then receipts no longer name it")
        func forgotten() throws {
            let stage = try ClusterStage(3)
            let (node, target) = (stage.nodes[0], "{\"tag\":\"t\"}")
            let killed = try ClusterStage.id(of: stage.nodes[2])
            try expectSoon(60) {
                try line(node, killed).prefix(4) == [killed, "alive", "yes", "yes"]
            }
            let own = try ClusterStage.id(of: node)
            #expect(try line(node, own).prefix(5) == ["*", own, "alive", "yes", "yes"])
            let alive = try members(node, "forget", killed)
            #expect(alive.status == 1 && alive.output.isEmpty)
            #expect(alive.errors.contains(" answered 409 The member was not forgotten: "))

            stage.nodes[2].kill()
            #expect(try stage.believes(node, killed, "dead"))
            #expect(try line(node, killed).prefix(4) == [killed, "dead", "yes", "no"])
            let before = try node.purge(target, wait: "issued")
            #expect(before.status == 202 && before.members[killed] == "unreachable")

            // It does not count as gone while it may have replied a moment ago.
            try expectSoon(120) {
                let result = try members(node, "forget", killed)
                return result.status == 0 && result.errors.isEmpty
                    && String(decoding: result.output, as: UTF8.self) == "forgetting \(killed)\n"
            }
            try expectSoon(60) { try line(node, killed).prefix(4) == [killed, "dead", "no", "no"] }
            // It may have served for one fence period after its last contact, so receipts name it
            // until then.
            let after = try stage.nodes[1].purge(target, wait: "issued")
            try expectSoon(60) { try stage.nodes[1].receipt(after.name).isConfirmedByAll }
            let last = try stage.nodes[1].receipt(after.name)
            #expect(last.members.count == 2 && last.members[killed] == nil, "\(last)")
            let again = try members(node, "forget", killed)
            #expect(again.status == 1 && again.errors.contains("It is not a voter"))
        }

        @Test("The JSON output equals that of the admin port")
        func json() throws {
            let stage = try ClusterStage(2)
            let result = try members(stage.nodes[1], "--json")
            #expect(result.status == 0)
            let document = try JSONSerialization.jsonObject(with: result.output) as? [String: Any]
            let rows = document?["members"] as? [[String: Any]] ?? []
            #expect(rows.count == 2 && rows[0]["self"] as? Bool == true)
            #expect(rows.allSatisfy { $0["counted"] is Bool && $0["contact_ms_ago"] != nil })
            let page = try stage.nodes[1].connectAdmin().get("/admin/v1/members")
            #expect(page.text.count { $0 == "\n" } == 4 && page.text.hasPrefix("{\"members\":["))
        }

        @Test("A voter that a node has not met since its start is listed")
        func unknown() throws {
            let stage = try ClusterStage(3)
            let killed = try ClusterStage.id(of: stage.nodes[2])
            try expectSoon(60) { try line(stage.nodes[0], killed).dropFirst(2).first == "yes" }
            for node in stage.nodes { node.kill() }
            try stage.restart(0)
            #expect(try line(stage.nodes[0], killed).prefix(4) == [killed, "unknown", "yes", "no"])
        }

        @Test("A single node reports that it is alone and in no cluster")
        func alone() throws {
            let node = try NodeProcess()
            let result = try members(node)
            #expect(result.status == 0)
            #expect(
                String(decoding: result.output, as: UTF8.self) == "this node is not in a cluster\n")
        }
    }
}
