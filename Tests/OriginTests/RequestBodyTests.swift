import Harness
import NIOCore
import NIOPosix
import Origin
import Testing
import Wire

@Suite("Bodies of requests for sites")
struct RequestBodyTests {
    static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    static let whole = Outcome.End.ended(delimitedByClose: false)

    /// Starts a fetch that sends `pieces` as they are accepted.
    private func begin(
        _ rig: Rig, _ request: OriginFetchRequest, _ pieces: [ByteBuffer],
        trailers: Trailers = Trailers(), giver box: LockedBox<NIOLoopBound<BodyGiver>?>? = nil,
        _ afterEach: @escaping @Sendable (Recorder, OriginFetch) -> Void = { _, _ in }
    ) async throws -> EventLoopFuture<Outcome> {
        let loop = rig.loop
        return try await rig.begin(request) { recorder, fetch in
            let giver = BodyGiver(fetch, pieces, trailers: trailers)
            box?.value = NIOLoopBound(giver, eventLoop: loop)
            recorder.whenMoreIsTaken = { _ in giver.give() }
            recorder.afterEach = { afterEach($0, fetch) }
        }
    }

    @Test("A body of known length arrives unchanged, and the connection is kept")
    func length() async throws {
        let count = 5_000_000
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [
                    .awaitRequestHead, .awaitBody(count), .send(Self.ok), .awaitRequestHead,
                    .send(Self.ok),
                ])
            let outcome = try await begin(
                rig, siteRequest(origin.port, .post, body: .length(UInt64(count))),
                BodyGiver.flood(count)
            ).get()
            #expect(outcome.end == Self.whole && outcome.text == "ok")
            #expect(
                origin.requests == [
                    "POST /a?b HTTP/1.1\r\nHost: site.example\r\nX: y\r\n"
                        + "Content-Length: \(count)\r\n\r\n"
                ])
            #expect(ByteOrigin.isFlood(try #require(origin.bodies.first)))
            #expect(try await rig.usage().idle == 1)
            let next = try await rig.begin(siteRequest(origin.port)).get()
            #expect(next.text == "ok" && origin.connections == 1)
        }
    }

    @Test("A body of unknown length is chunked and followed by its trailers")
    func chunked() async throws {
        let trailers = try #require(Trailers(Array("X-Sum: 1\r\nY: \r\n".utf8)))
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [
                    .awaitRequestHead, .awaitBodyEnding("0\r\nX-Sum: 1\r\nY: \r\n\r\n"),
                    .send(Self.ok),
                ],
                [.awaitRequestHead, .awaitBodyEnding("0\r\n\r\n"), .send(Self.ok)])
            let pieces = ["ab", "", "0123456789abcdef"].map { ByteBuffer(string: $0) }
            let request = siteRequest(origin.port, .put, body: .chunked)
            let outcome = try await begin(rig, request, pieces, trailers: trailers).get()
            #expect(outcome.end == Self.whole)
            #expect(origin.requests.first?.hasSuffix("Transfer-Encoding: chunked\r\n\r\n") == true)
            #expect(
                origin.bodies.map { String(buffer: $0) } == [
                    "2\r\nab\r\n10\r\n0123456789abcdef\r\n0\r\nX-Sum: 1\r\nY: \r\n\r\n"
                ])
            try await rig.with { $0.shutDown() }
        }
    }

    @Test("A body sent before there is a connection is kept for it")
    func early() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin([.awaitRequestHead, .awaitBody(5), .send(Self.ok)])
            let request = siteRequest(origin.port, .post, body: .length(5))
            let outcome = try await rig.begin(request) { _, fetch in
                #expect(!fetch.isWritable && fetch.acceptsBody)
                fetch.send(body: ByteBuffer(string: "hel"))
                fetch.send(body: ByteBuffer(string: "lo"))
                #expect(!fetch.isWritable && !fetch.acceptsBody)
            }.get()
            #expect(outcome.end == Self.whole)
            #expect(origin.bodies.map { String(buffer: $0) } == ["hello"])
        }
    }

    @Test("A body announced as empty is complete at once")
    func empty() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin([.awaitRequestHead, .send(Self.ok)])
            let request = siteRequest(origin.port, .post, body: .length(0))
            let outcome = try await rig.begin(request) { _, fetch in
                #expect(!fetch.acceptsBody)
                fetch.endBody()
            }.get()
            #expect(outcome.end == Self.whole)
            #expect(origin.requests.first?.hasSuffix("Content-Length: 0\r\n\r\n") == true)
            #expect(try await rig.usage().idle == 1)
        }
    }

    @Test("An origin that does not read pauses the sender until it reads again")
    func backPressure() async throws {
        let count = 50_000_000
        try await Rig.run { rig in
            let origin = try await rig.origin([
                .awaitRequestHead, .stopReading, .awaitBody(count), .send(Self.ok),
            ])
            let other = try await rig.origin(
                [
                    .awaitRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n"),
                    .flood(count),
                ])
            let box = LockedBox<NIOLoopBound<BodyGiver>?>(nil)
            let outcome = try await begin(
                rig, siteRequest(origin.port, .post, body: .length(UInt64(count))),
                BodyGiver.flood(count), giver: box)
            // In the time another fetch on the same loop sends as much, this one could have sent it
            // all.
            let beside = try await rig.begin(siteRequest(other.port)) { recorder, _ in
                recorder.keepsBody = false
            }
            #expect(try await beside.get().end == Self.whole)
            let given = try await rig.loop.submit { box.value?.value.bytesGiven ?? 0 }.get()
            // The kernel's buffers on both sides of the connection.
            #expect(given <= 16_000_000)
            origin.openGate()
            #expect(try await outcome.get().end == Self.whole)
            #expect(ByteOrigin.isFlood(try #require(origin.bodies.first)))
            box.value = nil
        }
    }

    @Test(
        "An error response before the end of the body is final; the rest is not sent",
        arguments: ["Connection: close\r\n", ""], [false, true])
    func refused(field: String, isClosed: Bool) async throws {
        let count = 50_000_000
        try await Rig.run { rig in
            let refusal = "HTTP/1.1 413 Content Too Large\r\n\(field)Content-Length: 2\r\n\r\nno"
            let steps: [ByteOrigin.Step] = [.awaitRequestHead, .stopReading, .send(refusal)]
            let origin = try await rig.origin(steps + (isClosed ? [.close] : []))
            let box = LockedBox<NIOLoopBound<BodyGiver>?>(nil)
            let outcome = try await begin(
                rig, siteRequest(origin.port, .post, body: .length(UInt64(count))),
                BodyGiver.flood(count), giver: box
            ) { _, fetch in
                #expect(!fetch.acceptsBody && !fetch.isWritable)
                fetch.send(body: ByteBuffer(string: "dropped"))
                fetch.endBody()
            }.get()
            #expect(outcome.status == 413 && outcome.text == "no" && outcome.end == Self.whole)
            #expect(outcome.lateCalls == 0)
            try await rig.until { $0.connections == 0 }
            box.value = nil
        }
    }

    @Test("A successful response before the end of the body does not end the body")
    func answeredEarly() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [
                    .awaitRequestHead,
                    .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n"),
                    .awaitBodyEnding("0\r\n\r\n"), .send("0\r\n\r\n"),
                ])
            let request = siteRequest(origin.port, .post, body: .chunked)
            let outcome = try await rig.begin(request) { recorder, fetch in
                recorder.afterEach = { recorder in
                    guard recorder.bytesSeen == 2 else { return }
                    #expect(fetch.acceptsBody && fetch.isWritable)
                    fetch.send(body: ByteBuffer(string: "ho"))
                    fetch.endBody()
                }
            }.get()
            #expect(outcome.end == Self.whole && outcome.text == "hi")
            #expect(origin.bodies.map { String(buffer: $0) } == ["2\r\nho\r\n0\r\n\r\n"])
            #expect(try await rig.usage().idle == 1)
        }
    }

    @Test("A complete response before the end of the body costs the connection")
    func endedEarly() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin([.awaitRequestHead, .awaitBody(2), .send(Self.ok)])
            let request = siteRequest(origin.port, .post, body: .length(4))
            let outcome = try await rig.begin(request) { _, fetch in
                fetch.send(body: ByteBuffer(string: "ab"))
            }.get()
            #expect(outcome.end == Self.whole && outcome.text == "ok")
            try await rig.until { $0.connections == 0 }
        }
    }

    @Test("Cancelling within the body closes the connection and ends all callbacks")
    func cancelled() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin([
                .awaitRequestHead, .awaitBody(300_000), .stopReading, .awaitGate,
            ])
            let box = LockedBox<NIOLoopBound<(Recorder, OriginFetch)>?>(nil)
            let loop = rig.loop
            let request = siteRequest(origin.port, .post, body: .length(1 << 30))
            let outcome = try await rig.begin(request) { recorder, fetch in
                let giver = BodyGiver(fetch, BodyGiver.flood(1 << 30))
                box.value = NIOLoopBound((recorder, fetch), eventLoop: loop)
                recorder.whenMoreIsTaken = { _ in giver.give() }
            }
            while origin.bodies.isEmpty { await Task.yield() }
            try await loop.submit {
                guard let (recorder, fetch) = box.value?.value else { return }
                #expect(fetch.acceptsBody)
                fetch.cancel()
                #expect(!fetch.acceptsBody && !fetch.isWritable)
                fetch.send(body: ByteBuffer(string: "dropped"))
                #expect(recorder.seen.end == nil)
                recorder.giveUp()
            }.get()
            _ = try await outcome.get()
            try await rig.until { $0.connections == 0 && $0.fetches == 0 }
            origin.openGate()
            while origin.openConnections > 0 { await Task.yield() }
            box.value = nil
        }
    }
}
