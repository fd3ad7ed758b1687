import Harness
import Testing

extension Outside {
    @Suite("Slow clients delay no other client, and fast origins do not fill the memory")
    struct BackPressureTests {
        @Test("A client that does not read does not delay another client of the same image")
        func sameImage() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.png, byteCount: 20_000_000, seed: 150)
            let path = stage.origin.serve(large, fields: [lasting])
            let slow = ClientSwarm(
                port: stage.node.port, count: 1,
                .init(stage.target(path), expecting: large, behaviour: .neverRead))
            #expect(stage.origin.waitForRequests(1, path))
            #expect(try stage.get(path, expecting: large).matches(large))
            #expect(slow.responses(seconds: 0)[0].ending == .timedOut)
            slow.startReading()
            #expect(slow.responses()[0].matches(large))
            #expect(stage.fetches(path) == 1)
        }

        @Test("A client that reads slowly gets the complete image while others come and go")
        func slowAmongFast() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.png, byteCount: 5_000_000, seed: 151)
            let path = stage.origin.serve(large, fields: [lasting])
            let slow = SwarmBehaviour.readSlowly(bytesMax: 30_000, milliseconds: 5)
            let behaviours: [SwarmBehaviour] = [
                slow, .readAll, .closeAfter(bodyBytes: 1_000_000), .readAll, slow,
                .closeAfter(bodyBytes: 0),
            ]
            let swarm = ClientSwarm(
                port: stage.node.port,
                behaviours.map { .init(stage.target(path), expecting: large, behaviour: $0) })
            let responses = swarm.responses()
            for index in [0, 1, 3, 4] { #expect(responses[index].matches(large)) }
            #expect(stage.fetches(path) == 1)
        }

        /// Maximum bytes in the kernel's buffers on the path and in the node's own.
        private static let onTheWayBytesMax = 64_000_000

        @Test("The only client of an uncacheable image throttles the origin")
        func heldBack() throws {
            let stage = try Stage("--object-limit", "1MiB", "--memory-limit", "64MiB")
            defer { withExtendedLifetime(stage) {} }
            let huge = TestImage.generated(.bmp, byteCount: 250_000_000, seed: 152)
            let path = stage.origin.serve(huge)
            let swarm = ClientSwarm(
                port: stage.node.port, count: 1,
                .init(stage.target(path), expecting: huge, behaviour: .neverRead))
            #expect(stage.origin.waitForBodyBytes(2_000_000))
            // Throttled: the origin's count stands still, far from its end.
            var last = -1
            var stands = 0
            let isStill = Deadline.seconds(30).waitUntil(every: 5) {
                let now = stage.origin.bodyBytesSent
                stands = now == last ? stands + 1 : 0
                last = now
                return stands >= 100
            }
            #expect(isStill)
            #expect(last < Self.onTheWayBytesMax, "\(last) bytes left the origin")
            swarm.startReading()
            let response = swarm.responses()[0]
            #expect(response.matches(huge), "\(response)")
            #expect(stage.node.residentBytesMax < 128 << 20)
        }
    }
}
