import Harness
import Testing

extension Outside {
    /// Origin requests for ranges of objects that are not stored.
    @Suite("Ranges of objects that are not stored")
    struct RangedObjectTests {
        /// Larger than the object limit.
        private let huge = TestImage.generated(.bmp, byteCount: 80_000_000, seed: 620)
        /// Not small, and storable.
        private let large = TestImage.generated(.bmp, byteCount: 6_000_000, seed: 621)
        private let small = TestImage.generated(.png, byteCount: 100_000, seed: 622)

        private func stage(_ object: RangedObject, _ flags: String...) throws -> SiteStage {
            let stage = try SiteStage(more: flags)
            stage.origin.on("/it") { object.answer($0) }
            return stage
        }

        private func part(
            _ stage: SiteStage, _ range: String, of target: String = "/it", fields: [String] = []
        ) throws -> Response {
            try stage.get(target, fields: ["Range: bytes=\(range)"] + fields)
        }

        private func expect(
            _ response: Response, _ bytes: Range<Int>, of image: TestImage,
            at location: SourceLocation = #_sourceLocation
        ) {
            #expect(
                response.status == 206 && response.isWhole, "\(response)",
                sourceLocation: location)
            let expected = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(image.byteCount)"
            #expect(response["Content-Range"] == expected, "\(response)", sourceLocation: location)
            // The clients of a swarm keep no bodies.
            let isSame =
                response.body.map { $0 == image.bytes(bytes) }
                ?? (response.bodyByteCount == bytes.count)
            #expect(isSame, "\(response)", sourceLocation: location)
        }

        private func ranges(_ stage: SiteStage) -> [String?] {
            stage.origin.requests("/it").map { $0.fields["Range"] }
        }

        private func figure(_ stage: SiteStage, _ fetched: String) -> Double? {
            stage.node.metric("nuthatch_origin_ranges_total{fetched=\"\(fetched)\"}")
        }

        /// Waits until the origin has had `requests` requests and no fetch is in progress.
        private func settle(_ stage: SiteStage, requests: Int) -> Bool {
            Deadline.seconds(30).waitUntil {
                stage.fetches("/it") == requests
                    && stage.node.metric("nuthatch_fills_in_flight") == 0
            }
        }

        @Test("A thousand bytes of an object too large to store cost as much, every time")
        func tooLarge() throws {
            let stage = try stage(RangedObject(image: huge))
            for _ in 1...3 {
                let response = try part(stage, "50000000-50000999")
                expect(response, 50_000_000..<50_001_000, of: huge)
            }
            #expect(
                ranges(stage) == Array(repeating: "bytes=50000000-50000999", count: 3))
            // The origin records sent bytes a moment after the client has received them.
            expectSoon { stage.origin.bodyBytesSent == 3_000 }
            #expect(figure(stage, "part") == 3)
            #expect(stage.node.metric("nuthatch_origin_received_bytes_total") == 3_000)
            #expect(stage.node.metric("nuthatch_origin_unread_bytes_total") == 0)
        }

        @Test("The last bytes of a large object are requested as a suffix range")
        func suffix() throws {
            let stage = try stage(RangedObject(image: huge))
            expect(try part(stage, "-100"), 79_999_900..<80_000_000, of: huge)
            #expect(ranges(stage) == ["bytes=-100"])
            expectSoon { stage.origin.bodyBytesSent == 100 }
        }

        @Test("A large object is fetched completely and stored when it is requested again")
        func again() throws {
            let stage = try stage(RangedObject(image: large))
            expect(try part(stage, "100-199"), 100..<200, of: large)
            expect(try part(stage, "5000000-5000099"), 5_000_000..<5_000_100, of: large)
            #expect(settle(stage, requests: 2))
            #expect(ranges(stage) == ["bytes=100-199", nil])
            let hit = try part(stage, "300-399")
            expect(hit, 300..<400, of: large)
            #expect(hit.isHit, "\(hit)")
            #expect(stage.fetches("/it") == 2)
            #expect(figure(stage, "again") == 1)
            #expect(stage.node.metric("nuthatch_origin_unread_bytes_total") == 5_999_900)
        }

        @Test("A small object is fetched completely after the first range of it")
        func smallObject() throws {
            let stage = try stage(RangedObject(image: small))
            expect(try part(stage, "10-19"), 10..<20, of: small)
            #expect(settle(stage, requests: 2))
            #expect(ranges(stage) == ["bytes=10-19", nil])
            let hit = try stage.get("/it")
            #expect(hit.matches(small) && hit.isHit, "\(hit)")
            #expect(figure(stage, "small") == 1)
        }

        @Test(
            "An uncacheable object is never fetched completely for a range",
            arguments: [false, true])
        func personal(isSmall: Bool) throws {
            let image = isSmall ? small : large
            let stage = try stage(
                RangedObject(image: image, fields: ["Cache-Control: private, max-age=60"]))
            for _ in 1...3 { expect(try part(stage, "10-19"), 10..<20, of: image) }
            #expect(ranges(stage) == ["bytes=10-19", "bytes=10-19", "bytes=10-19"])
            expectSoon { stage.origin.bodyBytesSent == 30 }
        }

        @Test("A range that covers the complete object is fetched without a range")
        func allOfIt() throws {
            let stage = try stage(RangedObject(image: small))
            expect(try part(stage, "0-"), 0..<100_000, of: small)
            #expect(ranges(stage) == [nil])
        }

        @Test("A client that requests a byte each of many objects causes few complete fetches")
        func manyObjects() throws {
            let object = RangedObject(
                image: .generated(.bmp, byteCount: 2 << 20, seed: 623))
            let stage = try stage(object, "--client-unread-limit", "16MiB")
            for number in 1...200 {
                let response = try part(stage, "0-0", of: "/it?\(number)")
                #expect(response.status == 206 && response.bodyByteCount == 1, "\(response)")
            }
            let smalls = try #require(figure(stage, "small"))
            // Eight per minute.
            #expect(smalls >= 8 && smalls <= 16)
            #expect(figure(stage, "limited") == 200 - smalls)
            #expect(settle(stage, requests: 200 + Int(smalls)))
            expectSoon { stage.origin.bodyBytesSent == 200 + Int(smalls) * 2 << 20 }
        }

        @Test("Several ranges are forwarded unchanged")
        func several() throws {
            let stage = try stage(RangedObject(image: huge))
            for _ in 1...2 {
                let response = try part(stage, "0-0,5-5")
                #expect(response.status == 206 && response.text == "2 parts", "\(response)")
                #expect(response["Content-Type"]?.hasPrefix("multipart/byteranges") == true)
                expect(try part(stage, "7-8"), 7..<9, of: huge)
            }
            #expect(
                ranges(stage).filter { $0 != nil }
                    == ["bytes=0-0,5-5", "bytes=7-8", "bytes=0-0,5-5", "bytes=7-8"])
        }

        @Test("A range beyond the end of a large object is refused by its origin")
        func beyond() throws {
            let stage = try stage(RangedObject(image: huge))
            for _ in 1...2 {
                let response = try part(stage, "80000000-")
                #expect(response.status == 416 && response.isWhole, "\(response)")
                #expect(response["Content-Range"] == "bytes */80000000")
            }
            #expect(ranges(stage) == ["bytes=80000000-", "bytes=80000000-"])
        }

        @Test("An If-Range with an outdated validator gets the complete object, which is stored")
        func ifRange() throws {
            let stage = try stage(RangedObject(image: small))
            let whole = try part(stage, "0-9", fields: ["If-Range: \"b\""])
            #expect(whole.matches(small), "\(whole)")
            #expect(settle(stage, requests: 1))
            let hit = try part(stage, "0-9", fields: ["If-Range: \"a\""])
            expect(hit, 0..<10, of: small)
            #expect(hit.isHit && stage.fetches("/it") == 1, "\(hit)")
            #expect(stage.node.metric("nuthatch_origin_unread_bytes_total") == 0)
        }

        @Test(
            "If the origin ignores ranges, the node cuts the range out and stores the object",
            arguments: [OriginResponse.Framing.length, .chunked(bytesMax: 9_999)])
        func ignored(_ framing: OriginResponse.Framing) throws {
            let stage = try SiteStage()
            stage.origin.on("/it", OriginResponse(small, framing: framing, fields: [lasting]))
            expect(try part(stage, "70000-70099"), 70_000..<70_100, of: small)
            #expect(settle(stage, requests: 1))
            let hit = try stage.get("/it")
            #expect(hit.matches(small) && hit.isHit, "\(hit)")
            #expect(stage.node.metric("nuthatch_origin_unread_bytes_total") == 99_900)
        }

        @Test("If the origin ignores ranges, the rest of a large object is fetched the second time")
        func ignoredLarge() throws {
            let gate = Gate()
            defer { gate.open() }
            let stage = try SiteStage()
            stage.origin.on(
                "/it", OriginResponse(large, fields: [lasting]).stalling(at: 100_000, .gate(gate)))
            expect(try part(stage, "0-99"), 0..<100, of: large)
            #expect(gate.waitForArrivals(1))
            expectSoon { stage.node.metric("nuthatch_waiters") == 0 }
            gate.open()
            #expect(settle(stage, requests: 1))
            #expect(stage.node.metric("nuthatch_memory_entries") == 0)
            expect(try part(stage, "0-99"), 0..<100, of: large)
            #expect(settle(stage, requests: 2))
            #expect(try part(stage, "200-299").isHit)
        }

        @Test(
            "A client over its quota of unread bytes gets the complete response of such an origin",
            arguments: [OriginResponse.Framing.length, .chunked(bytesMax: 9_999)])
        func ignoredBeyondLimit(_ framing: OriginResponse.Framing) throws {
            let stage = try SiteStage("--client-unread-limit", "0B")
            stage.origin.on("/it", OriginResponse(small, framing: framing, fields: [lasting]))
            let response = try part(stage, "70000-70099")
            #expect(response.matches(small), "\(response)")
            #expect((figure(stage, "limited") ?? 0) >= 1)
        }

        @Test("Clients that request ranges of one object meanwhile wait for one complete fetch")
        func together() throws {
            let gate = Gate()
            defer { gate.open() }
            let object = RangedObject(image: small)
            let stage = try SiteStage()
            stage.origin.on("/it") { request in
                object.answer(request).delayingHead(.gate(gate))
            }
            let first = stage.swarm("/it", [["Range: bytes=5-9"]])
            #expect(gate.waitForArrivals(1))
            let others = stage.swarm(
                "/it", (0..<50).map { ["Range: bytes=\($0)-\($0 + 9)"] })
            try stage.waitForWaiters(51)
            #expect(gate.waitForArrivals(2))
            gate.open()
            expect(try #require(first.responses().first), 5..<10, of: small)
            for (number, response) in others.responses().enumerated() {
                expect(response, number..<number + 10, of: small)
            }
            #expect(settle(stage, requests: 2))
            #expect(ranges(stage) == ["bytes=5-9", nil])
        }

        @Test("A complete fetch that turns out too large is abandoned in favour of the range")
        func givenUp() throws {
            let gate = Gate()
            defer { gate.open() }
            let object = RangedObject(image: huge)
            let stage = try SiteStage()
            stage.origin.on("/it") { request in
                let response = object.answer(request)
                return request.fields["Range"] == "bytes=0-0"
                    ? response.delayingHead(.gate(gate)) : response
            }
            let first = stage.swarm("/it", [["Range: bytes=0-0"]])
            #expect(gate.waitForArrivals(1))
            let second = try part(stage, "70000000-70000009")
            expect(second, 70_000_000..<70_000_010, of: huge)
            gate.open()
            expect(try #require(first.responses().first), 0..<1, of: huge)
            #expect(ranges(stage) == ["bytes=0-0", nil, "bytes=70000000-70000009"])
            // Only the bytes in transit of the complete fetch were received.
            let received = stage.node.metric("nuthatch_origin_received_bytes_total") ?? 0
            #expect(received < 8_000_000, "\(received)")
        }

        @Test("A purge between two ranges, or during the complete fetch, is effective")
        func purged() throws {
            let gate = Gate()
            defer { gate.open() }
            var object = RangedObject(image: small)
            object.whole = { $0.stalling(at: 50_000, .gate(gate)) }
            let stage = try stage(object)
            let purge = "{\"url\":\"http://\(SiteStage.host)/it\"}"
            expect(try part(stage, "0-9"), 0..<10, of: small)
            #expect(gate.waitForArrivals(1))
            #expect(try stage.node.purge(purge).isConfirmedByAll)
            gate.open()
            #expect(settle(stage, requests: 2))
            // The bytes in transit are no longer served.
            let again = try part(stage, "0-9")
            expect(again, 0..<10, of: small)
            #expect(!again.isHit, "\(again)")
            #expect(settle(stage, requests: 3))
            #expect(try part(stage, "0-9").isHit)
            #expect(try stage.node.purge(purge).isConfirmedByAll)
            let last = try part(stage, "0-9")
            expect(last, 0..<10, of: small)
            #expect(!last.isHit && stage.fetches("/it") == 4, "\(last)")
        }
    }
}
