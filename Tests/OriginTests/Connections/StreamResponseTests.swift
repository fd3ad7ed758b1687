import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing
import Trials
import Wire

@Suite("Responses over HTTP/2")
struct StreamResponseTests {
    static let whole = Outcome.End.ended(delimitedByClose: false)

    @Test("Cancelling one fetch resets its stream, and the connection continues")
    func cancelled() async throws {
        try await withStreamOrigin({ server, stream, head in
            server.head(stream, "content-length: 100\r\n")
            server.session.write(stream, ByteBuffer(string: "hello"))
            if head.contains("/whole") {
                server.session.write(stream, ByteBuffer(repeating: 7, count: 95))
                server.session.end(stream)
            }
        }) { rig, origin in
            _ = try await rig.beginSecure(origin.port) { recorder, fetch in
                recorder.afterEach = { recorder in
                    guard recorder.bytesSeen > 0 else { return }
                    fetch.cancel()
                    recorder.giveUp()
                }
            }.get()
            while origin.log.value.resets.isEmpty { await Task.yield() }
            #expect(origin.log.value.resets == [.cancel])
            let next = try await rig.getSecure(origin.port, path: "/whole")
            #expect(next.body.readableBytes == 100)
            #expect(origin.log.value.connections == 1)
        }
    }

    @Test("After GOAWAY running fetches end normally, and new ones use another connection")
    func goAway() async throws {
        let held = LockedBox<[Int32]>([])
        try await withStreamOrigin({ server, stream, head in
            guard head.contains("/held") else { return server.answer(stream, "ok") }
            held.change { $0.append(stream.id) }
            server.head(stream, "")
            server.session.write(stream, ByteBuffer(string: "be"))
        }) { rig, origin in
            let running = try await rig.beginSecure(origin.port, path: "/held")
            while held.value.isEmpty { await Task.yield() }
            try await origin.with { $0.session.shutDownGracefully() }
            while try await rig.getSecure(origin.port).text != "ok" {}
            while origin.log.value.connections < 2 {
                #expect(try await rig.getSecure(origin.port).text == "ok")
            }
            try await origin.with { server in
                for stream in server.session.streams {
                    server.session.write(stream, ByteBuffer(string: "gun"))
                    server.session.end(stream)
                }
            }
            let outcome = try await running.get()
            #expect(outcome.text == "begun" && outcome.end == Self.whole)
            while origin.log.value.open > 1 { await Task.yield() }
        }
    }

    @Test("A request that the origin did not process is retried once, whatever the method")
    func notActedOn() async throws {
        try await withStreamOrigin({ server, stream, head in
            guard stream.id > 1 else { return server.answer(stream, "first") }
            // GOAWAY with the previous stream as the last.
            server.raw([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0])
        }) { rig, origin in
            #expect(try await rig.getSecure(origin.port).text == "first")
            let post = try await rig.begin(streamRequest(origin.port, .post)).get()
            #expect(post.text == "first")
            #expect(origin.log.value.connections == 2)
        }
    }

    @Test("A refused stream is retried once; the second refusal is a failure")
    func refused() async throws {
        let count = LockedBox(0)
        try await withStreamOrigin({ server, stream, head in
            count.change { $0 += 1 }
            if count.value == 1 || head.contains("/never") {
                server.session.reset(stream, .refusedStream)
            } else {
                server.answer(stream, "ok")
            }
        }) { rig, origin in
            #expect(try await rig.getSecure(origin.port).text == "ok")
            #expect(count.value == 2)
            let outcome = try await rig.getSecure(origin.port, path: "/never")
            #expect(outcome.failure == .http2(.refusedStream, byOrigin: true))
            #expect(count.value == 4 && origin.log.value.connections == 1)
        }
    }

    @Test("A stream that the origin resets fails, and no other does")
    func brokenOff() async throws {
        try await withStreamOrigin({ server, stream, head in
            guard head.contains("/bad") else { return server.answer(stream, "ok") }
            server.head(stream, "content-length: 10\r\n")
            server.session.write(stream, ByteBuffer(string: "hello"))
            server.flush()
            server.session.reset(stream, .internalError)
        }) { rig, origin in
            let outcome = try await rig.getSecure(origin.port, path: "/bad")
            #expect(outcome.failure == .http2(.internalError, byOrigin: true))
            #expect(try await rig.getSecure(origin.port).text == "ok")
            #expect(origin.log.value.connections == 1)
        }
    }

    @Test("A body of another length than announced is invalid")
    func lengths() async throws {
        for (length, failure) in [
            (9, OriginFailure.http2(.protocolError, byOrigin: false)),
            (1, OriginFailure.http2(.protocolError, byOrigin: false)),
        ] {
            try await withStreamOrigin({ server, stream, head in
                server.head(stream, "content-length: \(length)\r\n")
                server.session.write(stream, ByteBuffer(string: "hello"))
                server.session.end(stream)
            }) { rig, origin in
                let outcome = try await rig.getSecure(origin.port)
                #expect(outcome.failure == failure)
            }
        }
    }

    @Test("A lost connection fails responses in progress, and unanswered requests are retried")
    func cut() async throws {
        let count = LockedBox(0)
        try await withStreamOrigin({ server, stream, head in
            count.change { $0 += 1 }
            switch count.value {
            case 1: server.answer(stream, "ok")
            case 2:
                server.head(stream, "")
                server.session.write(stream, ByteBuffer(string: "hello"))
            case 3: server.close()
            default: server.answer(stream, "again")
            }
        }) { rig, origin in
            #expect(try await rig.getSecure(origin.port).text == "ok")
            let running = try await rig.beginSecure(origin.port)
            while count.value < 2 { await Task.yield() }
            let waiting = try await rig.beginSecure(origin.port)
            let cut = try await running.get()
            #expect(cut.failure == .truncated(expected: nil, received: 5))
            #expect(try await waiting.get().text == "again")
            #expect(origin.log.value.connections == 2)
        }
    }

    @Test("Interim responses, trailers, HEAD and empty bodies are as over HTTP/1.1")
    func shapes() async throws {
        try await withStreamOrigin({ server, stream, head in
            if head.hasPrefix("HEAD ") {
                server.head(stream, "content-length: 77\r\n", ends: true)
            } else if head.contains("/none") {
                server.head(stream, status: 204, "", ends: true)
            } else {
                let early = Array("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".utf8)
                server.session.sendInterimResponse(stream, head: early.span)
                server.head(stream, "x: y\r\n")
                server.session.write(stream, ByteBuffer(string: "body"))
                server.session.end(stream, trailers: Array("x-sum: 1\r\n".utf8))
            }
        }) { rig, origin in
            let outcome = try await rig.begin(streamRequest(origin.port)).get()
            #expect(outcome.interims.count == 1 && outcome.text == "body")
            #expect(outcome.trailers == "x-sum: 1\r\n" && outcome.bodyLength == nil)
            #expect(outcome.head.contains("\r\nx: y\r\n"))
            let head = try await rig.begin(streamRequest(origin.port, .head)).get()
            #expect(head.status == 200 && head.bodyLength == 0 && head.end == Self.whole)
            let none = try await rig.begin(streamRequest(origin.port, path: "/none")).get()
            #expect(none.status == 204 && none.end == Self.whole)
            #expect(origin.log.value.connections == 1)
            #expect(origin.log.value.requests[0].contains("\r\nHost: a.example\r\n"))
        }
    }

    @Test("A request's body arrives with its trailers, at the origin's pace")
    func requestBody() async throws {
        let count = Trials.count(1_000_000)
        try await withStreamOrigin({ server, stream, head in
            server.head(stream, "")
        }) { rig, origin in
            let pieces = BodyGiver.flood(count)
            let trailers = try #require(Trailers(Array("x-sum: 1\r\n".utf8)))
            let future = try await rig.begin(
                streamRequest(origin.port, .post, body: .chunked)
            ) { recorder, fetch in
                let giver = BodyGiver(fetch, pieces, trailers: trailers)
                recorder.whenMoreIsTaken = { _ in giver.give() }
            }
            while origin.log.value.bodies.isEmpty { await Task.yield() }
            let body = origin.log.value.bodies[0]
            #expect(body.hasSuffix("x-sum: 1\r\n"))
            try await origin.with { server in
                for stream in server.session.streams { server.session.end(stream) }
            }
            #expect(try await future.get().end == Self.whole)
            #expect(try await rig.usage().idle == 1)
        }
    }

    @Test("A head above the limit is refused, and the connection stays usable")
    func largeHead() async throws {
        try await withStreamOrigin({ server, stream, head in
            guard head.contains("/large") else { return server.answer(stream, "ok") }
            server.head(stream, String(repeating: "x: y\r\n", count: 200), ends: true)
        }) { rig, origin in
            let outcome = try await rig.getSecure(origin.port, path: "/large")
            guard case .headTooLarge? = outcome.failure else {
                Issue.record("\(String(describing: outcome.failure))")
                return
            }
            #expect(try await rig.getSecure(origin.port).text == "ok")
            #expect(origin.log.value.connections == 1)
        }
    }

    @Test("A connection that is silent for the limit on the head is not joined")
    func silent() async throws {
        try await withStreamOrigin(
            // Long enough for the second response on a loaded machine.
            client: { $0.headLimit = .seconds(1) },
            { server, stream, head in
                if server.session.openStreamCount > 1 || head.contains("/ok") {
                    server.answer(stream, "ok")
                }
            }
        ) { rig, origin in
            let outcome = try await rig.getSecure(origin.port)
            #expect(outcome.failure == .timedOut(.awaitingHead, limit: .seconds(1)))
            #expect(try await rig.getSecure(origin.port, path: "/ok").text == "ok")
            #expect(origin.log.value.connections == 2)
        }
    }
}
