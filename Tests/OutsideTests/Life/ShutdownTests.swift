import Harness
import Testing

extension Outside {
    @Suite("SIGTERM drains")
    struct ShutdownTests {
        private let image = TestImage.generated(.jpeg, byteCount: 300_000, seed: 180)

        @Test("A running answer is completed, new connections are refused, the status is 0")
        func drains() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            stage.origin.on("/it", OriginAnswer(image).stalling(at: 150_000, .gate(gate)))
            let running = try stage.node.connect()
            try running.socket.send(HTTPConnection.request(stage.target("/it")))
            #expect(gate.waitForArrivals())
            stage.node.terminate()
            let isRefusing = Deadline.seconds(20).reached {
                let response = try? stage.node.get("/healthz", seconds: 1)
                return response?.looksWhole != true
            }
            #expect(isRefusing && stage.node.isRunning)
            gate.open()
            let response = running.readResponse(expecting: image)
            #expect(response.brings(image), "\(response)")
            #expect(running.waitForEnd() == .cutShort)
            #expect(stage.node.waitForExit() == 0)
        }

        @Test("Idle connections do not hold the node up")
        func idle() throws {
            let node = try NodeProcess()
            let (unused, used) = (try node.connect(), try node.connect())
            #expect(try used.get("/healthz").status == 200)
            node.terminate()
            #expect(node.waitForExit(seconds: 20) == 0)
            #expect(unused.waitForEnd() != .timedOut)
            #expect(used.waitForEnd() != .timedOut)
        }

        @Test("What does not end in time is cut off, and does not look whole")
        func timeOut() throws {
            let stage = try Stage("--drain-timeout", "1s")
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on("/it", OriginAnswer(image).stalling(at: 150_000, .gate(gate)))
            let running = try stage.node.connect()
            try running.socket.send(HTTPConnection.request(stage.target("/it")))
            #expect(gate.waitForArrivals())
            stage.node.terminate()
            #expect(stage.node.waitForExit(seconds: 30) != nil)
            let response = running.readResponse(expecting: image)
            #expect(!response.looksWhole && response.ending != .timedOut, "\(response)")
        }

        @Test("Requests already sent on a connection are answered, and the last says close")
        func pipelined() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            stage.origin.on("/it", OriginAnswer(image).holdingHead(.gate(gate)))
            let connection = try stage.node.connect()
            try connection.socket.send(HTTPConnection.request(stage.target("/it")))
            #expect(gate.waitForArrivals())
            stage.node.terminate()
            gate.open()
            let response = connection.readResponse(expecting: image)
            #expect(response.brings(image), "\(response)")
            #expect(connection.waitForEnd() == .cutShort)
            #expect(stage.node.waitForExit() == 0)
        }
    }
}
