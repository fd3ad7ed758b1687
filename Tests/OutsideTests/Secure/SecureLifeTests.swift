import Foundation
import Glibc
import Harness
import Testing

extension Outside {
    @Suite("A node with certificates behaves like one without")
    struct SecureLifeTests {
        private let image = TestImage.generated(.jpeg, byteCount: 2_000_000, seed: 650)

        @Test("The access log has the HTTP version", arguments: ["combined", "json"])
        func accessLog(format: String) throws {
            let stage = try SecureStage("--access-log", format)
            let path = stage.origin.serve(image, fields: [lasting])
            for way in [Way.h1OverTLS13, .h2OverTLS13, .h2c] {
                let target = ImageRequestTarget.forURL(stage.origin.url(path))
                #expect(try way.ask(stage, target, host: SecureStage.images).exitStatus == 0)
            }
            #expect(stage.node.stop() == 0)
            let lines = stage.node.standardOutput.split(separator: "\n").filter {
                $0.contains("/v1/image?url=")
            }
            try #require(lines.count == 3, "\(stage.node.output)")
            // Each loop writes its own lines, in no order among the loops. In JSON the slash may be
            // escaped.
            let plain = lines.map { $0.replacing("\\/", with: "/") }
            #expect(plain.count { $0.contains("HTTP/1.1") } == 1, "\(lines)")
            #expect(plain.count { $0.contains("HTTP/2.0") } == 2, "\(lines)")
            for line in lines {
                #expect(line.contains("127.0.0.1") && line.contains("2000000"), "\(line)")
            }
        }

        @Test("SIGTERM lets responses in progress end", arguments: Way.allCases)
        func drains(way: Way) throws {
            let stage = try SecureStage()
            let gate = Gate()
            stage.origin.on("/it", OriginResponse(image).stalling(at: 500_000, .gate(gate)))
            let target = ImageRequestTarget.forURL(stage.origin.url("/it"))
            let running = try stage.curl.start(
                way.options + [way.url(stage, target, host: SecureStage.images)])
            #expect(gate.waitForArrivals())
            expectSoon(20) { running.bodyByteCount > 0 }
            stage.node.terminate()
            expectSoon(20) { (try? stage.node.connect()) == nil }
            #expect(stage.node.isRunning)
            gate.open()
            let response = running.wait()
            let isSame = response.body == Data(image.bytes)
            #expect(
                isSame && response.exitStatus == 0 && response.version == way.version, "\(response)"
            )
            #expect(stage.node.waitForExit() == 0, "\(stage.node.output)")
        }

        @Test(
            "Responses that do not end in time are cut off and do not look complete",
            arguments: Way.allCases)
        func cutOff(way: Way) throws {
            let stage = try SecureStage("--drain-timeout", "200ms")
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on(
                "/it",
                OriginResponse(image, framing: .chunked(bytesMax: 100_000))
                    .stalling(at: 500_000, .gate(gate)))
            let target = ImageRequestTarget.forURL(stage.origin.url("/it"))
            let running = try stage.curl.start(
                way.options + [way.url(stage, target, host: SecureStage.images)])
            #expect(gate.waitForArrivals())
            expectSoon(20) { running.bodyByteCount > 0 }
            #expect(stage.node.stop(seconds: 30) == 1)
            let response = running.wait()
            #expect([16, 18, 55, 56, 92].contains(response.exitStatus), "\(response)")
        }

        @Test("Idle connections and unfinished handshakes do not delay the stop")
        func idle() throws {
            let stage = try SecureStage("--drain-timeout", "1h")
            let silent = try HTTPConnection(port: stage.node.securePort)
            let unused = try HTTP2Client(port: stage.node.port)
            #expect(unused.next { $0.kind == .settings } != nil)
            stage.waitForFigure("nuthatch_connections_open", 2)
            stage.node.terminate()
            #expect(silent.waitForEnd() != .timedOut)
            #expect(
                unused.next { $0.kind == .ping }.map {
                    try? unused.send(
                        HTTP2Frame(.ping, flags: HTTP2Frame.acknowledged, payload: $0.payload))
                } != nil)
            #expect(unused.waitForEnd() != .timedOut)
            unused.socket.close()
            #expect(stage.node.waitForExit(seconds: 20) == 0)
        }

        @Test(
            "A slow client over TLS gets every byte of a large image",
            arguments: ["--http1.1", "--http2"])
        func slow(version: String) throws {
            let stage = try SecureStage()
            let path = stage.origin.serve(image, fields: [lasting])
            let whole = Data(image.bytes)
            for _ in 0..<2 {
                let response = try stage.curl(version, "--limit-rate", "2M", stage.image(path))
                let isSame = response.body == whole
                #expect(isSame && response.exitStatus == 0, "\(response)")
            }
        }

        @Test(
            "A client that reads nothing is disconnected after send-timeout",
            arguments: ["--http1.1", "--http2"])
        func stopped(version: String) throws {
            let stage = try SecureStage("--send-timeout", "400ms")
            let large = TestImage.generated(.jpeg, byteCount: 30_000_000, seed: 651)
            let path = stage.origin.serve(large, fields: [lasting])
            let running = try stage.curl.start([version, "--limit-rate", "1M", stage.image(path)])
            expectSoon(20) { running.bodyByteCount > 0 }
            running.signal(SIGSTOP)
            stage.waitForFigure("nuthatch_timeouts_total{kind=\"send\"}", 1)
            stage.waitForFigure("nuthatch_connections_open", 0)
            running.signal(SIGCONT)
            let response = running.wait()
            #expect([18, 56, 92].contains(response.exitStatus), "\(response)")
        }

        @Test("Settings that require TLS are refused at the start without it")
        func alone() throws {
            let stage = try SecureStage()
            for flags in [
                ["--plain-listen", "127.0.0.1:8089"], ["--client-ca", stage.authority.file],
                ["--tls-key", stage.authority.file],
            ] {
                let result = try NodeProcess.run(["check-config"] + flags)
                #expect(result.status == 78, "\(flags)")
                #expect(
                    (result.errors + String(decoding: result.output, as: UTF8.self))
                        .contains("tls-certificate"))
            }
        }
    }
}
