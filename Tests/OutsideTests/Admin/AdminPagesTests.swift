import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Resources and operations of the admin port")
    struct AdminPagesTests {
        private func object(_ node: NodeProcess, _ path: String) throws -> [String: Any] {
            let response = try node.connectAdmin().get(path)
            #expect(
                response.status == 200 && response["Cache-Control"] == "no-store", "\(response)")
            return try #require(response.document)
        }

        @Test("Every path of the OpenAPI description responds as described")
        func described() throws {
            let node = try NodeProcess()
            let paths = try #require(
                object(node, "/admin/v1/openapi.json")["paths"] as? [String: [String: Any]])
            #expect(paths.count > 10)
            for (path, methods) in paths {
                let target = path.replacing(/\{[a-z]+\}/, with: "x")
                // The event stream never ends.
                for (method, described) in methods
                where method == "get" && path != "/admin/v1/events" {
                    let response = try node.connectAdmin().get(target)
                    let operation = try #require(described as? [String: Any])
                    let responses = try #require(operation["responses"] as? [String: Any])
                    #expect(responses["\(response.status)"] != nil, "\(path): \(response)")
                }
                let odd = try node.connectAdmin().get(target, method: "TRACE")
                #expect(odd.status == 405 || odd.status == 501, "\(path): \(odd)")
            }
        }

        @Test(
            "The status shows the node's identity and contents, and the settings show their sources"
        )
        func status() throws {
            let stage = try DiskStage("--disk-limit", "64MiB", "--memory-limit", "32MiB")
            let image = TestImage.noise(1)
            let path = stage.origin.serve(image, fields: ["Cache-Control: max-age=100"])
            _ = try stage.get(path)
            try stage.settle()
            let status = try object(stage.node, "/admin/v1/status")
            #expect(
                status["readiness"] as? String == "ready" && status["role"] as? String == "admin")
            #expect((status["node"] as? String)?.count == 32 && status["fenced"] as? Bool == false)
            let memory = try #require(status["memory"] as? [String: Any])
            #expect(memory["entries"] as? Int == 1 && memory["limit_bytes"] as? Int == 32 << 20)
            let disk = try #require(status["disk"] as? [String: Any])
            #expect(disk["up"] as? Bool == true && disk["entries"] as? Int == 1)
            let settings = try #require(
                object(stage.node, "/admin/v1/configuration")["settings"] as? [[String: Any]])
            let limit = settings.first { $0["name"] as? String == "memory-limit" }
            #expect(limit?["values"] as? [String] == ["32MiB"])
            #expect(limit?["source"] as? String == "flag --memory-limit")
        }

        @Test(
            "A drained node owns nothing and reports it; after undraining it owns its share again"
        )
        func drain() throws {
            let stage = try ClusterStage(2)
            let node = stage.nodes[0]
            func readiness() throws -> Int { try node.connectAdmin().get("/readyz").status }
            func share() throws -> Double? {
                let rows = try object(stage.nodes[1], "/admin/v1/members")["members"]
                let row = (rows as? [[String: Any]])?.first { $0["self"] as? Bool == false }
                return row?["ring_share"] as? Double
            }
            #expect(try readiness() == 200)
            #expect(try node.connectAdmin().post("", to: "/admin/v1/drain").status == 202)
            try expectSoon { try share() == 0 && readiness() == 503 }
            #expect(try node.connectAdmin().post("", to: "/admin/v1/undrain").status == 202)
            try expectSoon { try share() ?? 0 > 0.3 && readiness() == 200 }
            // The other nodes may learn it a moment before the node itself.
            try expectSoon {
                let ring = try object(node, "/admin/v1/ring")
                return (ring["members"] as? [Any])?.count == 2
                    && (ring["strip"] as? [Int])?.count == 360
            }
        }

        @Test("Every node lists the last purges, and lag is zero once all nodes have applied them")
        func purges() throws {
            let stage = try ClusterStage(2)
            for tag in ["a", "b", "c"] {
                let receipt = try stage.nodes[0].purge("{\"tag\":\"\(tag)\"}", id: "list-\(tag)")
                #expect(receipt.isConfirmedByAll)
            }
            for node in stage.nodes {
                let list = try object(node, "/admin/v1/purges?limit=2")["purges"]
                let ids = (list as? [[String: Any]])?.map { $0["id"] as? String ?? "" }
                #expect(ids == ["list-c", "list-b"])
                // The issuing node confirms a moment later.
                try expectSoon {
                    let members = try object(node, "/admin/v1/members")["members"]
                    let lags = (members as? [[String: Any]])?.map { $0["lag_records"] as? Int }
                    return lags == [0, 0]
                }
            }
        }

        @Test("The log level is shown and can be changed at run time")
        func logLevel() throws {
            let node = try NodeProcess()
            #expect(try object(node, "/admin/v1/log-level")["level"] as? String == "info")
            let response = try node.connectAdmin().post(
                "{\"level\":\"error\"}", to: "/admin/v1/log-level", method: "PUT")
            #expect(response.status == 200)
            #expect(try object(node, "/admin/v1/log-level")["level"] as? String == "error")
            expectSoon(10) { node.lineCount(containing: "log level changed", "error") == 1 }
        }

        @Test("The entries of a URL and the decisions about them are shown until they are purged")
        func entries() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let image = TestImage.noise(4)
            let path = stage.origin.serve(
                image, fields: ["Cache-Control: max-age=1000"], etag: "\"e4\"")
            let url = ImageRequestTarget.encoded(stage.origin.url(path))
            func entry() throws -> [String: Any] {
                let document = try object(stage.node, "/admin/v1/entry?url=\(url)")
                let variants = try #require(document["variants"] as? [[String: Any]])
                #expect(variants.count == 1)
                return try #require(variants.first)
            }
            let unknown = try stage.node.connectAdmin().get("/admin/v1/entry?url=\(url)")
            #expect(unknown.status == 404 && unknown.text.contains("\"owners\":[\""))
            _ = try stage.get(path, expecting: image)
            try stage.settle()
            let first = try entry()
            #expect(first["tier"] as? String == "memory" && first["also_on_disk"] as? Bool == true)
            #expect(first["etag"] as? String == "\"e4\"" && first["verdict"] as? String == "fresh")
            #expect(first["body_bytes"] as? Int == image.bytes.count)
            try stage.restart()
            #expect(try entry()["tier"] as? String == "disk")
            let body = try stage.node.connectAdmin().get(
                "/admin/v1/entry/body?url=\(url)", expecting: image)
            #expect(body.status == 200 && body.bodyByteCount == image.bytes.count, "\(body)")
            #expect(body["Content-Security-Policy"]?.contains("sandbox") == true)
            #expect(stage.fetches(path) == 1)
            let soft = try stage.node.purge("{\"url\":\"\(stage.origin.url(path))\"}", mode: "soft")
            #expect(soft.isConfirmedByAll)
            let stale = try entry()
            #expect(stale["verdict"] as? String == "revalidate")
            #expect(try #require(stale["fresh_ms"] as? Int) <= 0)
            _ = try stage.node.purge("{\"url\":\"\(stage.origin.url(path))\"}")
            #expect(try stage.node.connectAdmin().get("/admin/v1/entry?url=\(url)").status == 404)
        }

        @Test(
            "The tags of an entry are those of its origin, without the further URLs it is found by")
        func tags() throws {
            let stage = try Stage()
            let image = TestImage.noise(6)
            let path = stage.origin.serve(
                image, fields: ["Cache-Control: max-age=1000", "Surrogate-Key: shoes summer"])
            let last = "Location: \(stage.origin.url(path))"
            stage.origin.on("/first", OriginResponse(nil, status: "302 Found", fields: [last]))
            _ = try stage.get("/first", expecting: image)
            let url = ImageRequestTarget.encoded(stage.origin.url("/first"))
            let document = try object(stage.node, "/admin/v1/entry?url=\(url)")
            let variants = try #require(document["variants"] as? [[String: Any]])
            #expect(variants.map { $0["tags"] as? [String] } == [["shoes", "summer"]])
        }

        @Test(
            "Each variant of a site's resource is shown, from memory and after a restart from disk"
        )
        func variants() throws {
            let stage = try SiteStage(keepsDisk: true)
            stage.origin.on("/it") { request in
                .text(
                    "in \(request.fields["Accept-Language"] ?? "none")",
                    fields: ["Cache-Control: max-age=1000", "Vary: Accept-Language"])
            }
            let languages = ["de", "en"]
            for language in languages {
                _ = try stage.get("/it", fields: ["Accept-Language: \(language)"])
            }
            func tiers() throws -> [String?] {
                let url = ImageRequestTarget.encoded("http://\(SiteStage.host)/it")
                let document = try object(stage.node, "/admin/v1/entry?url=\(url)")
                let variants = try #require(document["variants"] as? [[String: Any]])
                #expect(variants.allSatisfy { $0["verdict"] as? String == "fresh" })
                return variants.map { $0["tier"] as? String }
            }
            #expect(try tiers() == ["memory", "memory"])
            try stage.restart(inOrder: true)
            #expect(try tiers() == ["disk", "disk"])
            #expect(stage.origin.requests("/it").count == 2)
        }

        @Test("Each variant of an image has an identifier through which its body can be fetched")
        func bodies() throws {
            let stage = try Stage()
            let (webp, jpeg) = (
                TestImage.generated(.webp, byteCount: 900, seed: 1),
                TestImage.generated(.jpeg, byteCount: 1_900, seed: 2)
            )
            stage.origin.on("/it") { request in
                let takesWebP = request.fields["Accept"]?.contains("webp") == true
                return OriginResponse(
                    takesWebP ? webp : jpeg, fields: [lasting, "Vary: Accept"])
            }
            for accept in ["image/webp", "image/jpeg"] {
                _ = try stage.get("/it", fields: ["Accept: \(accept)"])
            }
            let url = ImageRequestTarget.encoded(stage.origin.url("/it"))
            let document = try object(stage.node, "/admin/v1/entry?url=\(url)")
            let variants = try #require(document["variants"] as? [[String: Any]])
            #expect(variants.count == 2)
            for variant in variants {
                let name = try #require(variant["variant"] as? String)
                let body = try stage.node.connectAdmin().get(
                    "/admin/v1/entry/body?url=\(url)&variant=\(name)")
                #expect(body["Content-Type"] == variant["content_type"] as? String)
                #expect(body.bodyByteCount == variant["body_bytes"] as? Int)
            }
            let other = try stage.node.connectAdmin().get(
                "/admin/v1/entry/body?url=\(url)&variant=f00d")
            #expect(other.status == 404)
        }

        @Test("The dashboard is one self-contained page protected by a content security policy")
        func dashboard() throws {
            let node = try NodeProcess()
            let response = try node.connectAdmin().get("/")
            let page = String(decoding: response.body ?? [], as: UTF8.self)
            #expect(
                response.status == 200 && response["Content-Type"] == "text/html; charset=utf-8")
            let policy = try #require(response["Content-Security-Policy"])
            #expect(policy.hasPrefix("default-src 'none'; ") && !policy.contains("unsafe"))
            for (name, start, end) in [
                ("script-src", "<script type=\"module\">", "</script>"),
                ("style-src", "<style>", "</style>"),
            ] {
                let pieces = page.components(separatedBy: start)
                try #require(pieces.count == 2, "\(start)")
                let content = pieces[1].components(separatedBy: end)[0]
                #expect(policy.contains("\(name) 'sha256-\(try digest(content))'"))
            }
            // The page loads nothing from this host or any other.
            for word in ["src=", "@import", "url(http", "href=\"http", "<link rel=\"style"] {
                #expect(!page.contains(word), "\(word)")
            }
        }

        /// Returns the base64 of the SHA-256 as computed by openssl(1).
        private func digest(_ text: String) throws -> String {
            let folder = try TemporaryFolder()
            let file = try folder.write(text, to: "content")
            let made = try Program.run(
                try Program.find("openssl"), ["dgst", "-sha256", "-binary", file.path])
            return made.output.base64EncodedString()
        }

        @Test("The most requested entries are listed first")
        func hot() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            for number in 1...3 {
                let path = stage.origin.serve(
                    .noise(number), fields: ["Cache-Control: max-age=1000"])
                for _ in 0..<(5 * number) { _ = try stage.get(path) }
            }
            let list = try object(stage.node, "/admin/v1/hot?limit=2")["entries"]
            let urls = (list as? [[String: Any]])?.map { $0["url"] as? String }
            #expect(
                urls == [3, 2].map { stage.origin.url("/" + TestImage.noise($0).name) },
                "\(String(describing: list))")
        }

        @Test("Statistics are sent as they change, until the client disconnects")
        func events() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let path = stage.origin.serve(.noise(1), fields: ["Cache-Control: max-age=1000"])
            let url = "http://127.0.0.1:\(stage.node.adminPort)/admin/v1/events?interval_ms=250"
            let watcher = try Program(try Program.find("curl"), ["-sN", "-i", url])
            func received(_ words: String) -> Bool {
                String(decoding: watcher.output, as: UTF8.self).contains(words)
            }
            expectSoon(20) { received("\"origin\":0") }
            _ = try stage.get(path)
            for _ in 0..<3 { _ = try stage.get(path) }
            expectSoon(20) { received("\"requests\":{\"memory\":3,") }
            #expect(
                received("Content-Type: text/event-stream")
                    && received("event: statistics\ndata: {"))
            watcher.kill()
            #expect(try stage.node.connectAdmin().get("/readyz").status == 200)
            stage.stop(gently: true)
        }
    }
}
