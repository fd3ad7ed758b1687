import Ground
import Harness
import NIOCore
import NIOPosix
import Origin
import Testing
import Wire

@Suite("Origins that switch protocols")
struct SwitchTests {
    private static let switched =
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

    private func request(_ port: UInt16) -> OriginFetchRequest {
        var request = siteRequest(port)
        request.upgrade = Array("websocket".utf8)
        return request
    }

    @Test("After a 101 bytes pass unchanged in both directions")
    func both() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [
                    .awaitRequestHead, .send(Self.switched + "hello"), .awaitBody(4),
                    .send("0\r\n\r\n"), .close,
                ])
            let outcome = try await rig.begin(request(origin.port)) { recorder, fetch in
                recorder.afterEach = {
                    // After the head alone, as the client speaks first.
                    if $0.bytesSeen == 0 { fetch.send(body: ByteBuffer(string: "ping")) }
                }
            }.get()
            #expect(outcome.status == 101 && outcome.bodyLength == nil)
            #expect(outcome.text == "hello0\r\n\r\n")
            #expect(outcome.end == .ended(delimitedByClose: true))
            #expect(origin.bodies.map { String(buffer: $0) } == ["ping"])
            #expect(origin.requests.count == 1)
        }
    }

    @Test("The end of the client's bytes is sent after them")
    func given() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [.awaitRequestHead, .send(Self.switched), .awaitBody(300_000), .awaitGate])
            let outcome = try await rig.begin(request(origin.port)) { recorder, fetch in
                recorder.afterEach = { _ in
                    fetch.send(body: ByteBuffer(repeating: 0x61, count: 300_000))
                    fetch.endBody()
                }
            }.get()
            #expect(outcome.end == .ended(delimitedByClose: false))
            while origin.bodies.isEmpty { await Task.yield() }
            #expect(origin.bodies.first?.readableBytes == 300_000)
            while origin.openConnections > 0 { await Task.yield() }
        }
    }

    @Test("Silence is no failure: the caller limits the idle time")
    func silence() async throws {
        try await Rig.run(settings: { $0.bodyRateMin = 1000 }) { rig in
            let origin = try await rig.origin(
                [.awaitRequestHead, .send(Self.switched), .awaitGate, .send("late"), .close])
            let head = LockedBox(false)
            let outcome = try await rig.begin(request(origin.port)) { recorder, _ in
                recorder.afterEach = { _ in head.value = true }
            }
            while !head.value { await Task.yield() }
            rig.lead.change { $0 = .seconds(3600) }
            origin.openGate()
            let seen = try await outcome.get()
            #expect(seen.text == "late" && seen.end == .ended(delimitedByClose: true))
        }
    }

    @Test("A response other than 101 is an ordinary one, and its connection is kept")
    func declined() async throws {
        try await Rig.run { rig in
            let response = "HTTP/1.1 426 No\r\nContent-Length: 2\r\n\r\nno"
            let origin = try await rig.origin(
                [
                    .awaitRequestHead, .send(response), .awaitRequestHead, .send(response),
                    .awaitGate,
                ])
            for _ in 1...2 {
                let outcome = try await rig.begin(request(origin.port)).get()
                #expect(outcome.status == 426 && outcome.text == "no")
            }
            #expect(origin.connections == 1)
        }
    }

    @Test(
        "A switch to a protocol that was not requested is a failure",
        arguments: ["Upgrade: chat\r\n", "", "Upgrade: websocket, chat\r\n"])
    func unasked(field: String) async throws {
        try await Rig.run { rig in
            let response = "HTTP/1.1 101 S\r\nConnection: Upgrade\r\n\(field)\r\n"
            let origin = try await rig.origin([.awaitRequestHead, .send(response)])
            let outcome = try await rig.begin(request(origin.port)).get()
            #expect(outcome.failure == .malformed("The origin switches protocols unexpectedly."))
        }
    }

    @Test("An origin that supports HTTP/2 is used over HTTP/1.1")
    func overHTTP1() async throws {
        let server = try Secure.server(protocols: [.http2, .http11])
        let agreed = LockedBox<[TLSApplicationProtocol?]>([])
        let trust = try Secure.trust()
        try await Rig.run(settings: { $0.trustStore = trust }) { rig in
            let origin = try await rig.origin(
                behind: Secure.behind(server) { parameters in
                    agreed.change { $0.append(parameters.applicationProtocol) }
                },
                [.awaitRequestHead, .send(Self.switched + "hello"), .close])
            var request = streamRequest(origin.port)
            request.upgrade = Array("websocket".utf8)
            let outcome = try await rig.begin(request).get()
            #expect(outcome.status == 101 && outcome.text == "hello")
            #expect(agreed.value == [.http11])
        }
    }
}
