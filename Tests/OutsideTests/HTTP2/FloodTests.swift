import Foundation
import Harness
import Testing

extension Outside {
    /// Attacks on a running node while another client downloads from it.
    @Suite("An HTTP/2 flood ends only its own connection")
    struct FloodTests {
        /// An attack, and the permitted error codes of the resulting GOAWAY (RFC 9113 §7).
        struct Flood: Sendable, CustomTestStringConvertible {
            let name: String
            /// 11 is ENHANCE_YOUR_CALM, 1 PROTOCOL_ERROR.
            var codes: [UInt32] = [11]
            /// The frames sent once at the start.
            var first: [HTTP2Frame] = []
            /// The frames sent in each round; the argument is the number of the round.
            let frames: @Sendable (UInt32) -> [HTTP2Frame]

            var testDescription: String { name }
        }

        private static let post = HTTP2Frame.request(
            1, "/upload", method: "POST", host: SiteStage.host, hasBody: true)

        private static func get(_ stream: UInt32) -> HTTP2Frame {
            .request(stream, "/held", host: SiteStage.host)
        }

        private static let floods: [Flood] = [
            Flood(name: "requests that are reset at once (CVE-2023-44487)") { turn in
                [get(2 * turn + 1), .reset(2 * turn + 1)]
            },
            Flood(
                name: "requests that have the node reset them (CVE-2025-8671)", codes: [1, 5, 11]
            ) { turn in
                [get(2 * turn + 1), HTTP2Frame(.data, stream: 2 * turn + 1, payload: [1])]
            },
            Flood(name: "a window opened by nothing", codes: [1], first: [get(1)]) { _ in
                [.window(1, 0)]
            },
            // This exceeds the stream limit if the client is faster than the resets.
            Flood(name: "malformed requests", codes: [1, 11]) { turn in
                [
                    .request(
                        2 * turn + 1, "/held", host: SiteStage.host, fields: [("Upper", "case")])
                ]
            },
            Flood(
                name: "CONTINUATION without an end (CVE-2024-28182)",
                first: [
                    HTTP2Frame(
                        .headers, flags: HTTP2Frame.endStream, stream: 1,
                        payload: FieldBlock.request())
                ]
            ) { turn in
                [
                    HTTP2Frame(
                        .continuation, stream: 1, payload: FieldBlock.line("x-\(turn)", "y"))
                ]
            },
            Flood(name: "SETTINGS (CVE-2019-9515)") { _ in [.settings([(4, 1000)])] },
            Flood(name: "empty SETTINGS") { _ in [.settings()] },
            Flood(name: "answers to SETTINGS never sent", codes: [1]) { _ in
                [.settingsAcknowledgement]
            },
            Flood(name: "PING (CVE-2019-9512)") { _ in [.ping()] },
            Flood(name: "empty DATA (CVE-2019-9518)", first: [post]) { _ in
                [HTTP2Frame(.data, stream: 1)]
            },
            Flood(name: "DATA of one byte", first: [post]) { _ in
                [HTTP2Frame(.data, stream: 1, payload: [0])]
            },
            Flood(name: "PRIORITY (CVE-2019-9513)") { _ in
                [HTTP2Frame(.priority, stream: 1, payload: [0, 0, 0, 0, 16])]
            },
            Flood(name: "PRIORITY_UPDATE") { _ in
                [HTTP2Frame(type: 0x10, payload: [0, 0, 0, 1] + Array("u=1".utf8))]
            },
            Flood(name: "WINDOW_UPDATE") { _ in [.window(0, 1)] },
            Flood(name: "frames of an unknown type") { _ in [HTTP2Frame(type: 0xFE)] },
            Flood(
                name: "a few bytes that stand for a huge head (CVE-2016-6581)",
                first: [
                    HTTP2Frame(
                        .headers, flags: HTTP2Frame.endHeaders | HTTP2Frame.endStream, stream: 1,
                        payload: FieldBlock.request()
                            + FieldBlock.incrementallyIndexed(
                                "a", String(repeating: "v", count: 3_900))
                            + [UInt8](repeating: FieldBlock.firstDynamicIndex, count: 10_000))
                ]
            ) { _ in [] },
            Flood(
                name: "a window that overflows", codes: [3],
                first: [.window(0, 0x7FFF_FFFF), .window(0, 0x7FFF_FFFF)]
            ) { _ in [] },
            Flood(
                name: "a frame above the size", codes: [6],
                first: [
                    HTTP2Frame(.headers, stream: 1, payload: [UInt8](repeating: 0, count: 17_000))
                ]
            ) { _ in [] },
            Flood(
                name: "DATA on no stream", codes: [1], first: [HTTP2Frame(.data, payload: [1])]
            ) { _ in [] },
            Flood(
                name: "a request with an even number", codes: [1], first: [get(2)]
            ) { _ in [] },
            Flood(
                name: "a section that cannot be read", codes: [9],
                first: [
                    HTTP2Frame(
                        .headers, flags: HTTP2Frame.endHeaders | HTTP2Frame.endStream, stream: 1,
                        payload: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
                ]
            ) { _ in [] },
        ]

        @Test(
            "A flood gets a GOAWAY with its reason, a download goes on, and no resource leaks",
            arguments: floods)
        func flood(_ flood: Flood) throws {
            let stage = try SiteStage("--send-timeout", "60s")
            let (gate, held) = (Gate(), Gate())
            let image = TestImage.generated(.jpeg, byteCount: 1_000_000, seed: 660)
            stage.origin.on("/it", OriginResponse(image).stalling(at: 300_000, .gate(gate)))
            stage.origin.on(
                "/held", .text("ok", fields: ["Cache-Control: no-store"]).delayingHead(.gate(held)))
            var curl = Curl()
            curl.hosts = [SiteStage.host]
            let running = try curl.start([
                "--http2-prior-knowledge", "http://\(SiteStage.host):\(stage.node.port)/it",
            ])
            #expect(gate.waitForArrivals())

            let client = try HTTP2Client(port: stage.node.port)
            try client.send(.settingsAcknowledgement)
            try client.send(flood.first)
            var goAway: HTTP2Frame?
            for turn: UInt32 in 0..<5_000 where goAway == nil {
                let frames = flood.frames(turn)
                // The node may have closed before everything is sent; its frames are read
                // afterwards.
                if !frames.isEmpty { try? client.send(frames) }
                let isWaited = frames.isEmpty || client.end != nil
                goAway = client.next(seconds: isWaited ? 20 : 0) { $0.kind == .goAway }
                if frames.isEmpty { break }
            }
            if goAway == nil { goAway = client.next { $0.kind == .goAway } }
            #expect(goAway?.code.map(flood.codes.contains) == true, "\(String(describing: goAway))")
            #expect(client.waitForEnd() != .timedOut)

            gate.open()
            held.open()
            let response = running.wait()
            let isSame = response.body == Data(image.bytes)
            #expect(isSame && response.exitStatus == 0, "\(response)")
            client.socket.close()
            expectSoon(20) {
                stage.node.metric("nuthatch_connections_open") == 0
                    && stage.node.metric("nuthatch_waiters") == 0
                    && stage.node.metric("nuthatch_fills_in_flight") == 0
            }
            #expect(stage.node.isRunning)
        }

        @Test("Streams above the limit are refused, and the others get responses")
        func streams() throws {
            let stage = try SiteStage("--streams-limit", "10")
            let held = Gate()
            stage.origin.on(
                "/held", .text("ok", fields: ["Cache-Control: no-store"]).delayingHead(.gate(held)))
            // The client does not know its SETTINGS yet, so more streams than allowed are no error
            // (RFC 9113 §5.1.2).
            let client = try HTTP2Client(port: stage.node.port)
            try client.send((0..<20).map { Self.get(2 * $0 + 1) })
            var refused: Set<UInt32> = []
            while refused.count < 10, let frame = client.next() {
                guard frame.kind == .reset else { continue }
                #expect(frame.code == 7)
                refused.insert(frame.stream)
            }
            #expect(refused == Set((10..<20).map { 2 * $0 + 1 }))
            held.open()
            var responded: Set<UInt32> = []
            while responded.count < 10, let frame = client.next() {
                if frame.kind == .headers { responded.insert(frame.stream) }
            }
            #expect(responded == Set((0..<10).map { 2 * $0 + 1 }))
            #expect(client.end == nil)
        }
    }
}
