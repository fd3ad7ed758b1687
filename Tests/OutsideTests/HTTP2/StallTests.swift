import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Slow or silent HTTP/2 clients are bounded in time")
    struct StallTests {
        private let image = TestImage.generated(.jpeg, byteCount: 500_000, seed: 670)

        private func count(_ stage: Stage, _ kind: String) -> Double? {
            stage.node.metric("nuthatch_timeouts_total{kind=\"\(kind)\"}")
        }

        /// The way in which a client stops accepting data.
        enum Stall: CaseIterable {
            /// The stream's window is closed from the start.
            case stream
            /// The stream's window is open, and the connection's is used up.
            case connection
            /// One byte at a time.
            case drip
        }

        @Test(
            "A window that stays closed ends its stream or connection after send-timeout",
            arguments: Stall.allCases)
        func window(stall: Stall) throws {
            let stage = try Stage("--send-timeout", "200ms")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            let window: UInt32 = stall == .connection ? 0x7FFF_FFFF : 0
            let client = try HTTP2Client(port: stage.node.port, settings: [(4, window)])
            let stream = client.nextStreamID()
            try client.send(.settingsAcknowledgement, .request(stream, stage.target(path)))
            // Another client downloads meanwhile.
            let other = try HTTP2Client(port: stage.node.port)
            let isOfStream = stall != .connection
            var ending: HTTP2Frame?
            _ = try Deadline.seconds(30).waitUntil {
                if stall == .drip { try? client.send(.window(stream, 1)) }
                ending = client.next(seconds: 0.05) {
                    $0.kind == (isOfStream ? .reset : .goAway)
                }
                let response = try other.get(stage.target(path))
                #expect(response.isWhole && response.body == image.bytes)
                return ending != nil
            }
            #expect(ending?.code == (isOfStream ? 8 : 11))
            #expect(count(stage, "send") == 1)
            if isOfStream {
                // The connection stays open.
                try client.send(.settings([(4, 0x7FFF_FFFF)]))
                #expect(try client.get("/healthz").status == 200)
            } else {
                #expect(client.waitForEnd() != .timedOut)
            }
            #expect(try other.get(stage.target(path)).isWhole)
        }

        @Test("A client that reads nothing is disconnected after send-timeout")
        func unread() throws {
            let stage = try Stage("--send-timeout", "200ms")
            defer { withExtendedLifetime(stage) {} }
            let large = TestImage.generated(.jpeg, byteCount: 20_000_000, seed: 671)
            let path = stage.origin.serve(large, fields: [lasting])
            let client = try HTTP2Client(
                port: stage.node.port, settings: [(4, 0x7FFF_FFFF)])
            try client.send(
                .settingsAcknowledgement, .window(0, 0x7000_0000), .request(1, stage.target(path)))
            expectSoon { count(stage, "send") == 1 }
            #expect(client.waitForEnd() == .reset)
        }

        /// The bytes sent before the client falls silent.
        private static let heads: [[UInt8]] = [
            // The first frame of an unfinished field block.
            HTTP2Frame(
                .headers, flags: HTTP2Frame.endStream, stream: 1, payload: FieldBlock.request()
            ).bytes,
            // A part of a frame.
            Array(HTTP2Frame.request(1, "/healthz").bytes.dropLast(3)),
        ]

        @Test("An unfinished request head ends the connection after head-timeout", arguments: heads)
        func head(sent: [UInt8]) throws {
            let stage = try Stage("--head-timeout", "200ms", "--idle-timeout", "1h")
            defer { withExtendedLifetime(stage) {} }
            let client = try HTTP2Client(port: stage.node.port)
            try client.socket.send(HTTP2Frame.settingsAcknowledgement.bytes + sent)
            #expect(client.waitForGoAway() == 11)
            #expect(client.waitForEnd() != .timedOut)
            #expect(count(stage, "head") == 1)
        }

        @Test("An unfinished preface ends the connection after head-timeout")
        func preface() throws {
            let stage = try Stage("--head-timeout", "200ms", "--idle-timeout", "1h")
            defer { withExtendedLifetime(stage) {} }
            let connection = try stage.node.connect()
            try connection.socket.send("PRI * HT")
            #expect(connection.waitForEnd() != .timedOut)
            #expect(count(stage, "head") == 1)
        }

        @Test("An idle connection gets GOAWAY with NO_ERROR after idle-timeout")
        func idle() throws {
            let stage = try Stage("--idle-timeout", "200ms")
            defer { withExtendedLifetime(stage) {} }
            let client = try HTTP2Client(port: stage.node.port)
            #expect(try client.get("/healthz").status == 200)
            #expect(client.waitForGoAway() == 0)
            #expect(client.waitForEnd() != .timedOut)
            #expect(count(stage, "idle") == 1)
        }

        @Test("A stalled request body ends its stream, not the connection, after body-timeout")
        func body() throws {
            let stage = try SiteStage("--body-timeout", "200ms", "--wait-timeout", "200ms")
            stage.origin.on("/it", .text("ok"))
            let client = try HTTP2Client(port: stage.node.port)
            try client.send(
                .settingsAcknowledgement,
                .request(
                    client.nextStreamID(), "/it", method: "POST", host: SiteStage.host,
                    hasBody: true),
                HTTP2Frame(.data, stream: 1, payload: [1, 2, 3]))
            let response = client.next { $0.kind == .headers && $0.stream == 1 }
            #expect(response != nil)
            #expect(FieldBlock.status(response?.payload ?? []) != 200)
            #expect(try client.get("/healthz", host: "other").status == 200)
        }

        @Test(
            "GOAWAY is sent in two steps, so that no request is lost between them (RFC 9113 §6.8)"
        )
        func drain() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            let gate = Gate()
            stage.origin.on("/it", OriginResponse(image).delayingHead(.gate(gate)))
            let client = try HTTP2Client(port: stage.node.port)
            try client.send(.settingsAcknowledgement, .request(1, stage.target("/it")))
            #expect(gate.waitForArrivals())
            stage.node.terminate()
            let first = client.next { $0.kind == .goAway }
            #expect(first?.number(at: 0) == 0x7FFF_FFFF && first?.code == 0)
            let ping = try #require(client.next { $0.kind == .ping })
            // Sent before the first GOAWAY is read.
            try client.send(
                .request(3, stage.target("/it")),
                HTTP2Frame(.ping, flags: HTTP2Frame.acknowledged, payload: ping.payload))
            let second = client.next { $0.kind == .goAway }
            #expect(second?.number(at: 0) == 3 && second?.code == 0)
            // Too late, and not covered by the last stream identifier.
            try client.send(.request(5, "/healthz"))
            gate.open()
            var whole: Set<UInt32> = []
            while whole.count < 2, let frame = client.next() {
                if frame.kind == .data {
                    let count = UInt32(frame.payload.count)
                    if count > 0 {
                        try client.send(.window(0, count), .window(frame.stream, count))
                    }
                    if frame.isSet(HTTP2Frame.endStream) { whole.insert(frame.stream) }
                }
                #expect(frame.stream != 5)
            }
            #expect(whole == [1, 3])
            #expect(client.waitForEnd() != .timedOut)
            client.socket.close()
            #expect(stage.node.waitForExit(seconds: 20) == 0)
        }
    }
}
