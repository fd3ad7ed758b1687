import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A site served by a cluster")
    struct ClusterSiteTests {
        private static let host = "a.example"

        private func page(
            _ path: String, _ node: NodeProcess, method: String = "GET", _ fields: String...
        ) throws -> Response {
            try node.get(path, method: method, host: Self.host, fields: fields)
        }

        @Test("One fetch and one revalidation serve all nodes")
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

        @Test("Each variant is fetched once, whichever node receives the request")
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
                        let response = try page("/page", node, "Accept-Language: \(language)")
                        #expect(response.text == "in \(language)", "\(response)")
                    }
                }
            }
            #expect(stage.fetches("/page") == 3)
        }

        @Test("A thousand clients at five nodes request a cold page in three variants")
        func crowd() throws {
            let stage = try ClusterStage(5, site: Self.host)
            stage.origin.on("/page") { request in
                let language = request.fields["Accept-Language"] ?? "-"
                return .text(
                    "in \(language)",
                    fields: [lasting, "Vary: Accept-Language", "Content-Language: \(language)"])
            }
            let languages = ["de", "en", "fr"]
            let plans = (0..<200).map { number in
                SwarmClientPlan(
                    "/page", host: Self.host,
                    fields: ["Accept-Language: \(languages[number % 3])"])
            }
            let crowds = stage.nodes.map { ClientSwarm(port: $0.port, plans) }
            for crowd in crowds {
                let responses = crowd.responses()
                let wrong = responses.indices.filter { number in
                    responses[number]["Content-Language"] != languages[number % 3]
                }
                #expect(wrong.isEmpty, "\(wrong.prefix(3).map { responses[$0] })")
            }
            #expect(stage.fetches("/page") == 3)
        }

        @Test(
            "A response for one client goes to that client after exactly one fetch",
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
                    let response = try page("/page", node, "Cookie: \(user)")
                    #expect(response.text == "for \(user)" && !response.isHit, "\(response)")
                    asked += 1
                    #expect(stage.fetches("/page") == asked, "\(response)")
                }
            }
        }

        @Test("A change and a purge through one node are visible at all nodes")
        func changed() throws {
            let stage = try ClusterStage(3, site: Self.host)
            let version = LockedBox(1)
            stage.origin.on("/page") { request in
                if request.method == "POST" { version.change { $0 += 1 } }
                return .text("version \(version.value)", fields: [lasting])
            }
            for node in stage.nodes { #expect(try page("/page", node).text == "version 1") }
            #expect(try page("/page", stage.nodes[1], method: "POST").status == 200)
            #expect(try page("/page", stage.nodes[1]).text == "version 2")
            for node in stage.nodes {
                try expectSoon { try page("/page", node).text == "version 2" }
            }
            version.value = 3
            let purge = "{\"url\":\"http://\(Self.host)/page\"}"
            #expect(try stage.nodes[2].purge(purge).isConfirmedByAll)
            for node in stage.nodes { #expect(try page("/page", node).text == "version 3") }
        }

        @Test(
            "Nodes with different settings, or with sharing off, fetch for themselves and report it"
        )
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
                    stage.clusterFlags(peerPort: ReservedPort.forProcess()) + [
                        "--config", stage.directory.appending(path: "\(name).yaml").path,
                    ])
            }
            defer { for node in others { node.kill() } }
            let all = stage.nodes + others
            expectSoon { all.allSatisfy { $0.isCurrent(among: 4) } }
            for node in stage.nodes { #expect(try page("/page", node).text == "page") }
            #expect(stage.fetches("/page") <= 2)
            let before = stage.fetches("/page")
            for node in others { #expect(try page("/page", node).text == "page") }
            #expect(stage.fetches("/page") == before + 2)
        }

        @Test("Users never receive each other's pages, whichever node serves them")
        func users() throws {
            let stage = try ClusterStage(3, site: Self.host)
            let kinds = [
                [lasting], ["Cache-Control: private, max-age=60"], [lasting, "Vary: Cookie"],
                ["Cache-Control: no-store"], [lasting, "Set-Cookie: a=b"], [],
                ["Cache-Control: max-age=0", "Vary: Cookie, Accept-Language"],
                ["Cache-Control: no-cache, private=\"X-Own\"", "ETag: \"1\""],
            ]
            for (number, fields) in kinds.enumerated() {
                stage.origin.on("/\(number)") { request in
                    let user = request.fields["Cookie"] ?? "nobody"
                    // The shared response does not depend on the user.
                    let text = number == 0 ? "all" : "\(user) \(number)"
                    return .text(text, fields: fields + ["X-Own: \(user)"])
                }
            }
            var dice = SeededDice(27)
            let isLong = ProcessInfo.processInfo.environment["NUTHATCH_LONG"] == "1"
            let clients = try stage.nodes.map { try $0.connect() }
            for number in 0..<(isLong ? 100_000 : 3_000) {
                let kind = Int.random(in: kinds.indices, using: &dice)
                let user = "user=\(Int.random(in: 0..<5, using: &dice))"
                let language = ["de", "en"].randomElement(using: &dice) ?? ""
                let index = Int.random(in: 0..<3, using: &dice)
                let response = try clients[index].get(
                    "/\(kind)", host: Self.host,
                    fields: ["Cookie: \(user)", "Accept-Language: \(language)"])
                let expected = kind == 0 ? "all" : "\(user) \(kind)"
                #expect(
                    response.text == expected,
                    "\(number): \(user) at \(index), \(kind): \(response)")
                if kind != 0 {
                    #expect(response.fields.all("X-Own") == [user], "\(number): \(response)")
                }
            }
        }

        @Test("A range is served from a complete copy in the cluster, otherwise fetched as a range")
        func parts() throws {
            let stage = try ClusterStage(3, site: Self.host)
            let image = TestImage.generated(.jpeg, byteCount: 6_000_000, seed: 912)
            let path = stage.origin.serve(image, fields: [lasting])
            let cold = try page(path, stage.nodes[0], "Range: bytes=100-199")
            #expect(cold.status == 206 && cold.bodyByteCount == 100, "\(cold)")
            #expect(stage.origin.requests(path).first?.fields["Range"] == "bytes=100-199")
            let whole = try stage.nodes[0].get(path, host: Self.host, expecting: image)
            #expect(whole.matches(image), "\(whole)")
            let before = stage.fetches(path)
            for node in stage.nodes {
                let response = try page(path, node, "Range: bytes=5-14")
                #expect(response.status == 206 && response.bodyByteCount == 10, "\(response)")
            }
            #expect(stage.fetches(path) == before)
        }

        @Test("Pages and their variants are handed off to their owners")
        func handedOver() throws {
            let stage = try ClusterStage(3, "--disk-limit", "64MiB", site: Self.host)
            let languages = ["de", "en"]
            for number in 0..<12 {
                stage.origin.on("/\(number)", .text("page \(number)", fields: [lasting]))
                stage.origin.on("/in/\(number)") { request in
                    .text(
                        "\(number) in \(request.fields["Accept-Language"] ?? "-")",
                        fields: [lasting, "Vary: Accept-Language"])
                }
            }
            func expectAll(from nodes: [NodeProcess]) throws {
                for number in 0..<12 {
                    for node in nodes {
                        #expect(try page("/\(number)", node).text == "page \(number)")
                        for language in languages {
                            let response = try page(
                                "/in/\(number)", node, "Accept-Language: \(language)")
                            #expect(response.text == "\(number) in \(language)", "\(response)")
                        }
                    }
                }
                let fetches = (0..<12).map { (stage.fetches("/\($0)"), stage.fetches("/in/\($0)")) }
                #expect(fetches.allSatisfy { $0 == (1, 2) }, "\(fetches)")
            }
            // Each page is one entry and each varying page two plus its Vary record, on two nodes.
            func isGiven(_ nodes: [NodeProcess]) -> Bool {
                Deadline.seconds(60).waitUntil { nodes.reduce(0) { $0 + $1.diskEntries } == 96 }
            }
            for number in 0..<12 {
                #expect(try page("/\(number)", stage.nodes[number % 3]).status == 200)
                for (index, language) in languages.enumerated() {
                    let node = stage.nodes[(number + index) % 3]
                    let response = try page("/in/\(number)", node, "Accept-Language: \(language)")
                    #expect(response.status == 200)
                }
            }
            #expect(isGiven(stage.nodes), "\(stage.nodes.map(\.diskEntries))")
            stage.nodes[2].kill()
            let rest = Array(stage.nodes.prefix(2))
            try expectAll(from: rest)
            try stage.settle(rest)
            // Both remaining nodes keep everything, so the death of a second one loses nothing.
            #expect(isGiven(rest), "\(rest.map(\.diskEntries))")
            try stage.restart(0)
            try stage.settle(Array(stage.nodes.prefix(2)))
            try expectAll(from: Array(stage.nodes.prefix(2)))
        }

        @Test("No node serves a response that the origin has withdrawn, even if it fails later")
        func withdrawn() throws {
            let stage = try ClusterStage(3, site: Self.host, settings: "grace: 1h")
            let fields = ["Cache-Control: max-age=0", "ETag: \"1\""]
            for number in 0..<6 {
                let path = "/\(number)"
                stage.origin.on(path, .text("page", fields: fields))
                for node in stage.nodes {
                    #expect(try page(path, node).text == "page")
                    try expectSoon { try page(path, node).cacheStatus["fwd"] == "stale" }
                }
                stage.origin.on(path, .text("no", status: "403 Forbidden"))
                for node in stage.nodes { #expect(try page(path, node).status == 403) }
                stage.origin.on(path, .text("fails", status: "503 Service Unavailable"))
                for node in stage.nodes {
                    let response = try page(path, node)
                    #expect(response.status == 503, "\(response)")
                }
            }
        }

        @Test("Concurrent requests are served by one fetch, even if it has client-specific fields")
        func ownFields() throws {
            let stage = try ClusterStage(3, site: Self.host)
            // Two thirds of them belong to other owners.
            for path in (0..<8).map({ "/\($0)" }) {
                let gate = Gate()
                let fields = ["Cache-Control: max-age=60, private=\"X-User\"", "X-User: one"]
                stage.origin.on(path, .text("page", fields: fields).delayingHead(.gate(gate)))
                let swarm = ClientSwarm(
                    port: stage.nodes[0].port, count: 10, SwarmClientPlan(path, host: Self.host))
                #expect(gate.waitForArrivals(1) && swarm.waitForConnections())
                gate.open()
                let responses = swarm.responses()
                #expect(responses.count == 10)
                #expect(responses.allSatisfy { $0.status == 200 && $0.bodyByteCount == 4 })
                #expect(responses.count { $0["X-User"] != nil } <= 1)
                #expect(stage.fetches(path) == 1)
            }
        }

        @Test("An owner that dies loses no response, and stale responses replace a failing origin")
        func failures() throws {
            let stage = try ClusterStage(3, site: Self.host, settings: "grace: 1h")
            let fields = ["Cache-Control: max-age=0", "ETag: \"1\""]
            for number in 0..<12 {
                stage.origin.on("/\(number)", .text("page \(number)", fields: fields))
                for node in stage.nodes {
                    #expect(try page("/\(number)", node).text == "page \(number)")
                }
            }
            for number in 0..<12 {
                stage.origin.on(
                    "/\(number)", OriginResponse(nil, status: "503 Service Unavailable"))
            }
            stage.nodes[2].kill()
            for number in 0..<12 {
                for node in stage.nodes.prefix(2) {
                    let response = try page("/\(number)", node)
                    #expect(response.text == "page \(number)", "\(response)")
                }
            }
        }
    }
}
