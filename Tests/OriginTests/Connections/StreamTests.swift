import Certificates
import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing
import Wire

@Suite("Origins over HTTP/2")
struct StreamTests {
    static let whole = Outcome.End.ended(delimitedByClose: false)

    private func all(_ futures: [EventLoopFuture<Outcome>]) async throws -> [Outcome] {
        var outcomes: [Outcome] = []
        for future in futures { outcomes.append(try await future.get()) }
        return outcomes
    }

    @Test("Two hundred cold fetches share one connection, which is kept")
    func shared() async throws {
        var settings = HTTP2Settings()
        settings.concurrentStreamsMax = 1000
        try await withStreamOrigin(
            settings: settings, client: { $0.streamsMax = 1000 }, StreamOrigin.ok()
        ) {
            rig, origin in
            var futures: [EventLoopFuture<Outcome>] = []
            for number in 0..<200 {
                futures.append(try await rig.beginSecure(origin.port, path: "/\(number).png"))
            }
            for outcome in try await all(futures) {
                #expect(outcome.text == "ok" && outcome.end == Self.whole)
                #expect(outcome.bodyLength == 2)
            }
            #expect(origin.log.value.connections == 1)
            let usage = try await rig.usage()
            #expect(usage.connectionsStarted == 1 && usage.idle == 1)
            #expect(rig.exchange.statistics.connections == 1)
            #expect(try await rig.getSecure(origin.port).text == "ok")
            #expect(origin.log.value.connections == 1)
            #expect(origin.log.value.requests.count == 201)
        }
    }

    @Test("A connection runs no more fetches than its origin allows")
    func capacity() async throws {
        var settings = HTTP2Settings()
        settings.concurrentStreamsMax = 10
        // Requests for a connection and offers of a stream come in any order.
        for _ in 0..<20 {
            try await withStreamOrigin(settings: settings, StreamOrigin.ok()) { rig, origin in
                var futures: [EventLoopFuture<Outcome>] = []
                for _ in 0..<100 { futures.append(try await rig.beginSecure(origin.port)) }
                for outcome in try await all(futures) { #expect(outcome.text == "ok") }
                #expect(origin.log.value.connections <= 10)
                // None was refused and retried.
                #expect(origin.log.value.requests.count == 100)
            }
        }
    }

    @Test("At the limit on connections, fetches wait for streams on the existing ones")
    func oneConnection() async throws {
        var settings = HTTP2Settings()
        settings.concurrentStreamsMax = 4
        try await withStreamOrigin(
            settings: settings, client: { $0.admission.connectionsMax = 1 }, StreamOrigin.ok()
        ) { rig, origin in
            var futures: [EventLoopFuture<Outcome>] = []
            for _ in 0..<50 {
                futures.append(try await rig.beginSecure(origin.port))
            }
            for outcome in try await all(futures) { #expect(outcome.text == "ok") }
            #expect(rig.exchange.statistics.connections == 1)
            #expect(origin.log.value.connections == 1)
        }
    }

    @Test("A fetch of another loop gets its slot, although this loop shares its connection")
    func fairness() async throws {
        let trust = try Secure.trust()
        try await withStreamOrigin(
            client: {
                $0.admission.connectionsMax = 1
                $0.trustStore = trust
            }, StreamOrigin.ok()
        ) { rig, origin in
            let busy = LockedBox(true)
            let port = origin.port
            // The end of each starts the next, so that the connection is never idle.
            func goOn() async throws -> Int {
                var count = 0
                while busy.value {
                    var futures: [EventLoopFuture<Outcome>] = []
                    for _ in 0..<4 { futures.append(try await rig.beginSecure(port)) }
                    for outcome in try await all(futures) { #expect(outcome.text == "ok") }
                    count += 1
                }
                return count
            }
            async let here = goOn()
            async let there = goOn()
            let request = try Rig.request("https://127.0.0.1:\(port)/beside.png")
            let beside = rig.beside
            let loop = rig.besideLoop
            let outcome = try await loop.flatSubmit {
                let recorder = Recorder(on: loop)
                _ = beside.value.fetch(request, to: recorder)
                return recorder.outcome
            }.get()
            #expect(outcome.text == "ok")
            busy.value = false
            _ = try await (here, there)
        }
    }

    @Test("An origin that chooses HTTP/1.1 has a connection for each fetch")
    func notShared() async throws {
        let trust = try Secure.trust()
        let server = try Secure.server()
        try await Rig.run(settings: { $0.trustStore = trust }) { rig in
            let origin = try await rig.origin(
                behind: Secure.behind(server), [.awaitRequestHead, .awaitGate] + hi.dropFirst())
            var futures: [EventLoopFuture<Outcome>] = []
            for _ in 0..<10 { futures.append(try await rig.beginSecure(origin.port)) }
            while origin.requests.count < 10 { await Task.yield() }
            #expect(origin.connections == 10)
            origin.openGate()
            for outcome in try await all(futures) { #expect(outcome.text == "hi") }
        }
    }

    @Test("Fetches that wait for a failing connection fail with it, after one handshake")
    func openingFails() async throws {
        let trust = try Secure.trust(nil, pins: [#require(TLSPin(SecureTests.pin))])
        try await withStreamOrigin(client: { $0.trustStore = trust }, StreamOrigin.ok()) {
            rig, origin in
            var futures: [EventLoopFuture<Outcome>] = []
            let port = origin.port
            try await rig.with { _ in }
            futures = try await rig.loop.flatSubmit {
                var begun: [EventLoopFuture<Outcome>] = []
                for _ in 0..<20 {
                    guard let request = try? Rig.request("https://127.0.0.1:\(port)/") else {
                        continue
                    }
                    begun.append(rig.fetch(request, Recorder(on: rig.loop)))
                }
                return rig.loop.makeSucceededFuture(begun)
            }.get()
            for outcome in try await all(futures) {
                #expect(outcome.tlsCause == .wrongPin(Secure.good.pin))
            }
            #expect(try await rig.usage().connectionsStarted == 1)
        }
    }

    @Test("A fetch with a slow reader delays no other")
    func stalled() async throws {
        let size = 3_000_000
        try await withStreamOrigin({ server, stream, head in
            let count = head.contains("/large") ? size : 1000
            server.head(stream, "content-length: \(count)\r\n")
            server.session.write(
                stream, ByteBuffer(repeating: 7, count: count))
            server.session.end(stream)
        }) { rig, origin in
            let box = LockedBox<NIOLoopBound<OriginFetch>?>(nil)
            let loop = rig.loop
            let large = try await rig.beginSecure(origin.port, path: "/large") { _, fetch in
                box.value = NIOLoopBound(fetch, eventLoop: loop)
                fetch.pause()
            }
            for _ in 0..<50 {
                let outcome = try await rig.getSecure(origin.port, path: "/small")
                #expect(outcome.body.readableBytes == 1000)
            }
            #expect(origin.log.value.connections == 1)
            try await rig.with { _ in box.value?.value.resume() }
            let outcome = try await large.get()
            #expect(outcome.body.readableBytes == size && outcome.end == Self.whole)
        }
    }
}
