import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The PURGE method on the data port")
    struct PurgeMethodTests {
        private static let site = "a.example"
        private static let token = "0123456789abcdef.ours"
        private let old = TestImage.generated(.png, byteCount: 20_000, seed: 821)
        private let new = TestImage.generated(.png, byteCount: 21_000, seed: 822)

        /// Starts two nodes with a site, of which the second permits PURGE to every client.
        private func stage() throws -> (ClusterStage, LockedBox<Bool>) {
            let stage = try ClusterStage(
                2, "--purge-from", "127.0.0.0/8", "--allow-origin", "*", site: Self.site)
            let isEdited = stage.origin.serve(
                old, then: new, at: ["/it", "/a/it", "/ab"],
                fields: [lasting, "Surrogate-Key: shoes hats"])
            return (stage, isEdited)
        }

        private func purge(
            _ node: NodeProcess, _ target: String, host: String = PurgeMethodTests.site,
            fields: [String] = ["Nuthatch-Purge-Wait: all"]
        ) throws -> PurgeReceipt {
            try PurgeReceipt(node.get(target, method: "PURGE", host: host, fields: fields))
        }

        private func get(
            _ stage: ClusterStage, _ path: String, from index: Int, _ image: TestImage
        ) throws -> Bool {
            try stage.nodes[index].get(path, host: Self.site, expecting: image).matches(image)
        }

        @Test("Without permission a site returns 403, anything else 405, and nothing is purged")
        func nobody() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", .text("it", fields: [lasting]))
            #expect(try stage.get("/it").text == "it")
            expectProblem(try stage.get("/it", method: "PURGE"), 403, named: "purge-not-allowed")
            for target in ["/v1/image?url=\(stage.origin.url("/it"))", "/nothing", "/healthz"] {
                let response = try stage.node.get(target, method: "PURGE")
                expectProblem(response, 405, named: "purge-not-configured")
                #expect(response["Allow"] == "GET, HEAD")
            }
            #expect(try stage.get("/it").isHit)
            #expect(stage.fetches("/it") == 1)
            #expect(stage.node.metric("nuthatch_purges_refused_total") == 4)
        }

        @Test("An allowed address may purge, whatever address the fields name")
        func networks() throws {
            let stage = try SiteStage("--purge-from", "127.0.0.2/32")
            stage.origin.on("/it", .text("it", fields: [lasting]))
            func purge(from address: String?, _ fields: [String] = []) throws -> Response {
                try HTTPConnection(port: stage.node.port, from: address)
                    .get("/it", method: "PURGE", host: SiteStage.host, fields: fields)
            }
            #expect(try stage.get("/it").text == "it")
            for fields in [[], ["X-Forwarded-For: 127.0.0.2", "Forwarded: for=127.0.0.2"]] {
                let response = try purge(from: nil, fields)
                expectProblem(response, 403, named: "purge-not-allowed")
                #expect(response.text.contains("127.0.0.1") && response["WWW-Authenticate"] == nil)
            }
            #expect(try stage.get("/it").isHit)
            let response = try purge(from: "127.0.0.2", ["X-Forwarded-For: 127.0.0.1"])
            #expect(response.status == 200 && response["Location"] == nil)
            #expect(try stage.get("/it").isHit == false)
            #expect(stage.fetches("/it") == 2)
            #expect(stage.origin.requests("/it").allSatisfy { $0.method == "GET" })
        }

        @Test("Behind a trusted proxy the address that it names decides, not its own")
        func proxied() throws {
            let stage = try SiteStage(
                "--trusted-proxy", "127.0.0.3", "--purge-from", "192.0.2.0/24", "--purge-from",
                "127.0.0.3")
            stage.origin.on("/it", .text("it", fields: [lasting]))
            func purge(for client: String) throws -> Int {
                let connection = try HTTPConnection(port: stage.node.port, from: "127.0.0.3")
                let request = HTTPConnection.request("/it", method: "PURGE", host: SiteStage.host)
                let line = "PROXY TCP4 \(client) 192.0.2.8 4321 80\r\n"
                try connection.socket.send(Array(line.utf8) + request)
                return connection.readResponse().status
            }
            #expect(try purge(for: "198.51.100.7") == 403)
            #expect(try purge(for: "192.0.2.7") == 200)
        }

        @Test("A token permits PURGE from any address until it is removed from its file")
        func tokens() throws {
            let folder = try TemporaryFolder()
            let other = "fedcba9876543210"
            let file = try folder.write("# ours\n\(Self.token)\n\(other)\n", to: "tokens")
            let stage = try SettingsStage(opened, "--purge-token-file", file.path)
            func purge(_ token: String?) throws -> Response {
                let fields = token.map { ["Authorization: Bearer \($0)"] } ?? []
                return try stage.node.get(
                    stage.target("/it"), method: "PURGE", fields: fields)
            }
            let asked = try purge(nil)
            expectProblem(asked, 401, named: "purge-not-allowed")
            #expect(asked["WWW-Authenticate"] == "Bearer realm=\"purge\"")
            expectProblem(try purge(Self.token + "x"), 403, named: "purge-not-allowed")
            #expect(try purge(Self.token).status == 200 && purge(other).status == 200)
            try Data("\(other)\n".utf8).write(to: file, options: .atomic)
            try stage.change(opened)
            #expect(try purge(Self.token).status == 403 && purge(other).status == 200)
            #expect(!stage.node.output.contains(other) && !stage.node.output.contains(Self.token))
        }

        @Test(
            "A PURGE at one node covers all nodes, and its receipt says so",
            arguments: ["h1", "h2"])
        func everywhere(carriage: String) throws {
            let (stage, isEdited) = try stage()
            for index in 0..<2 { #expect(try get(stage, "/it", from: index, old)) }
            isEdited.value = true
            if carriage == "h2" {
                let client = try HTTP2Client(port: stage.nodes[1].port)
                let stream = client.nextStreamID()
                try client.send(
                    .request(
                        stream, "/it", method: "PURGE", host: Self.site,
                        fields: [("nuthatch-purge-wait", "all")]))
                let response = try client.response(on: stream)
                #expect(response.status == 200 && response.isWhole)
                #expect(String(decoding: response.body, as: UTF8.self).contains("\"receipt\":"))
            } else {
                let receipt = try purge(stage.nodes[1], "/it")
                #expect(receipt.status == 200 && receipt.isConfirmedByAll, "\(receipt)")
                #expect(receipt.members.count == 2)
                try expectSoon { try stage.nodes[0].receipt(receipt.name).isConfirmedByAll }
            }
            for index in 0..<2 { #expect(try get(stage, "/it", from: index, new)) }
            #expect(stage.origin.requests("/it").allSatisfy { !$0.isConditional })
        }

        @Test("Soft, by path prefix, by tag, and of an image at its own URL")
        func conventions() throws {
            let (stage, isEdited) = try stage()
            let (first, second) = (stage.nodes[0], stage.nodes[1])
            let all = "Nuthatch-Purge-Wait: all"
            for path in ["/it", "/a/it", "/ab"] { #expect(try get(stage, path, from: 0, old)) }
            #expect(try purge(second, "/it", fields: ["Fastly-Soft-Purge: 1", all]).status == 200)
            #expect(try get(stage, "/it", from: 0, old))
            #expect(stage.origin.requests("/it").map(\.isConditional) == [false, true])
            isEdited.value = true
            #expect(try purge(second, "/a/*").status == 200)
            #expect(try get(stage, "/a/it", from: 0, new))
            #expect(try get(stage, "/ab", from: 0, old) && get(stage, "/it", from: 0, old))
            #expect(try purge(second, "/none", fields: ["Surrogate-Key: hats", all]).status == 200)
            #expect(try get(stage, "/ab", from: 0, new) && get(stage, "/it", from: 0, new))
            isEdited.value = false
            #expect(try stage.get("/it", from: 0, expecting: old).matches(old))
            isEdited.value = true
            #expect(try purge(second, stage.target("/it"), host: "localhost").status == 200)
            #expect(try stage.get("/it", from: 0, expecting: new).matches(new))
            for fields in [["Fastly-Soft-Purge: yes"], ["Nuthatch-Purge-Wait: long"]] {
                let response = try first.get(
                    "/it", method: "PURGE", host: Self.site, fields: fields)
                expectProblem(response, 400, named: "purge-invalid")
            }
        }

        @Test("BAN purges by tag, by expression and by host, and no origin receives it")
        func bans() throws {
            let stage = try SiteStage("--purge-from", "127.0.0.1")
            let number = LockedBox(0)
            let paths = ["/node/1", "/list", "/other"]
            for (path, keys) in zip(paths, ["node:1 rendered", "node:1 node_list", "config:x.y"]) {
                stage.origin.on(path) { _ in
                    number.change { $0 += 1 }
                    return .text("\(number.value)", fields: [lasting, "Surrogate-Key: \(keys)"])
                }
            }
            func hits() throws -> [Bool] { try paths.map { try stage.get($0).isHit } }
            func ban(_ target: String, _ fields: String...) throws -> Int {
                try stage.get(target, method: "BAN", fields: fields).status
            }
            #expect(try hits() == [false, false, false] && hits() == [true, true, true])
            #expect(try ban("/tags", "Cache-Tags: node_list|config:x.y") == 200)
            #expect(try hits() == [true, false, false])
            #expect(try ban("/", #"X-Cache-Tags: (^|,)(node\:1)(,|$)"#) == 200)
            #expect(try hits() == [false, false, true])
            #expect(try ban("/", "Cache-Tags: node:.*") == 400)
            #expect(try hits() == [true, true, true])
            #expect(try ban("/.*") == 200)
            #expect(try hits() == [false, false, false])
            #expect(
                paths.allSatisfy { stage.origin.requests($0).allSatisfy { $0.method == "GET" } })
            #expect(stage.fetches("/tags") == 0)
            let closed = try SiteStage()
            closed.origin.on("/it", .text("it"))
            expectProblem(
                try closed.get("/it", method: "BAN"), 403, named: "purge-not-allowed")
            #expect(closed.fetches("/it") == 0)
        }

        @Test("PURGE covers the same key as a GET of the same target")
        func sameNames() throws {
            let stage = try SettingsStage(
                opened, "--purge-from", "127.0.0.1")
            try stage.change(
                opened + """
                    sites:
                      \(Self.site): {origin: "\(stage.origin.url(""))", ignore-query: [utm_*]}
                      "*": {origin: "\(stage.origin.url("/other"))"}
                    """)
            let number = LockedBox(0)
            let response = { @Sendable (_: OriginRequest) -> OriginResponse in
                number.change { $0 += 1 }
                return .text("\(number.value)", fields: [lasting])
            }
            for path in ["/it", "/%7Eit", "/%zz", "/other/it"] { stage.origin.on(path, response) }
            func text(_ target: String, _ host: String) throws -> String {
                try stage.node.get(target, host: host).text
            }
            for (asked, purged, host) in [
                ("/it?utm_x=1", "/it?utm_y=2", Self.site), ("/%7Eit", "/%7Eit", "A.Example:8080"),
                ("/%7Eit", "/~it", Self.site), ("/%zz", "/%zz", Self.site),
                ("/it", "/it", "under_score.example"),
            ] {
                let before = try text(asked, host)
                #expect(try text(asked, host) == before)
                #expect(try purge(stage.node, purged, host: host).status == 200)
                #expect(try text(asked, host) != before, "\(asked)")
            }
        }

        @Test("PURGE of a signed site accepts the URL with its signature and without")
        func signed() throws {
            let stage = try SignedStage(site: "", flags: ["--purge-from", "127.0.0.1"])
            stage.origin.on("/it", .text("it", fields: [lasting]))
            let signed = try stage.sign("--site", SignedStage.site, "/it")
            for (count, target) in zip([2, 3], ["/it", signed]) {
                #expect(try stage.getSite(signed).text == "it")
                #expect(try stage.getSite(target, method: "PURGE").status == 200)
                #expect(try stage.getSite(signed).text == "it")
                #expect(stage.origin.requests("/it").count == count)
            }
        }

        @Test("The body of a PURGE is not read as a request")
        func body() throws {
            let stage = try SiteStage("--purge-from", "127.0.0.1")
            let hidden = HTTPConnection.request("/hidden", host: SiteStage.host)
            let connection = try stage.node.connect()
            let head = HTTPConnection.request(
                "/it", method: "PURGE", host: SiteStage.host,
                fields: ["Content-Length: \(hidden.count)"])
            try connection.socket.send(head + hidden)
            let response = connection.readResponse()
            #expect(response.status == 200 && response["Connection"] == "close")
            #expect(connection.waitForEnd() != .timedOut)
            #expect(stage.fetches("/hidden") == 0)
        }
    }
}
