import Harness
import Testing

extension Outside {
    @Suite("Images are delivered unchanged")
    struct BytesTests {
        @Test("Every image is identical from the origin and from memory, by one fetch")
        func everyImage() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            for image in ImageCorpus.all {
                let path = stage.origin.serve(image, fields: [lasting])
                let cold = try stage.get(path, expecting: image)
                #expect(cold.matches(image), "\(image) cold: \(cold)")
                #expect(cold.cacheStatus["fwd"] == "uri-miss", "\(image): \(cold)")
                #expect(!cold.isHit, "\(image): \(cold)")
                let hit = try stage.get(path, expecting: image)
                #expect(hit.matches(image), "\(image) from memory: \(hit)")
                #expect(hit.isHit && hit.cacheStatus["fwd"] == nil, "\(image): \(hit)")
                #expect(hit["Age"].flatMap { Int($0) } != nil, "\(image): \(hit)")
                #expect(hit["Content-Length"] == "\(image.byteCount)")
                #expect(hit["Content-Type"] == image.contentType)
                #expect(stage.fetches(path) == 1, "\(image)")
            }
            #expect(stage.origin.malformedHeads.isEmpty)
        }

        @Test("A chunked and a close-delimited body are delivered unchanged and stored")
        func framings() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            for framing in [
                OriginResponse.Framing.chunked(bytesMax: 1), .chunked(bytesMax: 70_000), .close,
                .http10Close,
            ] {
                let image = TestImage.generated(.jpeg, byteCount: 5_000, seed: 20)
                let path = "/\(stage.origin.log.count)"
                stage.origin.on(path, OriginResponse(image, framing: framing, fields: [lasting]))
                #expect(try stage.get(path).matches(image), "\(framing)")
                let hit = try stage.get(path)
                #expect(hit.matches(image) && hit.isHit, "\(framing): \(hit)")
                #expect(hit["Content-Length"] == "5000")
                #expect(stage.fetches(path) == 1)
            }
        }

        @Test("HEAD of a stored image has the fields of GET, no body, and causes no origin request")
        func headOfStored() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.png, byteCount: 30_000, seed: 21)
            let path = stage.origin.serve(
                image, fields: [lasting], etag: "\"a\"",
                lastModified: "Sun, 06 Nov 1994 08:49:37 GMT")
            _ = try stage.get(path)
            let get = try stage.get(path)
            let head = try stage.get(path, method: "HEAD")
            #expect(head.status == 200 && head.isWhole && head.bodyByteCount == 0)
            #expect(head.isHit)
            let own: Set = ["age", "date", "cache-status", "x-request-id"]
            let plain = { (response: Response) in
                response.fields.lines.filter { !own.contains($0.name.lowercased()) }
            }
            #expect(plain(head) == plain(get))
            #expect(stage.fetches(path) == 1)
        }

        @Test("After the response to HEAD the connection stays in sync")
        func headKeepsStep() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.gif, byteCount: 30_000, seed: 22)
            let path = stage.origin.serve(image, fields: [lasting])
            let connection = try stage.node.connect()
            let cold = try connection.get(stage.target(path), method: "HEAD")
            #expect(cold.status == 200 && cold.isWhole && cold.bodyByteCount == 0)
            #expect(try connection.get(stage.target(path)).matches(image))
            #expect(try connection.get(stage.target(path), method: "HEAD").status == 200)
            #expect(try connection.get(stage.target(path)).matches(image))
        }

        @Test("Types must not be sniffed, and SVG cannot run scripts")
        func safetyFields() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let svg = TestImage.generated(.svg, byteCount: 3_000, seed: 23)
            let path = stage.origin.serve(svg, fields: [lasting])
            for response in [try stage.get(path), try stage.get(path)] {
                #expect(response.matches(svg))
                #expect(response["X-Content-Type-Options"] == "nosniff")
                #expect(response["Content-Security-Policy"]?.contains("sandbox") == true)
            }
        }

        @Test("Equivalent spellings of one URL are one image, and another query is another")
        func spellings() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.png, byteCount: 4_000, seed: 24)
            stage.origin.on("/a/b.png") { request in
                OriginResponse(image, fields: [lasting, "X-Target: \(request.target)"])
            }
            let host = "127.0.0.1:\(stage.origin.port)"
            for url in [
                "http://\(host)/a/b.png?x=1&y=2", "HTTP://\(host)/a/b.png?x=1&y=2",
                "http://\(host)/a/./b.png?x=1&y=2", "http://\(host)/c/../a/b.png?x=1&y=2",
                "http://\(host)/%61/b.png?x=1&y=2", "http://\(host)/a/b.png?x=1&y=2#part",
            ] {
                #expect(try stage.node.get(ImageRequestTarget.forURL(url)).matches(image), "\(url)")
            }
            #expect(stage.origin.log.map(\.target) == ["/a/b.png?x=1&y=2"])
            let other = "http://\(host)/a/b.png?y=2&x=1"
            #expect(try stage.node.get(ImageRequestTarget.forURL(other)).matches(image))
            #expect(stage.origin.log.count == 2)
        }

        @Test("The origin receives only permitted fields of the client's request")
        func originRequest() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(TestImage.generated(.png, byteCount: 400, seed: 25))
            _ = try stage.get(
                path,
                fields: [
                    "Cookie: a=b", "Referer: http://x/", "X-Forwarded-For: 1.2.3.4",
                    "User-Agent: tester", "Range: bytes=0-9", "If-None-Match: \"zz\"",
                ])
            let request = try #require(stage.origin.log.first)
            #expect(request.method == "GET" && request.version == "HTTP/1.1")
            #expect(request.fields.all("Host") == ["127.0.0.1:\(stage.origin.port)"])
            for name in ["Cookie", "Referer", "X-Forwarded-For", "Range", "If-None-Match"] {
                #expect(request.fields[name] == nil, "\(name)")
            }
            #expect(request.fields["User-Agent"] != "tester")
        }
    }
}
