import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Revalidation, refusals and aborted transfers between nodes")
    struct ClusterRevalidationTests {
        private let image = TestImage.generated(.png, byteCount: 200_000, seed: 740)

        private func received(_ stage: ClusterStage) -> Double {
            stage.nodes.reduce(0) { sum, node in
                sum + (node.metric("nuthatch_peer_received_bytes_total") ?? 0)
            }
        }

        @Test(
            "The copies of all nodes are revalidated by one conditional request, without the body"
        )
        func revalidated() throws {
            let stage = try ClusterStage(3)
            let (image, isLasting) = (image, LockedBox(false))
            stage.origin.on("/it") { request in
                let control = isLasting.value ? lasting : "Cache-Control: max-age=0"
                let fields = [control, "ETag: \"v\""]
                return request.fields["If-None-Match"] == "\"v\""
                    ? .notModified(fields) : OriginResponse(image, fields: fields)
            }
            try stage.expectAll("/it", image)
            let (asked, bytes) = (stage.fetches("/it"), received(stage))
            #expect(bytes >= 200_000)
            isLasting.value = true
            let plan = SwarmClientPlan(stage.target("/it"), expecting: image)
            let swarms = stage.nodes.map { ClientSwarm(port: $0.port, count: 10, plan) }
            let responses = swarms.flatMap { $0.responses() }
            #expect(responses.allSatisfy { $0.matches(image) })
            let conditional = stage.origin.requests("/it").dropFirst(asked)
            #expect(conditional.map { $0.fields["If-None-Match"] } == ["\"v\""])
            #expect(received(stage) == bytes)
            #expect(stage.origin.requests("/it").count { !$0.isConditional } == 1)
            for index in 0..<3 {
                let hit = try stage.get("/it", from: index, expecting: image)
                #expect(hit.matches(image) && hit.isHit && hit.detail == "memory", "\(hit)")
            }
        }

        @Test(
            "A stale copy is served by every node while the origin fails, but not after a refusal"
        )
        func failing() throws {
            let stage = try ClusterStage(3)
            let fields = ["Cache-Control: max-age=0", "ETag: \"v\""]
            stage.origin.on("/it", OriginResponse(image, fields: fields))
            try stage.expectAll("/it", image)
            let broken = OriginResponse(nil, status: "503 Service Unavailable")
            stage.origin.on("/it", broken)
            for index in 0..<3 {
                let response = try stage.get("/it", from: index, expecting: image)
                #expect(response.matches(image) && !response.isHit, "\(index): \(response)")
                #expect(response.cacheStatus["fwd"] == "stale", "\(index): \(response)")
                #expect(response.cacheStatus["fwd-status"] == "503", "\(index): \(response)")
            }
            stage.origin.on("/it", OriginResponse(nil, status: "403 Forbidden"))
            for index in 0..<3 { expectProblem(try stage.get("/it", from: index), 403) }
            stage.origin.on("/it", broken)
            for index in 0..<3 { expectProblem(try stage.get("/it", from: index), 502) }
        }

        @Test("An owner's stale copy is served by every node while the origin is unreachable")
        func unreachable() throws {
            let stage = try ClusterStage(3)
            stage.origin.on("/it", OriginResponse(image, fields: ["Cache-Control: max-age=0"]))
            let owner = try #require((0..<3).first { try stage.owns("/it", $0) })
            let other = try #require((0..<3).first { try !stage.owns("/it", $0) })
            #expect(try stage.get("/it", from: owner, expecting: image).matches(image))
            stage.origin.on("/it", OriginResponse(image).truncatedInHead(.reset))
            let stale = try stage.get("/it", from: owner, expecting: image)
            #expect(stale.matches(image) && stale.cacheStatus["fwd-status"] == nil, "\(stale)")
            let asked = stage.fetches("/it")
            let passed = try stage.get("/it", from: other, expecting: image)
            #expect(passed.matches(image) && passed.detail == "stored", "\(passed)")
            #expect(passed.cacheStatus["fwd-status"] == nil, "\(passed)")
            #expect(stage.fetches("/it") == asked + 1)
            // The other node has not stored it.
            stage.origin.on("/it", OriginResponse(image, fields: ["Cache-Control: max-age=9"]))
            #expect(try !stage.get("/it", from: other, expecting: image).isHit)
            #expect(stage.fetches("/it") == asked + 2)
        }

        @Test("A changed image reaches every node after one fetch")
        func changed() throws {
            let stage = try ClusterStage(3)
            let (old, new) = (image, TestImage.generated(.png, byteCount: 150_000, seed: 741))
            let isChanged = LockedBox(false)
            stage.origin.on("/it") { request in
                guard isChanged.value else {
                    let fields = ["Cache-Control: max-age=0", "ETag: \"old\""]
                    return request.isConditional
                        ? .notModified(fields) : OriginResponse(old, fields: fields)
                }
                return OriginResponse(new, fields: [lasting, "ETag: \"new\""])
            }
            try stage.expectAll("/it", old)
            let asked = stage.fetches("/it")
            isChanged.value = true
            let plan = SwarmClientPlan(stage.target("/it"), expecting: new)
            let swarms = stage.nodes.map { ClientSwarm(port: $0.port, count: 10, plan) }
            let responses = swarms.flatMap { $0.responses() }
            #expect(responses.allSatisfy { $0.matches(new) })
            #expect(stage.fetches("/it") == asked + 1)
        }

        @Test(
            "A response that must not be shared is fetched for each client separately",
            arguments: ["private", "no-store", "private, max-age=60"])
        func unshared(control: String) throws {
            let stage = try ClusterStage(3)
            stage.origin.on("/it") { request in
                OriginResponse(
                    .generated(.png, byteCount: 20_000, seed: UInt64(750 + request.number)),
                    fields: ["Cache-Control: \(control)"])
            }
            let target = stage.target("/it")
            let came = LockedBox([[UInt8]]())
            for node in stage.nodes {
                for _ in 0..<10 {
                    Thread.detachNewThread {
                        let response = try? node.get(target)
                        let body = response?.status == 200 && response?.isWhole == true
                        came.change { $0.append(body ? response?.body ?? [] : []) }
                    }
                }
            }
            expectSoon(60) { came.value.count == 30 }
            #expect(came.value.allSatisfy { $0.count == 20_000 })
            #expect(Set(came.value).count == 30)
            #expect(stage.fetches("/it") >= 30)
        }

        @Test("A body truncated at the owner never looks complete, and the next fetch succeeds")
        func brokenOff() throws {
            let stage = try ClusterStage(2)
            let image = image
            var details: [String] = []
            for number in 0..<16 {
                let (path, isFirst) = ("/cut\(number)", LockedBox(true))
                stage.origin.on(path) { _ in
                    let whole = OriginResponse(image, fields: [lasting])
                    let isCut = isFirst.change { first in
                        defer { first = false }
                        return first
                    }
                    return isCut ? whole.truncated(after: 120_000, .close) : whole
                }
                let broken = try stage.get(path, from: 0, expecting: image)
                // A client without any bytes gets a problem document or the result of a second
                // fetch.
                #expect(
                    broken.matches(image) || broken.status == 502 || !broken.isWhole,
                    "\(broken)")
                let second = try stage.get(path, from: 0, expecting: image)
                #expect(second.matches(image), "\(second)")
                #expect(stage.fetches(path) == 2, "\(broken)")
                details.append(second.detail ?? "-")
            }
            // Images owned by this node and by the other. A body received from the other node
            // despite the interruption is in memory.
            #expect(details.contains("origin") && Set(details).count > 1, "\(details)")
        }

        @Test("An owner that dies while it relays an image corrupts no response")
        func dyingOwner() throws {
            let stage = try ClusterStage(2)
            let (image, gate) = (image, Gate())
            let paths = (0..<12).map { "/dying\($0)" }
            for path in paths {
                stage.origin.on(
                    path,
                    OriginResponse(image, fields: [lasting]).stalling(at: 120_000, .gate(gate)))
            }
            let clients = try paths.map { path in
                let connection = try stage.nodes[0].connect()
                try connection.socket.send(HTTPConnection.request(stage.target(path)))
                return connection
            }
            #expect(gate.waitForArrivals(12))
            // Every client has received the beginning.
            #expect(clients.allSatisfy { $0.socket.waitForInput(seconds: 30) })
            stage.nodes[1].kill()
            gate.open()
            let responses = clients.map { $0.readResponse(expecting: image) }
            #expect(responses.allSatisfy { $0.matches(image) || !$0.isWhole }, "\(responses)")
            #expect(responses.contains { $0.matches(image) })
            for path in paths {
                let response = try stage.get(path, from: 0, expecting: image)
                #expect(response.matches(image), "\(response)")
                #expect(stage.fetches(path) <= 2)
            }
            let twice = paths.count { stage.fetches($0) == 2 }
            #expect(twice > 0, "no image was the other node's")
        }
    }
}
