import Harness
import Testing

extension Outside {
    @Suite("A swarm of test clients reports each client's response")
    struct SwarmSelfTests {
        private let image = TestImage.generated(.gif, byteCount: 200_000, seed: 4)

        @Test("A thousand readers get the complete image, each by its own request")
        func readers() throws {
            let origin = try ScriptedOrigin()
            let path = origin.serve(image)
            let swarm = ClientSwarm(port: origin.port, count: 1_000, .init(path, expecting: image))
            let responses = swarm.responses()
            #expect(responses.count == 1_000)
            #expect(responses.allSatisfy { $0.matches(image) })
            #expect(origin.requests(path).count == 1_000)
            #expect(origin.connectionsOpened == 1_000)
        }

        @Test("A wrong byte, a truncation and a reset are distinguished")
        func damage() throws {
            let origin = try ScriptedOrigin()
            let other = TestImage.generated(.gif, byteCount: 200_000, seed: 5)
            origin.on("/other", OriginResponse(other))
            origin.on("/cut", OriginResponse(image).truncated(after: 100, .close))
            origin.on("/reset", OriginResponse(image).truncated(after: 100, .reset))
            let swarm = ClientSwarm(
                port: origin.port,
                ["/other", "/cut", "/reset"].map { .init($0, expecting: image) })
            let responses = swarm.responses()
            #expect(responses.map(\.ending) == [.complete, .truncated, .reset])
            #expect(responses.map(\.isAsExpected) == [false, true, true])
            #expect(responses.allSatisfy { !$0.matches(image) })
        }

        @Test("Clients that do not read delay their responses until they start to")
        func stalled() throws {
            let origin = try ScriptedOrigin()
            let large = TestImage.generated(.bmp, byteCount: 20_000_000, seed: 6)
            let path = origin.serve(large)
            let swarm = ClientSwarm(
                port: origin.port, count: 3,
                .init(path, expecting: large, behaviour: .neverRead))
            #expect(swarm.waitForConnections())
            #expect(origin.waitForRequests(3, path))
            #expect(swarm.responses(seconds: 0.05).allSatisfy { $0.ending == .timedOut })
            swarm.startReading()
            #expect(swarm.responses().allSatisfy { $0.matches(large) })
        }

        @Test("Slow readers get the complete image, and those that leave count as abandoned")
        func slowAndLeaving() throws {
            let origin = try ScriptedOrigin()
            let path = origin.serve(image)
            let slow = SwarmBehaviour.readSlowly(bytesMax: 16_384, milliseconds: 1)
            let behaviours: [SwarmBehaviour] = [
                slow, .closeAfter(bodyBytes: 0), .closeAfter(bodyBytes: 50_000),
            ]
            let swarm = ClientSwarm(
                port: origin.port,
                behaviours.map { .init(path, expecting: image, behaviour: $0) })
            let responses = swarm.responses()
            #expect(responses[0].matches(image))
            #expect(responses[1].ending == .abandoned)
            #expect(responses[2].ending == .abandoned)
            #expect(responses[2].bodyByteCount >= 50_000)
            #expect(origin.waitForConnections(atMost: 1))
        }

        @Test("Connections that are not accepted are counted as refused")
        func refused() throws {
            let swarm = ClientSwarm(port: try ReservedPort.forProcess(), count: 5, .init("/"))
            #expect(swarm.responses().allSatisfy { $0.ending == .reset })
            #expect(swarm.refused == 5)
        }
    }
}
