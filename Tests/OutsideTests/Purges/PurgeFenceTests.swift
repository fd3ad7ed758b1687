import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Purged content does not come back")
    struct PurgeFenceTests {
        private let old = TestImage.generated(.png, byteCount: 60_000, seed: 811)
        private let new = TestImage.generated(.png, byteCount: 50_000, seed: 812)

        private func target(_ stage: ClusterStage, _ path: String) -> String {
            "{\"url\":\"\(stage.origin.url(path))\"}"
        }

        @Test("A request after a purge does not join a fetch that started before it")
        func inFlight() throws {
            let stage = try ClusterStage(2)
            let (old, new, gate) = (old, new, Gate())
            stage.origin.on("/it") { request in
                guard request.number == 0 else { return OriginResponse(new, fields: [lasting]) }
                var response = OriginResponse(old, fields: [lasting])
                response.bodyPauses = [(30_000, .gate(gate))]
                return response
            }
            let address = stage.target("/it")
            let first = try stage.nodes[0].connect()
            try first.socket.send(HTTPConnection.request(address))
            // A client without bytes of the old image may be served the new one.
            #expect(first.socket.waitForInput(seconds: 30))
            #expect(try stage.nodes[1].purge(target(stage, "/it")).isConfirmedByAll)
            try stage.expectAll("/it", new)
            gate.open()
            let early = first.readResponse(expecting: old)
            #expect(early.matches(old), "who came before has what he waited for: \(early)")
            // The late response does not replace the newer one in the store.
            try stage.expectAll("/it", new, from: [0, 1, 0])
            #expect(stage.fetches("/it") == 2)
        }

        @Test("A 304 to a revalidation from before a purge makes nothing fresh again")
        func validation() throws {
            let stage = try ClusterStage(1)
            let (old, new, gate, isEdited) = (old, new, Gate(), LockedBox(false))
            stage.origin.on("/it") { request in
                if request.fields["If-None-Match"] == "\"old\"" {
                    var response = OriginResponse.notModified([lasting, "ETag: \"old\""])
                    response.headPauses = [.gate(gate)]
                    return response
                }
                return isEdited.value
                    ? OriginResponse(new, fields: [lasting, "ETag: \"new\""])
                    : OriginResponse(old, fields: ["Cache-Control: max-age=0", "ETag: \"old\""])
            }
            #expect(try stage.get("/it", from: 0, expecting: old).matches(old))
            let (node, address) = (stage.nodes[0], stage.target("/it"))
            let asked = LockedBox<Response?>(nil)
            Thread.detachNewThread { asked.value = try? node.get(address, expecting: new) }
            expectSoon { stage.fetches("/it") == 2 }
            isEdited.value = true
            #expect(try node.purge(target(stage, "/it")).isConfirmedByAll)
            gate.open()
            expectSoon { asked.value != nil }
            #expect(asked.value?.matches(new) == true, "decided after the purge was confirmed")
            #expect(try stage.get("/it", from: 0, expecting: new).matches(new))
            #expect(stage.origin.requests("/it").last?.isConditional == false)
        }

        @Test("A cache tag of the origin and the URL of a redirect target cover the image")
        func tags() throws {
            let stage = try ClusterStage(2)
            let last = "Location: \(stage.origin.url("/last"))"
            stage.origin.on("/first", OriginResponse(nil, status: "302 Found", fields: [last]))
            let isEdited = stage.origin.serve(
                old, then: new, at: ["/last", "/tagged"], hasTags: false,
                fields: [lasting, "Surrogate-Key: a shoes b"])
            for path in ["/first", "/tagged"] { try stage.expectAll(path, old) }
            isEdited.value = true
            #expect(try stage.nodes[0].purge(target(stage, "/last")).isConfirmedByAll)
            #expect(try stage.get("/first", from: 1, expecting: new).matches(new))
            #expect(try stage.get("/tagged", from: 1, expecting: old).matches(old))
            #expect(try stage.nodes[1].purge("{\"tag\":\"shoes\"}").isConfirmedByAll)
            try stage.expectAll("/tagged", new)
        }

        @Test("A node that was down during many purges serves nothing purged, and keeps the rest")
        func away() throws {
            let stage = try ClusterStage(3, "--replicas", "3")
            let paths = (0..<20).map { "/\($0)" }
            let isEdited = stage.origin.serve(
                old, then: new, at: paths, hasTags: false, fields: [lasting])
            for path in paths { try stage.expectAll(path, old, from: [2]) }
            expectSoon { stage.nodes.allSatisfy { $0.diskEntries >= 20 } }
            stage.nodes[2].kill()
            isEdited.value = true
            let others = (0..<200).map { "{\"tag\":\"t\($0)\"}" }.joined(separator: ",")
            for path in paths.prefix(10) {
                let response = try stage.nodes[0].purge(
                    target(stage, path) + "," + others, wait: "issued")
                #expect(response.status == 202, "\(response)")
            }
            let before = paths.reduce(0) { $0 + stage.fetches($1) }
            try stage.restart(2)
            try stage.settle(stage.nodes)
            for path in paths.prefix(10) { try stage.expectAll(path, new, from: [2]) }
            for path in paths.dropFirst(10) { try stage.expectAll(path, old, from: [2]) }
            #expect(paths.reduce(0) { $0 + stage.fetches($1) } == before + 10)
        }
    }
}
