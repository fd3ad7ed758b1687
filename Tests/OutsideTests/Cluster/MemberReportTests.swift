import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Every node shows the whole cluster to operators")
    struct MemberReportTests {
        /// The rows of a node's document of members by name; rows without a name are left out.
        private func rows(_ node: NodeProcess) throws -> [String: [String: Any]] {
            let document = try node.document("/admin/v1/members")
            let rows = document["members"] as? [[String: Any]] ?? []
            return Dictionary(
                rows.map { ($0["name"] as? String ?? "", $0) }, uniquingKeysWith: { $1 }
            ).filter { !$0.key.isEmpty }
        }

        /// The conditions of a node with this name, each as its subject and its summary.
        private func conditions(_ node: NodeProcess, _ name: String) -> [String: String] {
            let document = try? node.document("/admin/v1/conditions")
            let conditions = document?["conditions"] as? [[String: Any]] ?? []
            return Dictionary(
                conditions.filter { $0["name"] as? String == name }.map {
                    ($0["subject"] as? String ?? "", $0["summary"] as? String ?? "")
                }, uniquingKeysWith: { $1 })
        }

        /// The counter of a member's report; `nil` without a report.
        private func count(_ row: [String: Any]?, _ name: String) -> Int? {
            (row?["summary"] as? [String: Any])?[name] as? Int
        }

        @Test("Names, links, versions, totals, settings that differ, and a node that is missing")
        func cluster() throws {
            let stage = try ClusterStage(
                3, isNamed: true,
                ownFlags: [
                    1: ["--admin-advertise", "http://node-1.example:8081"],
                    2: ["--fence", "20s"],
                ])
            let image = TestImage.generated(.jpeg, byteCount: 10_000, seed: 3_101)
            let path = stage.origin.serve(image)
            for _ in 0..<5 { _ = try stage.get(path, from: 1) }
            let names = ["node-0", "node-1", "node-2"]
            for node in stage.nodes {
                try expectSoon(30, "\(node.output)") {
                    let rows = try self.rows(node)
                    return Set(rows.keys) == Set(names)
                        && rows.values.allSatisfy { $0["summary"] is [String: Any] }
                        && count(rows["node-1"], "requests") == 5
                }
                let rows = try self.rows(node)
                #expect(rows["node-1"]?["admin_url"] as? String == "http://node-1.example:8081")
                #expect(rows["node-0"]?["admin_url"] is NSNull)
                #expect(Set(rows.values.compactMap { $0["version"] as? String }).count == 1)
                let total = rows.values.reduce(0) { $0 + (count($1, "requests") ?? 0) }
                #expect(total == 5)
                #expect(try #require(count(rows["node-1"], "hits")) >= 4)
                #expect(try #require(count(rows["node-1"], "sent_bytes")) > 50_000)
            }
            let (first, third) = (stage.nodes[0], stage.nodes[2])
            #expect(try rows(first)["node-2"]?["settings_differ"] as? [String] == ["fence"])
            #expect(try rows(first)["node-1"]?["settings_differ"] as? [String] == [])
            let said = conditions(first, "settings-differ")["fence"]
            #expect(said == "fence is 10s on this node, and 20s on node-2.")
            let others = try #require(conditions(third, "settings-differ")["fence"])
            #expect(others.contains("10s on node-0") && others.contains("10s on node-1"))

            stage.nodes[1].kill()
            for node in [first, third] {
                expectSoon(30, "\(node.output)") {
                    conditions(node, "member-missing")["node-1"]?.contains("node-1 (") == true
                }
                #expect(try rows(node)["node-1"]?["version"] as? String != "")
            }
        }

        @Test("A node with another secret is named by both sides")
        func otherSecret() throws {
            let stage = try ClusterStage(2)
            try stage.write(ClusterStage.otherSecret, to: "other")
            let stranger = try NodeProcess(
                stage.clusterFlags(peerPort: ReservedPort.forProcess(), secret: "other")
                    + ["--join-timeout", "1s"])
            defer { stranger.kill() }
            for index in 0..<2 {
                expectSoon(30, "\(stage.nodes[index].output)") {
                    conditions(stage.nodes[index], "peer-rejected")["127.0.0.1"]
                        == "A node at 127.0.0.1 has another cluster secret."
                }
                let address = "127.0.0.1:\(stage.peerPort(of: index))"
                expectSoon(30, "\(stranger.output)") {
                    conditions(stranger, "peer-rejected")[address]?.contains(
                        "\(address) has another cluster secret") == true
                }
            }
        }
    }
}
