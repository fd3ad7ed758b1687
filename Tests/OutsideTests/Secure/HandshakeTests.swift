import Foundation
import Harness
import Testing

extension Outside {
    @Suite("TLS handshakes are limited in number and time")
    struct HandshakeTests {
        static let failed = "nuthatch_tls_handshakes_total{outcome=\"failed\"}"
        static let refused = "nuthatch_tls_handshakes_total{outcome=\"refused\"}"
        static let late = "nuthatch_timeouts_total{kind=\"handshake\"}"

        private func isServing(_ stage: SecureStage) throws -> Bool {
            let response = try stage.curl(stage.url("/healthz", host: SecureStage.images))
            return response.exitStatus == 0 && response.status == 200
        }

        @Test("Clear text on the TLS port is closed and counted")
        func clearText() throws {
            let stage = try SecureStage()
            let texts = [
                Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8), HTTP2Frame.preface,
                Array("PROXY TCP4 192.0.2.7 192.0.2.8 4321 443\r\n".utf8), [0], [0x16, 0x02],
            ]
            for (index, text) in texts.enumerated() {
                let connection = try HTTPConnection(port: stage.node.securePort)
                try connection.socket.send(text)
                #expect(connection.waitForEnd() != .timedOut, "\(index)")
                stage.waitForFigure(Self.failed, Double(index + 1))
            }
            #expect(try isServing(stage))
        }

        @Test("A client that is silent, or stops in its ClientHello, is disconnected in time")
        func silent() throws {
            let stage = try SecureStage("--tls-handshake-timeout", "1s")
            // A record of 512 bytes, of which only the beginning is sent.
            let beginnings: [[UInt8]] = [[], [0x16], [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC]]
            let connections = try beginnings.map { beginning in
                let connection = try HTTPConnection(port: stage.node.securePort)
                try connection.socket.send(beginning)
                return connection
            }
            for connection in connections {
                #expect(connection.waitForEnd(seconds: 20) != .timedOut)
            }
            stage.waitForFigure(Self.late, 3)
            stage.waitForFigure("nuthatch_connections_open", 0)
            #expect(try isServing(stage))
        }

        @Test("A flood of handshake bytes is closed before the timeout")
        func endless() throws {
            let stage = try SecureStage("--tls-handshake-timeout", "1h")
            let connection = try HTTPConnection(port: stage.node.securePort)
            // A ClientHello of 16 MiB by its header, in records of 16 KiB.
            let record: [UInt8] = [0x16, 3, 1, 0x40, 0]
            let first = record + [1, 0xFF, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 16_380)
            try connection.socket.send(first)
            _ = try? connection.socket.send(
                (0..<16).flatMap { _ in record + [UInt8](repeating: 0, count: 16_384) })
            #expect(connection.waitForEnd() != .timedOut)
            stage.waitForFigure(Self.failed, 1)
        }

        @Test("Above the handshake limit connections are closed, and below it they succeed")
        func limit() throws {
            let stage = try SecureStage(
                "--tls-handshakes-limit", "4", "--loops", "1", "--tls-handshake-timeout", "1h")
            let silent = try (0..<4).map { _ in
                try HTTPConnection(port: stage.node.securePort)
            }
            stage.waitForFigure("nuthatch_connections_open", 4)
            let more = try (0..<10).map { _ in try HTTPConnection(port: stage.node.securePort) }
            for connection in more { #expect(connection.waitForEnd() != .timedOut) }
            stage.waitForFigure(Self.refused, 10)
            stage.waitForFigure("nuthatch_connections_open", 4)
            #expect(try !isServing(stage))
            // Established and clear-text connections are served.
            #expect(try stage.node.get("/healthz").status == 200)
            for connection in silent { connection.socket.close() }
            stage.waitForFigure("nuthatch_connections_open", 0)
            #expect(try isServing(stage))
        }

        @Test("Above connections-limit a TLS client is closed without clear-text bytes")
        func connections() throws {
            let stage = try SecureStage("--connections-limit", "2")
            // The readiness probe has disconnected.
            stage.waitForFigure("nuthatch_connections_open", 0)
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on("/held", OriginResponse.text("ok").delayingHead(.gate(gate)))
            let open = try (0..<2).map { _ in
                let client = try stage.node.connect()
                try client.socket.send(
                    HTTPConnection.request("/held", host: SecureStage.site))
                return client
            }
            stage.waitForFigure("nuthatch_waiters", 2)
            let refused = try stage.node.connect().readResponse()
            #expect(refused.status == 503)
            let connection = try HTTPConnection(port: stage.node.securePort)
            let response = connection.readResponse()
            #expect(response.status == 0 && response.ending != .timedOut, "\(response)")
            stage.waitForFigure("nuthatch_connections_refused_total", 2)
            gate.open()
            for client in open { #expect(client.readResponse().text == "ok") }
            for client in open { client.socket.close() }
            stage.waitForFigure("nuthatch_connections_open", 0)
            #expect(try isServing(stage))
        }

        @Test("Versions before 1.2 are refused, and 1.2 too if 1.3 is required")
        func versions() throws {
            let stage = try SecureStage()
            let old = ["-cipher", "DEFAULT@SECLEVEL=0"]
            for version in ["-tls1", "-tls1_1"] {
                let client = try OpenSSLClient(
                    port: stage.node.securePort, name: SecureStage.images,
                    authority: stage.authority, [version] + old)
                #expect(!client.isAnswered && client.status != 0, "\(client)")
                #expect(client.errors.contains("alert"), "\(client)")
            }
            stage.waitForFigure(Self.failed, 2)
            #expect(try stage.openssl("-tls1_2").isAnswered)
            let strict = try SecureStage("--tls-minimum", "1.3")
            #expect(try !strict.openssl("-tls1_2").isAnswered)
            #expect(try strict.openssl("-tls1_3").isAnswered)
        }

        @Test("A client whose ALPN offers neither HTTP/2 nor HTTP/1.1 is refused")
        func applicationProtocol() throws {
            let stage = try SecureStage()
            let none = try stage.openssl("-alpn", "spdy/3")
            #expect(!none.isAnswered && none.errors.contains("alert"), "\(none)")
            let client = try stage.openssl("-alpn", "spdy/3,http/1.1")
            #expect(client.output.contains("ALPN protocol: http/1.1") && client.isAnswered)
            #expect(try stage.openssl().output.contains("No ALPN negotiated"))
            let both = try stage.openssl("-alpn", "http/1.1,h2")
            #expect(both.output.contains("ALPN protocol: h2"), "\(both)")
        }

        @Test("Renegotiation is refused, and does not keep a connection open")
        func renegotiation() throws {
            let stage = try SecureStage()
            let client = try OpenSSLClient(
                port: stage.node.securePort, name: SecureStage.images,
                authority: stage.authority, ["-tls1_2"], sending: "R\n")
            #expect(!client.isAnswered, "\(client)")
            #expect(try isServing(stage))
        }

        @Test("The PROXY protocol header precedes TLS", arguments: ["--http1.1", "--http2"])
        func proxied(version: String) throws {
            let stage = try SecureStage("--trusted-proxy", "127.0.0.2/32")
            stage.origin.on("/it", .text("ok", fields: ["Cache-Control: no-store"]))
            let behind = ["--interface", "127.0.0.2", version]
            let response = try stage.curl.run(behind + ["--haproxy-protocol", stage.url("/it")])
            #expect(response.text == "ok" && response.exitStatus == 0, "\(response)")
            #expect(stage.origin.requests("/it").last?.fields["X-Forwarded-For"] == "127.0.0.2")
            #expect(try stage.curl.run(behind + [stage.url("/it")]).exitStatus != 0)
            #expect(try stage.curl(version, stage.url("/it")).text == "ok")
            #expect(try stage.curl(version, "--haproxy-protocol", stage.url("/it")).exitStatus != 0)
        }

        @Test(
            "The PROXY protocol gives the client address of a TLS connection",
            .enabled(if: (try? Program.find("python3")) != nil, "Python is not installed"))
        func proxiedName() throws {
            let stage = try SecureStage("--trusted-proxy", "127.0.0.2/32")
            stage.origin.on("/it", .text("ok", fields: ["Cache-Control: no-store"]))
            let script = """
                import socket, ssl, sys
                node, proxy = ("127.0.0.1", int(sys.argv[1])), ("127.0.0.2", 0)
                line = socket.create_connection(node, source_address=proxy)
                line.sendall(b"PROXY TCP4 192.0.2.7 192.0.2.8 4321 443\\r\\n")
                trusting = ssl.create_default_context(cafile=sys.argv[2])
                line = trusting.wrap_socket(line, server_hostname="\(SecureStage.site)")
                line.sendall(b"GET /it HTTP/1.1\\r\\nHost: \(SecureStage.site)\\r\\n")
                line.sendall(b"Connection: close\\r\\n\\r\\n")
                print(line.makefile("rb").read().decode())
                """
            let result = try Program.run(
                try Program.find("python3"),
                ["-c", script, "\(stage.node.securePort)", stage.authority.file])
            #expect(result.status == 0, "\(result.errors)")
            let request = try #require(stage.origin.requests("/it").last)
            #expect(request.fields["X-Forwarded-For"] == "192.0.2.7")
            #expect(request.fields["X-Forwarded-Proto"] == "https")
        }
    }
}
