import Harness
import Testing

extension Outside {
    @Suite("Disk entries survive the process")
    struct RestartTests {
        @Test("Every image is identical from origin, memory, and disk after a kill, by one fetch")
        func threeWays() throws {
            let stage = try DiskStage("--disk-limit", "4GiB")
            for image in ImageCorpus.all {
                let path = stage.origin.serve(image, fields: [lasting])
                #expect(try stage.get(path, expecting: image).matches(image), "\(image) cold")
                let hit = try stage.get(path, expecting: image)
                #expect(hit.matches(image) && hit.detail == "memory", "\(image): \(hit)")
            }
            try stage.settle()
            try stage.restart()
            for image in ImageCorpus.all {
                let path = "/" + image.name
                let found = try stage.get(path, expecting: image)
                #expect(found.matches(image), "\(image) after the kill: \(found)")
                #expect(found.isHit && found.detail == "disk", "\(found)")
                let promoted = try stage.get(path, expecting: image)
                #expect(promoted.matches(image) && promoted.detail == "memory", "\(promoted)")
                #expect(stage.fetches(path) == 1, "\(image)")
            }
        }

        @Test("Starts that are killed at once lose no image")
        func earlyKills() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let images = (0..<5).map(TestImage.noise)
            let paths = images.map { stage.origin.serve($0, fields: [lasting]) }
            for path in paths { _ = try stage.get(path) }
            try stage.settle()
            stage.stop(gently: true)
            for _ in 0..<5 { try stage.startAndKill() }
            try stage.restart()
            for (path, image) in zip(paths, images) {
                let found = try stage.get(path, expecting: image)
                #expect(found.matches(image) && found.detail == "disk", "\(found)")
                #expect(stage.fetches(path) == 1, "\(stage.node.output)")
            }
            #expect(stage.said("invalidation journal") == 0, "\(stage.node.output)")
        }

        @Test("Fields, validators, ranges and age of a response are the same after a restart")
        func responses() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let image = TestImage.generated(.png, byteCount: 300_000, seed: 31)
            let path = stage.origin.serve(
                image, fields: [lasting, "Age: 100", "Content-Language: de"], etag: "\"a\"",
                lastModified: "Sun, 06 Nov 1994 08:49:37 GMT")
            _ = try stage.get(path)
            let before = try stage.get(path)
            try stage.settle()
            try stage.restart(gently: true)
            let target = ImageRequestTarget.forURL(stage.origin.url(path))
            let head = try stage.node.get(target, method: "HEAD")
            #expect(head.detail == "disk" && head.bodyByteCount == 0 && head.isWhole)
            let own: Set = ["age", "date", "cache-status", "x-request-id"]
            let plain = { (response: Response) in
                response.fields.lines.filter { !own.contains($0.name.lowercased()) }
            }
            #expect(plain(head) == plain(before))
            let age = try #require(head["Age"].flatMap { Int($0) })
            #expect((100...160).contains(age), "\(head)")
            try stage.restart()
            let part = try stage.node.get(target, fields: ["Range: bytes=65530-65545"])
            #expect(part.status == 206 && part.detail == "disk", "\(part)")
            #expect(part.body.map { Array($0) } == Array(image.bytes[65_530...65_545]))
            try stage.restart()
            let same = try stage.node.get(target, fields: ["If-None-Match: \"a\""])
            #expect(same.status == 304 && same.detail == "disk", "\(same)")
            #expect(stage.fetches(path) == 1)
        }

        @Test("A large response of unknown length comes from disk once complete, and reports it")
        func waited() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let image = TestImage.generated(.png, byteCount: 1_900_000, seed: 32)
            let path = stage.origin.serve(image, fields: [lasting])
            _ = try stage.get(path)
            try stage.settle()
            try stage.restart()
            let parts = try stage.node.get(
                ImageRequestTarget.forURL(stage.origin.url(path)),
                fields: ["Range: bytes=0-9,90000-90009"])
            #expect(parts.status == 206 && parts.isHit && parts.detail == "disk", "\(parts)")
            #expect(try stage.figure("nuthatch_requests_total{cache=\"disk\"}") == 1)
            #expect(stage.fetches(path) == 1)
        }

        @Test("An entry evicted from memory is served from disk without an origin request")
        func evicted() throws {
            let stage = try DiskStage("--memory-limit", "16MiB", "--disk-limit", "256MiB")
            let images = (0..<60).map {
                TestImage.generated(.jpeg, byteCount: 700_000 + $0, seed: UInt64(400 + $0))
            }
            for image in images {
                _ = try stage.get(stage.origin.serve(image, fields: [lasting]))
                try stage.settle()
            }
            for image in images {
                let again = try stage.get("/" + image.name, expecting: image)
                #expect(again.matches(image) && again.isHit, "\(again)")
                #expect(stage.fetches("/" + image.name) == 1)
            }
            let found = try stage.figure("nuthatch_requests_total{cache=\"disk\"}")
            #expect(found > 40)
        }

        @Test("Variants are kept apart on disk as in memory")
        func variants() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let plain = TestImage.generated(.jpeg, byteCount: 9_000, seed: 41)
            let modern = TestImage.generated(.webp, byteCount: 8_000, seed: 42)
            let vary = [lasting, "Vary: Accept"]
            stage.origin.on("/v") { request in
                request.fields["Accept"]?.contains("image/webp") == true
                    ? OriginResponse(modern, fields: vary) : OriginResponse(plain, fields: vary)
            }
            let target = ImageRequestTarget.forURL(stage.origin.url("/v"))
            let webp = ["Accept: image/webp,*/*"]
            #expect(try stage.node.get(target).matches(plain))
            #expect(try stage.node.get(target, fields: webp).matches(modern))
            try stage.settle()
            try stage.restart()
            let first = try stage.node.get(target, fields: webp)
            #expect(first.matches(modern) && first.detail == "disk", "\(first)")
            let second = try stage.node.get(target)
            #expect(second.matches(plain) && second.detail == "disk", "\(second)")
            #expect(stage.fetches("/v") == 2)
        }

        @Test("A stale disk entry is revalidated, and its body is not fetched again")
        func stale() throws {
            let stage = try DiskStage("--disk-limit", "128MiB")
            for bytes in [5_000, 3_000_000] {
                let image = TestImage.generated(.png, byteCount: bytes, seed: UInt64(bytes))
                let path = stage.origin.serve(
                    image, fields: ["Cache-Control: max-age=0"], etag: "\"s\"")
                _ = try stage.get(path)
                try stage.settle()
                try stage.restart()
                let again = try stage.get(path, expecting: image)
                #expect(again.matches(image), "\(again)")
                #expect(again.cacheStatus["fwd"] == "stale", "\(again)")
                #expect(again.cacheStatus["fwd-status"] == "304", "\(again)")
                let requests = stage.origin.requests(path)
                #expect(requests.count == 2)
                #expect(requests.last?.fields["If-None-Match"] == "\"s\"")
            }
        }

        @Test("A response that a 304 has made a variant is stored on disk only as that variant")
        func becomesVariant() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            let image = TestImage.generated(.png, byteCount: 5_000, seed: 43)
            stage.origin.on("/n") { request in
                request.fields["If-None-Match"] == nil
                    ? OriginResponse(image, fields: ["Cache-Control: max-age=0", "ETag: \"n\""])
                    : OriginResponse(
                        nil, status: "304 Not Modified",
                        fields: [lasting, "Vary: Accept", "ETag: \"n\""])
            }
            _ = try stage.get("/n")
            #expect(try stage.get("/n").cacheStatus["fwd-status"] == "304")
            try stage.settle()
            try stage.restart(gently: true)
            let again = try stage.get("/n", expecting: image)
            #expect(again.matches(image) && again.detail == "disk", "\(again)")
            #expect(stage.fetches("/n") == 2)
        }

        @Test("A thousand requests for one large image on disk cause one read")
        func coalesced() throws {
            let stage = try DiskStage("--disk-limit", "1GiB")
            let image = TestImage.generated(.png, byteCount: 5_000_000, seed: 51)
            let path = stage.origin.serve(image, fields: [lasting])
            _ = try stage.get(path)
            try stage.settle()
            try stage.restart()
            let target = ImageRequestTarget.forURL(stage.origin.url(path))
            let swarm = ClientSwarm(
                port: stage.node.port, count: 1_000, .init(target, expecting: image))
            let failed = swarm.responses(seconds: 60).filter { !$0.matches(image) }
            #expect(failed.isEmpty, "\(failed.prefix(3))")
            #expect(stage.fetches(path) == 1)
            let read = try stage.figure("nuthatch_disk_read_bytes_total")
            #expect(read < 3 * Double(image.byteCount), "\(read)")
        }
    }
}
