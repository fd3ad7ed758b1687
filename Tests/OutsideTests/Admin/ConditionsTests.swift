import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A node says in words what is wrong")
    struct ConditionsTests {
        private let image = TestImage.generated(.png, byteCount: 3_000, seed: 77)

        /// Returns the node's state, and its conditions as dictionaries.
        private func conditions(
            _ node: NodeProcess
        ) throws -> (state: String, conditions: [[String: Any]]) {
            let document = try node.document("/admin/v1/conditions")
            let list = try #require(document["conditions"] as? [[String: Any]])
            return (try #require(document["state"] as? String), list)
        }

        /// Returns the row of a list whose member `key` is `value`.
        private func row(
            _ node: NodeProcess, _ list: String, _ key: String, _ value: String
        ) throws -> [String: Any] {
            let rows = try node.document("/admin/v1/\(list)")[list] as? [[String: Any]]
            return try #require(rows?.first { $0[key] as? String == value })
        }

        @Test("A site's dead origin is named at once, and forgotten once it is back")
        func deadOrigin() throws {
            let origin = try ScriptedOrigin()
            origin.on("/it", OriginResponse(image, fields: [lasting]))
            let port = try ReservedPort()
            let url = "http://127.0.0.1:\(port.number)"
            let node = try NodeProcess([
                "--site", "good.example=\(origin.url(""))", "--site", "bad.example=\(url)",
                "--origin-circuit-time", "1s",
            ])
            defer { node.kill() }
            #expect(try conditions(node).state == "ready")
            for number in 0..<24 {
                #expect(try node.get("/\(number)", host: "bad.example").status >= 502)
                #expect(try node.get("/it", host: "good.example").matches(image))
            }
            let (state, found) = try conditions(node)
            #expect(state == "critical")
            #expect(found.compactMap { $0["name"] as? String } == ["origin-down", "server-errors"])
            #expect(found.first?["subject"] as? String == url)
            #expect(found.first?["alert"] as? String == "NuthatchOriginLeftAlone")
            let summary = try #require(found.first?["summary"] as? String)
            #expect(summary.contains("bad.example is down: 100 % of the 24 requests"), "\(summary)")
            #expect(summary.contains("connect:"), "\(summary)")

            let bad = try row(node, "sites", "site", "bad.example")
            #expect(bad["health"] as? String == "down" && bad["origins"] as? [String] == [url])
            #expect((bad["responses"] as? [String: Int])?["5xx"] == 24)
            #expect((bad["last_error"] as? [String: Any])?["reason"] as? String == "connect")
            let good = try row(node, "sites", "site", "good.example")
            #expect(good["health"] as? String == "ok" && good["last_error"] is NSNull)
            let down = try row(node, "origins", "url", url)
            #expect(down["health"] as? String == "down")
            #expect((down["failures_by_reason"] as? [String: Int])?["connect"] ?? 0 >= 20)
            let statistics = try node.document("/admin/v1/statistics")
            #expect((statistics["responses"] as? [String: Int])?["5xx"] == 24)
            let errors = statistics["errors"] as? [String: [String: Int]]
            #expect(errors?["origin"]?["connect"] ?? 0 >= 20)

            let revived = try ScriptedOrigin(port: port.number)
            revived.on("/it", OriginResponse(image, fields: [lasting]))
            try expectSoon(60) {
                let connection = try node.connect()
                for _ in 0..<100 {
                    _ = try connection.get("/it", host: "bad.example")
                }
                return try conditions(node).state == "ready"
            }
            #expect(try row(node, "sites", "site", "bad.example")["health"] as? String == "ok")
        }

        @Test("A certificate that ends in a few days is critical, and listed with its names")
        func certificate() throws {
            let authority = try SecureStage.authority.get()
            let leaf = try authority.leaf(
                "ending", hosts: ["a.example"], daysLeft: 5.5)
            let stage = try SecureStage(certificates: [leaf])
            let (state, found) = try conditions(stage.node)
            #expect(state == "critical")
            #expect(found.map { $0["name"] as? String } == ["certificate-expiring"])
            #expect(
                found.first?["summary"] as? String
                    == "The certificate of a.example expires in 5 days.")
            let certificate = try row(stage.node, "certificates", "file", leaf.certificate)
            #expect(certificate["days_left"] as? Int == 5)
            #expect(certificate["names"] as? [String] == ["a.example"])
            #expect(certificate["use"] as? String == "clients")
        }

        @Test("The traffic of each interval of ten seconds is kept")
        func history() throws {
            let stage = try Stage()
            defer { stage.node.kill() }
            stage.origin.on("/it", OriginResponse(image, fields: [lasting]))
            for _ in 0..<3 { #expect(try stage.get("/it").matches(image)) }
            var document: [String: Any] = [:]
            try expectSoon(40) {
                document = try stage.node.document("/admin/v1/history")
                return (document["requests"] as? [Int])?.reduce(0, +) == 3
            }
            #expect((document["hits"] as? [Int])?.reduce(0, +) == 2)
            #expect((document["newest_ms"] as? Int ?? 1) % 10_000 == 0)
            #expect(document["interval_ms"] as? Int == 10_000)
        }
    }
}
