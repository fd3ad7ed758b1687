import Harness
import Testing

extension Outside {
    @Suite("Range requests")
    struct RangeTests {
        private static let count = 200_000
        private let image = TestImage.generated(.png, byteCount: count, seed: 80)

        /// Starts a node that has the image in memory, and returns the image's path.
        private func primed() throws -> (Stage, String) {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(
                image, fields: [lasting], etag: "\"v1\"", lastModified: ConditionalTests.modified)
            #expect(try stage.get(path).matches(image))
            return (stage, path)
        }

        static let single: [(range: String, bytes: Range<Int>)] = [
            ("bytes=0-99", 0..<100),
            ("bytes=0-0", 0..<1),
            ("bytes=65530-65545", 65_530..<65_546),
            ("bytes=131071-131072", 131_071..<131_073),
            ("bytes=150000-", 150_000..<count),
            ("bytes=199999-", 199_999..<count),
            ("bytes=100-9999999999", 100..<count),
            ("bytes=-1", count - 1..<count),
            ("bytes=-500", count - 500..<count),
            ("bytes=-9999999999", 0..<count),
            ("BYTES=5-9", 5..<10),
            ("bytes= 5-9", 5..<10),
        ]

        @Test("One range gets exactly its bytes")
        func one() throws {
            let (stage, path) = try primed()
            defer { withExtendedLifetime(stage) {} }
            let connection = try stage.node.connect()
            for (range, bytes) in Self.single {
                let response = try connection.get(stage.target(path), fields: ["Range: \(range)"])
                #expect(response.status == 206 && response.isWhole, "\(range): \(response)")
                let expected = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(Self.count)"
                #expect(response["Content-Range"] == expected, "\(range): \(response)")
                #expect(response["Content-Type"] == "image/png")
                #expect(response["ETag"] == "\"v1\"")
                let isSame = response.body == image.bytes(bytes)
                #expect(isSame, "\(range): \(response)")
            }
            #expect(stage.fetches(path) == 1)
        }

        @Test(
            "An invalid Range field is ignored",
            arguments: ["bytes=5-2", "items=0-5", "bytes=", "bytes=a-b", "bytes=1-2-3", "5-9"])
        func ignored(_ range: String) throws {
            let (stage, path) = try primed()
            defer { withExtendedLifetime(stage) {} }
            #expect(try stage.get(path, fields: ["Range: \(range)"]).matches(image))
        }

        @Test(
            "A range beyond the end gets 416 with the complete length",
            arguments: ["200000-", "-0"])
        func unsatisfiable(_ range: String) throws {
            let (stage, path) = try primed()
            defer { withExtendedLifetime(stage) {} }
            let response = try stage.get(path, fields: ["Range: bytes=\(range)"])
            #expect(response.status == 416 && response.isWhole, "\(response)")
            #expect(response["Content-Range"] == "bytes */200000")
            expectProblem(response, 416)
            #expect(response["Cache-Control"] == "no-store")
            #expect(response["ETag"] == nil)
        }

        @Test("Several ranges get one part each, with position and bytes")
        func several() throws {
            let (stage, path) = try primed()
            defer { withExtendedLifetime(stage) {} }
            let response = try stage.get(
                path, fields: ["Range: bytes=0-9, 70000-70099, -10, 900000-900001"])
            #expect(response.status == 206 && response.isWhole, "\(response)")
            let parts = try Multipart.parts(of: response)
            #expect(
                parts.map { $0.fields["Content-Range"] ?? "" } == [
                    "bytes 0-9/200000", "bytes 70000-70099/200000", "bytes 199990-199999/200000",
                ])
            #expect(parts.allSatisfy { $0.fields["Content-Type"] == "image/png" })
            let isSame =
                parts.map(\.body) == [
                    image.bytes(0..<10), image.bytes(70_000..<70_100),
                    image.bytes(199_990..<200_000),
                ]
            #expect(isSame)
        }

        @Test("A thousand tiny or overlapping ranges cost no more than the image")
        func many() throws {
            let (stage, path) = try primed()
            defer { withExtendedLifetime(stage) {} }
            let tiny = (0..<1_000).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ",")
            let same = Array(repeating: "0-", count: 1_000).joined(separator: ",")
            for ranges in [tiny, same] {
                let response = try stage.get(path, fields: ["Range: bytes=\(ranges)"])
                #expect([200, 206, 416].contains(response.status) && response.isWhole)
                #expect(response.bodyByteCount <= 2 * Self.count)
            }
        }

        @Test("If-Range selects the range or the complete image")
        func ifRange() throws {
            let (stage, path) = try primed()
            defer { withExtendedLifetime(stage) {} }
            let cases: [(condition: String, status: Int)] = [
                ("\"v1\"", 206), ("\"v0\"", 200), ("W/\"v1\"", 200),
                (ConditionalTests.modified, 206), (ConditionalTests.earlier, 200),
                (ConditionalTests.later, 200), ("nonsense", 200),
            ]
            for (condition, status) in cases {
                let response = try stage.get(
                    path, fields: ["Range: bytes=0-99", "If-Range: \(condition)"])
                #expect(response.status == status && response.isWhole, "\(condition)")
                #expect(response.bodyByteCount == (status == 206 ? 100 : Self.count))
            }
        }

        @Test("If-None-Match takes precedence over Range, and HEAD ignores Range")
        func precedence() throws {
            let (stage, path) = try primed()
            defer { withExtendedLifetime(stage) {} }
            let match = try stage.get(
                path, fields: ["Range: bytes=0-9", "If-None-Match: \"v1\""])
            #expect(match.status == 304)
            let head = try stage.get(path, method: "HEAD", fields: ["Range: bytes=0-9"])
            #expect(head.status == 200 && head["Content-Length"] == "200000")
        }

        @Test("A range of a cold image causes one complete fetch and gets its part")
        func cold() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            let response = try stage.get(path, fields: ["Range: bytes=70000-70099"])
            #expect(response.status == 206 && response.isWhole, "\(response)")
            #expect(response["Content-Range"] == "bytes 70000-70099/200000")
            let isSame = response.body == image.bytes(70_000..<70_100)
            #expect(isSame)
            // A hit, or served from the fetch that the range caused, which may not have ended.
            let whole = try stage.get(path)
            #expect(whole.matches(image), "\(whole)")
            #expect(stage.fetches(path) == 1)
            #expect(stage.origin.requests(path).first?.fields["Range"] == nil)
        }

        @Test("A range of a cold image is sent as soon as its bytes are there")
        func coldStreams() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on(
                "/it", OriginResponse(image, fields: [lasting]).stalling(at: 150_000, .gate(gate)))
            let client = try stage.node.connect()
            let response = try client.get(
                stage.target("/it"), fields: ["Range: bytes=1000-1999"])
            #expect(response.status == 206 && response.isWhole, "\(response)")
            let isSame = response.body == image.bytes(1_000..<2_000)
            #expect(isSame)
            #expect(try client.get("/healthz", seconds: 5).status == 200, "it is free again")
        }

        @Test(
            "A range of a large cold image fetches only its bytes, and everything the second time"
        )
        func coldLarge() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.bmp, byteCount: 6_000_000, seed: 81)
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on(
                "/it", OriginResponse(large, fields: [lasting]).stalling(at: 100_000, .gate(gate)))
            let first = try stage.get("/it", fields: ["Range: bytes=1000-1999"])
            #expect(first.status == 206 && first.body == large.bytes(1_000..<2_000), "\(first)")
            #expect(gate.waitForArrivals(1))
            expectSoon { stage.node.metric("nuthatch_waiters") == 0 }
            gate.open()
            expectSoon { stage.node.metric("nuthatch_fills_in_flight") == 0 }
            #expect(stage.node.metric("nuthatch_memory_entries") == 0)
            let second = try stage.get("/it", fields: ["Range: bytes=5000000-5000999"])
            #expect(second.body == large.bytes(5_000_000..<5_001_000), "\(second)")
            expectSoon { stage.node.metric("nuthatch_fills_in_flight") == 0 }
            let whole = try stage.get("/it")
            #expect(whole.matches(large) && whole.isHit, "\(whole)")
            #expect(stage.fetches("/it") == 2)
        }

        @Test("A client over its quota of unread bytes gets the complete image")
        func coldBeyondLimit() throws {
            let stage = try Stage("--client-unread-limit", "0B")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path, fields: ["Range: bytes=-1"]).matches(image))
            #expect(stage.node.metric("nuthatch_origin_unread_bytes_total") == 0)
        }

        @Test("A range of a cold image of unknown length gets the right response")
        func coldChunked() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on(
                "/it",
                OriginResponse(image, framing: .chunked(bytesMax: 9_999), fields: [lasting]))
            let response = try stage.get("/it", fields: ["Range: bytes=-100"])
            let isPart =
                response.status == 206 && response.body == image.bytes(199_900..<200_000)
            #expect(response.isWhole && (isPart || response.matches(image)), "\(response)")
        }
    }
}
