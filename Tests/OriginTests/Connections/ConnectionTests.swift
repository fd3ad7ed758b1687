import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing

@Suite("Connections of the origin client")
struct ConnectionTests {
    @Test("A connection is reused for the same origin")
    func keepAlive() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(hi + hi + hi)
            for _ in 1...3 { #expect(try await rig.get(origin.port).text == "hi") }
            #expect(origin.connections == 1 && origin.requests.count == 3)
            #expect(try await rig.usage().connectionsStarted == 1)
        }
    }

    @Test("A connection that the origin closes while idle is dropped")
    func closedWhileIdle() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(hi + [.awaitGate, .close], hi)
            #expect(try await rig.get(origin.port).text == "hi")
            #expect(try await rig.usage().idle == 1)
            origin.openGate()
            try await rig.until { $0.idle == 0 && $0.connections == 0 }
            #expect(try await rig.get(origin.port).text == "hi")
            #expect(origin.connections == 2 && origin.requests.count == 2)
        }
    }

    @Test("A connection with unsolicited bytes is closed")
    func unasked() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(hi + [.awaitGate, .send("HTTP/1.1 200 OK\r\n\r\n")])
            #expect(try await rig.get(origin.port).text == "hi")
            origin.openGate()
            try await rig.until { $0.connections == 0 }
        }
    }

    @Test("An idle connection is closed after the idle limit")
    func idleLimit() async throws {
        try await Rig.run(settings: { $0.idleConnectionLimit = .milliseconds(5) }) { rig in
            let origin = try await rig.origin(hi)
            #expect(try await rig.get(origin.port).text == "hi")
            try await rig.until { $0.connections == 0 }
        }
    }

    @Test(
        "A reused connection that ends before a byte of the response is replaced once",
        arguments: [ByteOrigin.Step.close, .reset])
    func retried(how: ByteOrigin.Step) async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(hi + [.awaitRequestHead, how], hi)
            #expect(try await rig.get(origin.port).text == "hi")
            let second = try await rig.get(origin.port)
            #expect(second.text == "hi" && second.lateCalls == 0)
            #expect(origin.connections == 2 && origin.requests.count == 3)
        }
    }

    @Test("The second attempt is the last one")
    func retriedOnce() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                hi + [.awaitRequestHead, .close], [.awaitRequestHead, .close])
            #expect(try await rig.get(origin.port).text == "hi")
            let second = try await rig.get(origin.port)
            #expect(second.failure == .closedBeforeResponse(bytesReceived: 0))
            #expect(origin.connections == 2)
        }
    }

    @Test("After one byte of a response there is no retry")
    func notRetried() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(hi + [.awaitRequestHead, .send("H"), .close])
            #expect(try await rig.get(origin.port).text == "hi")
            let second = try await rig.get(origin.port)
            #expect(second.failure == .closedBeforeResponse(bytesReceived: 1))
            #expect(origin.connections == 1)
        }
    }

    @Test("Many concurrent fetches succeed and leave no more idle connections than allowed")
    func many() async throws {
        try await Rig.run(settings: { $0.idleConnectionsPerOriginMax = 10 }) { rig in
            let again = Array(repeating: hi, count: 300).flatMap { $0 }
            let origin = try await rig.origin(again)
            var outcomes: [EventLoopFuture<Outcome>] = []
            for _ in 1...300 { outcomes.append(try await rig.begin(origin.port)) }
            for outcome in outcomes { #expect(try await outcome.get().text == "hi") }
            try await rig.until { $0.idle <= 10 && $0.connections == $0.idle }
            #expect(try await rig.usage().fetches == 0)
            #expect(origin.requests.count == 300)
        }
    }

    @Test("At the limit on connections a fetch is refused as overloaded")
    func connectionsMax() async throws {
        try await Rig.run(settings: { $0.connectionsMax = 1 }) { rig in
            let origin = try await rig.origin([.awaitRequestHead, .awaitGate] + hi.dropFirst(), hi)
            let first = try await rig.begin(origin.port)
            let second = try await rig.get(origin.port)
            #expect(second.failure == .overloaded(.connections))
            origin.openGate()
            #expect(try await first.get().text == "hi")
        }
    }

    @Test("At the limit an idle connection to another origin is replaced")
    func replaced() async throws {
        try await Rig.run(settings: { $0.connectionsMax = 1 }) { rig in
            let one = try await rig.origin(hi)
            let other = try await rig.origin(hi)
            #expect(try await rig.get(one.port).text == "hi")
            #expect(try await rig.get(other.port).text == "hi")
            try await rig.until { $0.connections == 1 }
        }
    }

    @Test("Shutting down fails running fetches and refuses new ones")
    func shutDown() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin([.awaitRequestHead, .awaitGate])
            let running = try await rig.begin(origin.port)
            try await rig.with { $0.shutDown() }
            #expect(try await running.get().failure == .shuttingDown)
            #expect(try await rig.get(origin.port).failure == .shuttingDown)
            try await rig.until { $0.connections == 0 }
        }
    }

    @Test("A refused connection is reported without its address")
    func nobody() async throws {
        try await Rig.run(names: ["nobody.example": [["127.0.0.1"]]]) { rig in
            // The local port of a connection of ours, so that no other test can listen on it.
            let origin = try await rig.origin(hi)
            let taken = try await ClientBootstrap(group: rig.group)
                .connect(host: "127.0.0.1", port: Int(origin.port)).get()
            let port = UInt16(try #require(taken.localAddress?.port))
            let outcome = try await rig.get(port, host: "nobody.example")
            try await taken.close()
            let authority = OriginAuthority(host: "nobody.example", port: port)
            #expect(outcome.failure == .connectFailed(authority, reason: "refused"))
            #expect(outcome.failure?.status == 502 && outcome.failure?.mayRetry == true)
        }
    }
}
