import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Images behind redirects")
    struct FollowedTests {
        private let image = TestImage.generated(.png, byteCount: 30_000, seed: 80)

        private func redirect(_ location: String, _ fields: String...) -> OriginResponse {
            OriginResponse(
                nil, status: "302 Found",
                fields: ["Location: \(location)", "Content-Length: 0"] + fields)
        }

        @Test(
            "The image is stored in memory and on disk under the requested URL, with its final URL")
        func stored() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            stage.origin.on("/it", redirect("/else/where?now=1"))
            stage.origin.on("/else/where", OriginResponse(image, fields: [lasting]))
            #expect(try stage.get("/it").matches(image))
            #expect(try stage.get("/it").detail == "memory")
            try stage.settle()
            stage.stop(gently: true)
            let last = stage.origin.url("/else/where?now=1").dropFirst("http://".count)
            #expect(try isOnDisk("\0\(last)", stage))
            try stage.restart(gently: false)
            #expect(try stage.get("/it").detail == "disk")
            #expect(stage.fetches("/it") == 1 && stage.fetches("/else/where") == 1)
            #expect(stage.node.metric("nuthatch_origin_redirects_total") == 0)
        }

        /// Returns true if a file of the node contains `text`.
        private func isOnDisk(_ text: String, _ stage: DiskStage) throws -> Bool {
            let files = FileManager.default.enumerator(
                at: stage.directory, includingPropertiesForKeys: nil)
            while let file = files?.nextObject() as? URL {
                let bytes = try? Data(contentsOf: file, options: .mappedIfSafe)
                if bytes?.firstRange(of: Data(text.utf8)) != nil { return true }
            }
            return false
        }

        @Test("An uncacheable redirect is followed for every request")
        func notStored() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on("/it", redirect("/there", "Cache-Control: no-store"))
            stage.origin.on("/there", OriginResponse(image, fields: [lasting]))
            for _ in 1...2 { #expect(try stage.get("/it").matches(image)) }
            #expect(stage.fetches("/it") == 2)
            #expect(try stage.get("/there").matches(image))
            #expect(try stage.get("/there").isHit)
        }

        @Test(
            "A stale image is revalidated through its redirects, and kept if it is unchanged")
        func revalidated() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = image
            stage.origin.on("/it", redirect("/there", "Cache-Control: max-age=0"))
            stage.origin.on("/there") { request in
                request.fields["If-None-Match"] == "\"v1\""
                    ? .notModified(["ETag: \"v1\"", lasting])
                    : OriginResponse(image, fields: [lasting, "ETag: \"v1\""])
            }
            #expect(try stage.get("/it").matches(image))
            let again = try stage.get("/it")
            #expect(again.matches(image) && again.cacheStatus["fwd-status"] == "304", "\(again)")
            #expect(stage.fetches("/it") == 2 && stage.fetches("/there") == 2)
        }

        @Test("A 304 of another redirect target confirms nothing")
        func ledElsewhere() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let other = TestImage.generated(.png, byteCount: 31_000, seed: 81)
            let stale = "Cache-Control: max-age=0"
            stage.origin.on("/it", redirect("/first", stale))
            stage.origin.on("/first", OriginResponse(image, fields: [stale, "ETag: \"1\""]))
            #expect(try stage.get("/it").matches(image))
            stage.origin.on("/it", redirect("/second", stale))
            stage.origin.on("/second") { request in
                request.isConditional
                    ? .notModified(["ETag: \"1\""])
                    : OriginResponse(other, fields: [stale, "ETag: \"1\""])
            }
            #expect(try stage.get("/it").matches(other))
        }

        @Test("A thousand clients of a redirected image cause one fetch of each URL")
        func collapsed() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            stage.origin.on("/it", redirect("/there").delayingHead(.gate(gate)))
            stage.origin.on("/there", OriginResponse(image, fields: [lasting]))
            let swarm = ClientSwarm(
                port: stage.node.port, count: 1000, .init(stage.target("/it"), expecting: image))
            #expect(gate.waitForArrivals() && swarm.waitForConnections())
            gate.open()
            let whole = swarm.responses().count { $0.matches(image) }
            #expect(whole == 1000)
            #expect(stage.fetches("/it") == 1 && stage.fetches("/there") == 1)
        }
    }
}
