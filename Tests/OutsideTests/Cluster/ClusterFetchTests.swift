import Harness
import Testing

extension Outside {
    @Suite("One origin fetch serves the whole cluster")
    struct ClusterFetchTests {
        private func everybodyGets(
            _ stage: ClusterStage, _ path: String, _ image: TestImage, _ response: OriginResponse,
            at location: SourceLocation = #_sourceLocation
        ) {
            stage.origin.on(path, response)
            let plan = SwarmClientPlan(stage.target(path), expecting: image)
            let swarms = stage.nodes.map { ClientSwarm(port: $0.port, count: 334, plan) }
            let responses = swarms.flatMap { $0.responses(seconds: 120) }
            let failed = responses.filter { !$0.matches(image) }
            #expect(
                failed.isEmpty, "\(failed.count) failed, such as \(failed.prefix(3))",
                sourceLocation: location)
            #expect(stage.fetches(path) == 1, "\(path)", sourceLocation: location)
        }

        @Test("A thousand clients request one cold image through three nodes")
        func clients() throws {
            let stage = try ClusterStage(3)
            for (number, size) in [10_000, 300_000, 1_500_000].enumerated() {
                let image = TestImage.generated(
                    .jpeg, byteCount: size, seed: UInt64(700 + number))
                everybodyGets(
                    stage, "/length\(number)", image, OriginResponse(image, fields: [lasting]))
                everybodyGets(
                    stage, "/chunked\(number)", image,
                    OriginResponse(image, framing: .chunked(bytesMax: 50_000), fields: [lasting]))
            }
        }

        @Test("An image whose URL contains percent-escapes is fetched once")
        func escapes() throws {
            let stage = try ClusterStage(3)
            let image = TestImage.generated(.jpeg, byteCount: 9_000, seed: 707)
            for path in ["/a%2Fb", "/proxy/%2Fc%26d%3De%3F", "/f%2541", "/g%20h%C3%A9"] {
                stage.origin.on(path, OriginResponse(image, fields: [lasting]))
                try stage.expectAll(path, image)
                #expect(stage.fetches(path) == 1, "\(path)")
            }
        }

        @Test("An image relayed before its length was known has a Content-Length once it is stored")
        func lateLength() throws {
            let stage = try ClusterStage(3, keepsOnDisk: false)
            let image = TestImage.generated(.jpeg, byteCount: 300_000, seed: 706)
            let gate = Gate()
            stage.origin.on(
                "/late",
                OriginResponse(image, framing: .chunked(bytesMax: 50_000), fields: [lasting])
                    .stalling(at: 150_000, .gate(gate)))
            let swarms = stage.nodes.map { node in
                ClientSwarm(
                    port: node.port, count: 4,
                    SwarmClientPlan(stage.target("/late"), expecting: image))
            }
            #expect(gate.waitForArrivals())
            // All responses have begun.
            expectSoon {
                stage.nodes.allSatisfy {
                    ($0.metric("nuthatch_memory_used_bytes") ?? 0) > 150_000
                }
            }
            gate.open()
            for swarm in swarms {
                #expect(swarm.responses().allSatisfy { $0.matches(image) })
            }
            for index in stage.nodes.indices {
                for _ in 0..<2 {
                    let response = try stage.get("/late", from: index, expecting: image)
                    #expect(response.matches(image) && response.ending == .complete, "\(response)")
                    #expect(response["Content-Length"] == "300000", "\(index): \(response)")
                }
            }
        }

        @Test("A thousand clients wait for an origin that is slow to start and stalls")
        func slowOrigin() throws {
            let stage = try ClusterStage(3)
            let image = TestImage.generated(.png, byteCount: 300_000, seed: 710)
            everybodyGets(
                stage, "/slow", image,
                OriginResponse(image, fields: [lasting])
                    .delayingHead(.seconds(0.4)).stalling(at: 150_000, .seconds(0.4)))
        }

        @Test("An owner that waits for the origin is not treated as unresponsive")
        func patience() throws {
            let stage = try ClusterStage(3)
            let image = TestImage.generated(.png, byteCount: 30_000, seed: 711)
            // Longer than the maximum silence of a peer, 3 s.
            stage.origin.on(
                "/it", OriginResponse(image, fields: [lasting]).delayingHead(.seconds(3.5)))
            var details: [String] = []
            for index in 0..<3 {
                let response = try stage.get("/it", from: index, expecting: image)
                #expect(response.matches(image))
                details.append(response.detail ?? "-")
            }
            let asked = { (kind: String) in
                stage.nodes.reduce(0.0) { sum, node in
                    sum + (node.metric("nuthatch_peer_questions_total{kind=\"\(kind)\"}") ?? 0)
                }
            }
            // The requester sends one get to the owner, and the owner probes two other nodes before
            // the origin. The node that keeps a copy may already have received it.
            let (gets, probes) = (asked("get"), asked("probe"))
            #expect(
                (1...2).contains(gets) && (2...3).contains(probes),
                "\(gets), \(probes): \(details)")
            #expect(stage.fetches("/it") == 1)
        }

        @Test(
            "Every image is served by each node after one fetch, and Cache-Status names its source"
        )
        func everyImage() throws {
            let stage = try ClusterStage(3)
            for (number, image) in ImageCorpus.all.enumerated() {
                let path = stage.origin.serve(image, fields: [lasting])
                let order = [number % 3, (number + 1) % 3, (number + 2) % 3]
                var details: [String] = []
                for index in order {
                    let response = try stage.get(path, from: index, expecting: image)
                    #expect(response.matches(image), "\(image) from \(index): \(response)")
                    details.append(response.detail ?? "-")
                }
                let fetched = details.count { $0 == "origin" }
                let stored = image.bytes.count > 1
                // The owner has it in memory if another node requested it before.
                #expect(!stored || stage.fetches(path) == 1, "\(image): \(details)")
                #expect(!stored || fetched <= 1, "\(image): \(details)")
                #expect(
                    details.allSatisfy { ["origin", "peer", "memory", "disk"].contains($0) },
                    "\(image): \(details)")
            }
        }

        @Test("A node that dies takes no image away from the clients of other nodes")
        func death() throws {
            let stage = try ClusterStage(3)
            let images = (0..<60).map {
                TestImage.generated(.webp, byteCount: 20_000 + $0, seed: UInt64(720 + $0))
            }
            let paths = images.map { stage.origin.serve($0, fields: [lasting]) }
            for (number, path) in paths.enumerated() {
                #expect(try stage.get(path, from: number % 3).matches(images[number]))
            }
            stage.nodes[2].kill()
            // Immediately, before any node has detected the failure.
            for (number, path) in paths.enumerated() {
                let response = try stage.get(path, from: number % 2, expecting: images[number])
                #expect(response.matches(images[number]), "\(response)")
            }
            #expect(paths.allSatisfy { stage.fetches($0) <= 2 })
            try stage.settle(Array(stage.nodes.prefix(2)))
            for (number, path) in paths.enumerated() {
                let response = try stage.get(path, from: 1 - number % 2, expecting: images[number])
                #expect(response.matches(images[number]), "\(response)")
            }
            #expect(paths.allSatisfy { stage.fetches($0) <= 2 })
            // Images of other owners are not fetched again.
            #expect(paths.count { stage.fetches($0) == 1 } >= 20)
        }

        @Test("An origin's refusal is passed on by every node with its reason")
        func refused() throws {
            let stage = try ClusterStage(3)
            for index in 0..<3 {
                let response = try stage.get("/missing", from: index)
                expectProblem(response, 404, "\(index)")
            }
            stage.origin.on("/text", .text("text"))
            for index in 0..<3 { expectProblem(try stage.get("/text", from: index), 502) }
        }
    }
}
