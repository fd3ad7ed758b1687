import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Images have settings like a site, and per-origin settings")
    struct ImageSettingsTests {
        private let lastingControl = String(lasting.dropFirst("Cache-Control: ".count))
        private let image = TestImage.generated(.png, byteCount: 9_000, seed: 471)

        @Test("Configured request fields are sent to the image's origin, and to no redirect target")
        func requestFields() throws {
            let stage = try SettingsStage(opened)
            try stage.change(
                opened + "images:\n  origins:\n    127.0.0.1:\(stage.origin.port):\n"
                    + "      set-request-fields: {X-Key: secret, User-Agent: ours}\n"
                    + "      remove-request-fields: [Accept-Encoding, X-Request-Id]\n")
            let other = try ScriptedOrigin()
            let redirect = { (url: String) in
                OriginResponse(
                    nil, status: "302 Found", fields: ["Location: \(url)", "Content-Length: 0"])
            }
            stage.origin.on("/it", redirect(stage.origin.url("/there")))
            stage.origin.on("/there", redirect(other.url("/elsewhere")))
            other.on("/elsewhere", OriginResponse(image, fields: [lasting]))
            #expect(try stage.get("/it", fields: ["Accept: image/webp"]).matches(image))
            for path in ["/it", "/there"] {
                let fields = try #require(stage.origin.requests(path).first).fields
                #expect(fields["X-Key"] == "secret" && fields["User-Agent"] == "ours")
                #expect(fields["Accept"]?.contains("image/webp") == true)
                #expect(fields["Accept-Encoding"] == "identity" && fields["X-Request-Id"] == nil)
            }
            let fields = try #require(other.requests("/elsewhere").first).fields
            #expect(fields["X-Key"] == nil && fields["User-Agent"]?.hasPrefix("nuthatch") == true)
            #expect(fields["Accept"]?.contains("image/webp") == true)
        }

        @Test("A field value from a file is sent from the start, and a removed field is not")
        func fieldFiles() throws {
            let origin = try ScriptedOrigin()
            origin.on("/it", OriginResponse(image, fields: [lasting]))
            let folder = try TemporaryFolder()
            let secret = try folder.write("from a file\n", to: "key")
            let stage = try SettingsStage(
                opened + "images:\n  origins:\n    127.0.0.1:\(origin.port):\n"
                    + "      set-request-fields: {X-Key: {file: \(secret.path)}}\n"
                    + "      remove-request-fields: [User-Agent]\n")
            let response = try stage.node.get(
                ImageRequestTarget.forURL(origin.url("/it")), expecting: image)
            #expect(response.matches(image))
            let fields = try #require(origin.requests("/it").first).fields
            #expect(fields["X-Key"] == "from a file" && fields["User-Agent"] == nil)
        }

        @Test(
            "Configured response fields apply to clients only, also after a 304")
        func responseFields() throws {
            let stage = try SettingsStage(
                opened + "images: {client-ttl: 60s, set-response-fields: {X-From: us}, "
                    + "remove-response-fields: [Content-Language]}\n")
            stage.origin.on("/it") { [image] request in
                let fields = ["Cache-Control: max-age=1", "Content-Language: de", "ETag: \"a\""]
                return request.isConditional
                    ? .notModified(["ETag: \"a\"", "Cache-Control: max-age=7200"])
                    : OriginResponse(image, fields: fields)
            }
            func expectOurs(_ response: Response) {
                #expect(response.matches(image) && response["Cache-Control"] == "max-age=60")
                #expect(response["X-From"] == "us" && response["Content-Language"] == nil)
                #expect(response["X-Content-Type-Options"] == "nosniff")
            }
            expectOurs(try stage.get("/it"))
            var response = try stage.get("/it")
            let isValidated = try Deadline.seconds(30).waitUntil {
                if response.isHit { response = try stage.get("/it") }
                return !response.isHit
            }
            #expect(isValidated && response.cacheStatus["fwd-status"] == "304", "\(response)")
            expectOurs(response)
            let hit = try stage.get("/it")
            expectOurs(hit)
            #expect(hit.isHit && (Int(hit.cacheStatus["ttl"] ?? "") ?? 0) > 7_000, "\(hit)")
        }

        @Test("Per-origin settings apply only to that origin, and change live")
        func origins() throws {
            let stage = try SettingsStage(opened)
            let other = try ScriptedOrigin()
            let block = { (ttl: String) in
                opened + "images:\n  default-ttl: 1h\n  origins:\n"
                    + "    127.0.0.1:\(other.port): {default-ttl: \(ttl)}\n"
            }
            try stage.change(block("2h"))
            stage.origin.on("/it", OriginResponse(image))
            for path in ["/it", "/again"] { other.on(path, OriginResponse(image)) }
            func ttl(_ url: String) throws -> Int {
                let response = try stage.node.get(ImageRequestTarget.forURL(url), expecting: image)
                #expect(response.matches(image))
                return Int(response.cacheStatus["ttl"] ?? "") ?? 0
            }
            #expect(try 3_590...3_600 ~= ttl(stage.origin.url("/it")))
            #expect(try 7_190...7_200 ~= ttl(other.url("/it")))
            try stage.change(block("3h"))
            #expect(try 10_790...10_800 ~= ttl(other.url("/again")))
        }

        @Test("Images use no more memory than their share")
        func memoryShare() throws {
            let stage = try SettingsStage(
                opened + "memory-limit: 64MiB\nimages: {memory-share: 10%}\n")
            for number in 0..<100 {
                let image = TestImage.generated(.png, byteCount: 200_000, seed: UInt64(number))
                let path = stage.origin.serve(image, fields: [lasting])
                let target = stage.target(path)
                #expect(try stage.node.get(target, expecting: image).matches(image))
            }
            let used = try #require(stage.node.metric("nuthatch_memory_used_bytes"))
            #expect(used > 3e6 && used < 8e6, "\(used)")
        }

        @Test("Images use no more disk than their share")
        func diskShare() throws {
            let folder = try TemporaryFolder()
            let stage = try SettingsStage(
                opened + "disk-limit: 64MiB\ncache-dir: \(folder.path)\n"
                    + "images: {disk-share: 10%}\n")
            for number in 0..<100 {
                let image = TestImage.generated(.png, byteCount: 200_000, seed: UInt64(number))
                let target = stage.target(stage.origin.serve(image, fields: [lasting]))
                #expect(try stage.node.get(target, expecting: image).matches(image))
            }
            expectSoon {
                stage.node.metric("nuthatch_disk_queued_bytes") == 0
                    && stage.node.metric("nuthatch_fills_in_flight") == 0
            }
            let entries = try #require(stage.node.metric("nuthatch_disk_entries"))
            #expect(entries > 10 && entries < 40, "\(entries)")
        }

        @Test("A node with different image settings fetches for itself and reports it")
        func differing() throws {
            let stage = try ClusterStage(2, keepsOnDisk: false)
            try stage.write("images: {client-ttl: 5m}\n", to: "other.yaml")
            let other = try NodeProcess(
                stage.clusterFlags(peerPort: ReservedPort.forProcess()) + [
                    "--config", stage.directory.appending(path: "other.yaml").path,
                ])
            defer { other.kill() }
            let all = stage.nodes + [other]
            expectSoon { all.allSatisfy { $0.isCurrent(among: 3) } }
            for number in 0..<6 {
                stage.origin.on("/\(number)", OriginResponse(image, fields: [lasting]))
                for node in all {
                    let response = try node.get(stage.target("/\(number)"), expecting: image)
                    let wanted = node === other ? "max-age=300" : lastingControl
                    #expect(
                        response.matches(image) && response["Cache-Control"] == wanted,
                        "\(response)")
                }
                #expect(2...3 ~= stage.fetches("/\(number)"))
            }
            #expect(all.contains { $0.lineCount(containing: "a peer has different settings") > 0 })
        }

        @Test("Nodes with sharing disabled fetch for themselves")
        func alone() throws {
            let stage = try ClusterStage(3, settings: "images: {cluster: off}\n")
            stage.origin.on("/it", OriginResponse(image, fields: [lasting]))
            try stage.expectAll("/it", image)
            #expect(stage.fetches("/it") == 3)
        }
    }
}
