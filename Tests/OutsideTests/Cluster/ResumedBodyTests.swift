import Harness
import Testing

extension Outside {
    @Suite("A node that dies truncates no body at the clients of other nodes")
    struct ResumedBodyTests {
        /// Lets a client wait in the middle of a body that another node fetches, kills that node,
        /// and returns the client's response and the number of origin requests.
        ///
        /// The origin stalls on the first request until the node is gone.
        private func play(
            _ image: TestImage, fields: [String], framing: OriginResponse.Framing? = nil
        ) throws -> (response: Response, fetches: Int)? {
            let stage = try ClusterStage(3)
            for number in 0..<20 {
                let path = "/resumed-\(number)"
                let gate = Gate()
                let whole =
                    framing.map { OriginResponse(image, framing: $0, fields: fields) }
                    ?? OriginResponse(image, fields: fields)
                let asked = LockedBox(0)
                stage.origin.on(path) { _ in
                    let isFirst = asked.change { count in
                        count += 1
                        return count == 1
                    }
                    return isFirst ? whole.stalling(at: 600_000, .gate(gate)) : whole
                }
                let before = stage.nodes.map(started)
                let swarm = ClientSwarm(
                    port: stage.nodes[0].port, count: 1,
                    SwarmClientPlan(stage.target(path), expecting: image))
                let isHalfWay = Deadline.seconds(20).waitUntil {
                    (stage.nodes[0].metric("nuthatch_peer_received_bytes_total") ?? 0) > 500_000
                        || started(stage.nodes[0]) > before[0]
                }
                try #require(isHalfWay)
                guard started(stage.nodes[0]) == before[0] else {
                    // This node is itself the owner: try another image.
                    gate.open()
                    _ = swarm.responses(seconds: 60)
                    continue
                }
                let owner = try #require((1...2).first { started(stage.nodes[$0]) > before[$0] })
                stage.nodes[owner].kill()
                gate.open()
                let response = try #require(swarm.responses(seconds: 60).first)
                return (response, stage.fetches(path))
            }
            Issue.record("one node owns twenty images")
            return nil
        }

        private func started(_ node: NodeProcess) -> Double {
            node.metric("nuthatch_origin_fetches_started_total") ?? 0
        }

        private let image = TestImage.generated(.jpeg, byteCount: 3_000_000, seed: 1_400)

        @Test("The rest is fetched again if a strong entity tag identifies the representation")
        func entityTag() throws {
            let (response, fetches) = try #require(
                try play(image, fields: [lasting, "ETag: \"a\""]))
            #expect(response.matches(image), "\(response)")
            #expect(fetches == 2)
        }

        @Test("The rest is also fetched again without a length")
        func chunked() throws {
            let played = try play(
                image, fields: [lasting, "ETag: \"a\""], framing: .chunked(bytesMax: 50_000))
            let (response, fetches) = try #require(played)
            #expect(response.matches(image), "\(response)")
            #expect(fetches == 2)
        }

        @Test(
            "Without a strong validator the client's response is visibly truncated",
            arguments: [["ETag: W/\"a\""], []])
        func weak(fields: [String]) throws {
            let (response, _) = try #require(try play(image, fields: [lasting] + fields))
            #expect(!response.matches(image) && !response.isWhole, "\(response)")
        }
    }
}
