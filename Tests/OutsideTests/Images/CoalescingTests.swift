import Harness
import Testing

extension Outside {
    @Suite("A thousand clients of one cold image cause one fetch")
    struct CoalescingTests {
        private static let clients = 1_000

        private func everybodyGets(
            _ image: TestImage, _ response: OriginResponse, seconds: Double = 120,
            at location: SourceLocation = #_sourceLocation
        ) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on("/it", response)
            let swarm = ClientSwarm(
                port: stage.node.port, count: Self.clients,
                .init(stage.target("/it"), expecting: image))
            let responses = swarm.responses(seconds: seconds)
            let failed = responses.filter { !$0.matches(image) }
            #expect(
                failed.isEmpty, "\(failed.count) failed, such as \(failed.prefix(3))",
                sourceLocation: location)
            #expect(stage.fetches("/it") == 1, sourceLocation: location)
        }

        @Test(
            "All clients get the complete image", arguments: [300_000, 1_500_000],
            [OriginResponse.Framing.length, .chunked(bytesMax: 50_000)])
        func all(byteCount: Int, framing: OriginResponse.Framing) throws {
            let image = TestImage.generated(.jpeg, byteCount: byteCount, seed: 30)
            try everybodyGets(image, OriginResponse(image, framing: framing, fields: [lasting]))
        }

        @Test("All clients get the complete image from an origin that is slow to start and stalls")
        func slowOrigin() throws {
            let image = TestImage.generated(.png, byteCount: 300_000, seed: 31)
            let response = OriginResponse(image, fields: [lasting])
                .delayingHead(.seconds(0.4)).stalling(at: 150_000, .seconds(0.4))
            try everybodyGets(image, response)
        }

        @Test(
            "Clients that wait for the head and those that join in mid-body get the complete image"
        )
        func heldByGates() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.webp, byteCount: 300_000, seed: 32)
            let (head, body) = (Gate(), Gate())
            stage.origin.on(
                "/it",
                OriginResponse(image, framing: .chunked(bytesMax: 10_000), fields: [lasting])
                    .delayingHead(.gate(head)).stalling(at: 150_000, .gate(body)))
            let plan = SwarmClientPlan(stage.target("/it"), expecting: image)
            let early = ClientSwarm(port: stage.node.port, count: 500, plan)
            #expect(head.waitForArrivals() && early.waitForConnections())
            head.open()
            #expect(body.waitForArrivals())
            let late = ClientSwarm(port: stage.node.port, count: 500, plan)
            #expect(late.waitForConnections())
            body.open()
            let responses = early.responses() + late.responses()
            #expect(responses.allSatisfy { $0.matches(image) })
            #expect(responses.count { !$0.isHit && $0.cacheStatus["fwd"] != nil } >= 1)
            #expect(stage.fetches("/it") == 1)
        }

        @Test("When the client that started the fetch leaves, the others get the complete image")
        func firstLeaves() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.gif, byteCount: 300_000, seed: 33)
            let (first, gate) = try stage.begin {
                OriginResponse(image, fields: [lasting]).stalling(at: 100_000, .gate($0))
            }
            let others = ClientSwarm(
                port: stage.node.port, count: 100,
                .init(stage.target("/it"), expecting: image))
            #expect(others.waitForConnections())
            first.socket.reset()
            gate.open()
            #expect(others.responses().allSatisfy { $0.matches(image) })
            #expect(stage.fetches("/it") == 1)
        }

        @Test("When its only client leaves, the fetch goes on and the image is stored")
        func onlyClientLeaves() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.gif, byteCount: 300_000, seed: 34)
            let (first, gate) = try stage.begin {
                OriginResponse(image, fields: [lasting]).stalling(at: 100_000, .gate($0))
            }
            let descriptors = stage.node.descriptorCount
            first.socket.reset()
            expectSoon(30, "the node notices that the client is gone") {
                stage.node.descriptorCount < descriptors
            }
            gate.open()
            #expect(try stage.get("/it").matches(image))
            #expect(stage.fetches("/it") == 1)
        }

        @Test("Requests for different images do not wait for each other")
        func differentImages() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.png, byteCount: 10_000, seed: 35)
            let (held, gate) = try stage.begin { OriginResponse(image).delayingHead(.gate($0)) }
            defer { gate.open() }
            stage.origin.on("/free", OriginResponse(image))
            #expect(try stage.get("/free").matches(image))
            #expect(held.isIdle(seconds: 0))
        }
    }
}
