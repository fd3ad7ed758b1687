import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A site that a cluster answers for")
    struct ClusterSiteTests {
        private static let host = "a.example"

        private func page(
            _ path: String, _ node: NodeProcess, method: String = "GET", _ fields: String...
        ) throws -> Response {
            try node.get(path, method: method, host: Self.host, fields: fields)
        }

        @Test("One fetch serves all nodes, and one question whether it still holds")
        func once() throws {
            let stage = try ClusterStage(3, site: Self.host)
            stage.origin.on("/page") { request in
                request.isConditional
                    ? .notModified([lasting, "ETag: \"1\""])
                    : .text("page", fields: ["Cache-Control: max-age=0", "ETag: \"1\""])
            }
            stage.origin.on("/lasting", .text("lasting", fields: [lasting]))
            for _ in 0..<2 {
                for node in stage.nodes {
                    #expect(try page("/lasting", node).text == "lasting")
                }
            }
            #expect(stage.fetches("/lasting") == 1)
            for node in stage.nodes { #expect(try page("/page", node).text == "page") }
            #expect(stage.origin.requests("/page").count { !$0.isConditional } == 1)
            #expect(stage.fetches("/page") == 2)
        }

        @Test("Each variant is fetched once, whichever node is asked")
        func variants() throws {
            let stage = try ClusterStage(3, site: Self.host)
            stage.origin.on("/page") { request in
                .text(
                    "in \(request.fields["Accept-Language"] ?? "-")",
                    fields: [lasting, "Vary: Accept-Language"])
            }
            for _ in 0..<2 {
                for node in stage.nodes {
                    for language in ["de", "en", "fr"] {
                        let answer = try page("/page", node, "Accept-Language: \(language)")
                        #expect(answer.text == "in \(language)", "\(answer)")
                    }
                }
            }
            #expect(stage.fetches("/page") == 3)
        }

        @Test(
            "What is for one client goes to that one, and the origin is asked once for it",
            arguments: ["Cache-Control: private", "Cache-Control: no-store", "Set-Cookie: s=1"])
        func alone(field: String) throws {
            let stage = try ClusterStage(3, site: Self.host)
            stage.origin.on("/page") { request in
                .text("for \(request.fields["Cookie"] ?? "-")", fields: [field])
            }
            var asked = 0
            for round in 0..<3 {
                for (number, node) in stage.nodes.enumerated() {
                    let user = "user=\(round)\(number)"
                    let answer = try page("/page", node, "Cookie: \(user)")
                    #expect(answer.text == "for \(user)" && !answer.isHit, "\(answer)")
                    asked += 1
                    #expect(stage.fetches("/page") == asked, "\(answer)")
                }
            }
        }

        @Test("A change and a purge through one node are seen through all")
        func changed() throws {
            let stage = try ClusterStage(3, site: Self.host)
            let version = LockedBox(1)
            stage.origin.on("/page") { request in
                if request.method == "POST" { version.change { $0 += 1 } }
                return .text("version \(version.value)", fields: [lasting])
            }
            for node in stage.nodes { #expect(try page("/page", node).text == "version 1") }
            #expect(try page("/page", stage.nodes[1], method: "POST").status == 200)
            for node in stage.nodes {
                let isSeen = try Deadline.seconds(30).reached {
                    try page("/page", node).text == "version 2"
                }
                #expect(isSeen)
            }
            version.value = 3
            let purge = "{\"url\":\"http://\(Self.host)/page\"}"
            #expect(try stage.nodes[2].purge(purge).isConfirmedByAll)
            for node in stage.nodes { #expect(try page("/page", node).text == "version 3") }
        }

        @Test("Nodes with other settings ask for themselves, and say so; so they do if it is off")
        func policies() throws {
            let stage = try ClusterStage(2, site: Self.host)
            stage.origin.on("/page", .text("page", fields: [lasting]))
            for (name, text) in [("off", "cluster: off"), ("other", "grace: 1h")] {
                try stage.write(
                    "sites:\n  \(Self.host):\n    origin: \(stage.origin.url(""))\n    \(text)\n",
                    to: "\(name).yaml")
            }
            let others = try ["off", "other"].map { name in
                try NodeProcess(
                    stage.clusterFlags(peerPort: HeldPort.forever()) + [
                        "--config", stage.directory.appending(path: "\(name).yaml").path,
                    ])
            }
            defer { for node in others { node.kill() } }
            let all = stage.nodes + others
            #expect(Deadline.seconds(30).reached { all.allSatisfy { $0.isCurrent(among: 4) } })
            for node in stage.nodes { #expect(try page("/page", node).text == "page") }
            #expect(stage.fetches("/page") <= 2)
            let before = stage.fetches("/page")
            for node in others { #expect(try page("/page", node).text == "page") }
            #expect(stage.fetches("/page") == before + 2)
        }
    }
}
