import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Fresh images are served, stale ones revalidated")
    struct FreshnessTests {
        private let image = TestImage.generated(.jpeg, byteCount: 20_000, seed: 60)
        private let past = "Sun, 06 Nov 1994 08:49:37 GMT"

        @Test(
            "A stale image is revalidated with its validators",
            arguments: ["max-age=0", "no-cache", "s-maxage=0, max-age=100"])
        func revalidated(_ control: String) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(
                image, fields: ["Cache-Control: \(control)"], etag: "\"v1\"", lastModified: past)
            #expect(try stage.get(path).matches(image))
            let again = try stage.get(path)
            #expect(again.matches(image), "\(again)")
            let log = stage.origin.requests(path)
            #expect(log.count == 2)
            #expect(log.first?.isConditional == false)
            #expect(log.last?.fields["If-None-Match"] == "\"v1\"")
        }

        @Test("An image with only Last-Modified is revalidated by date")
        func byDate() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(
                image, fields: ["Cache-Control: no-cache"], lastModified: past)
            _ = try stage.get(path)
            #expect(try stage.get(path).matches(image))
            #expect(stage.origin.requests(path).last?.fields["If-Modified-Since"] == past)
        }

        @Test("A 304 refreshes the lifetime and fields of the stored response")
        func refreshed() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = image
            stage.origin.on("/it") { request in
                guard request.fields["If-None-Match"] == "\"v1\"" else {
                    return OriginResponse(
                        image, fields: ["Cache-Control: max-age=0", "ETag: \"v1\""])
                }
                return .notModified([lasting, "ETag: \"v1\"", "Content-Language: de"])
            }
            #expect(try stage.get("/it").matches(image))
            #expect(try stage.get("/it").matches(image))
            let third = try stage.get("/it")
            #expect(third.matches(image) && third.isHit, "\(third)")
            #expect(third["Cache-Control"]?.contains("max-age=3600") == true)
            #expect(third["Content-Language"] == "de")
            #expect(third["Content-Length"] == "20000")
            #expect(stage.fetches("/it") == 2)
        }

        @Test("A changed image replaces the stored one")
        func replaced() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(
                image, fields: ["Cache-Control: no-cache"], etag: "\"v1\"")
            #expect(try stage.get(path).matches(image))
            let changed = TestImage.generated(.jpeg, byteCount: 25_000, seed: 61)
            stage.origin.on(path, OriginResponse(changed, fields: [lasting, "ETag: \"v2\""]))
            #expect(try stage.get(path).matches(changed))
            let hit = try stage.get(path)
            #expect(hit.matches(changed) && hit.isHit)
            #expect(hit["ETag"] == "\"v2\"")
            #expect(stage.fetches(path) == 2)
        }

        @Test("Many clients of one stale image cause one revalidation")
        func coalescedRevalidation() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            let image = image
            stage.origin.on("/it") { request in
                guard request.isConditional else {
                    return OriginResponse(
                        image, fields: ["Cache-Control: max-age=0", "ETag: \"v\""])
                }
                return OriginResponse.notModified([lasting, "ETag: \"v\""]).delayingHead(
                    .gate(gate))
            }
            #expect(try stage.get("/it").matches(image))
            let swarm = ClientSwarm(
                port: stage.node.port, count: 200, .init(stage.target("/it"), expecting: image))
            #expect(gate.waitForArrivals() && swarm.waitForConnections())
            gate.open()
            #expect(swarm.responses().allSatisfy { $0.matches(image) })
            #expect(stage.fetches("/it") == 2)
        }

        @Test("Without explicit freshness the default lifetime holds, and then ends")
        func defaultLifetime() throws {
            let stage = try Stage("--default-ttl", "2s")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, etag: "\"v1\"")
            #expect(try stage.get(path).matches(image))
            #expect(try stage.get(path).isHit)
            expectSoon(20, "it becomes stale") { (try? stage.get(path).isHit) == false }
            #expect(stage.origin.requests(path).last?.fields["If-None-Match"] == "\"v1\"")
        }

        @Test("The lifetime set by the origin ends on time")
        func lifetimeEnds() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(
                image, fields: ["Cache-Control: max-age=2"], etag: "\"v1\"")
            #expect(try stage.get(path).matches(image))
            #expect(try stage.get(path).isHit)
            expectSoon(20) { (try? stage.get(path).isHit) == false }
        }

        @Test("Expires is honoured, and Cache-Control takes precedence")
        func expires() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let future = HTTPDateFormat.text(Date(timeIntervalSinceNow: 3_600))
            let cases: [(fields: [String], fetches: Int)] = [
                (["Expires: \(future)"], 1),
                (["Expires: \(past)"], 2),
                (["Expires: 0"], 2),
                (["Expires: \(past)", "Cache-Control: max-age=60"], 1),
                (["Expires: \(future)", "Cache-Control: max-age=0"], 2),
                (["Cache-Control: max-age=0, s-maxage=60"], 1),
            ]
            for (index, row) in cases.enumerated() {
                let path = "/\(index)"
                stage.origin.on(path, OriginResponse(image, fields: row.fields))
                _ = try stage.get(path)
                #expect(try stage.get(path).matches(image))
                #expect(stage.fetches(path) == row.fetches, "\(row.fields)")
            }
        }

        @Test("The Age of the received response counts")
        func ageCounts() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let old = ["Age: 100", "Cache-Control: max-age=1000"]
            let path = stage.origin.serve(image, fields: old)
            _ = try stage.get(path)
            let hit = try stage.get(path)
            #expect(hit.isHit)
            #expect(hit["Age"].flatMap { Int($0) }.map { $0 >= 100 && $0 < 200 } == true, "\(hit)")
            stage.origin.on(
                "/stale", OriginResponse(image, fields: ["Age: 100", "Cache-Control: max-age=50"]))
            _ = try stage.get("/stale")
            _ = try stage.get("/stale")
            #expect(stage.fetches("/stale") == 2)
        }
    }
}
