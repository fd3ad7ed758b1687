import Harness
import Testing

extension Outside {
    /// A load balancer in front of the node sends the client's address.
    @Suite("The PROXY protocol from a trusted proxy")
    struct ProxyProtocolTests {
        private static let proxy = "127.0.0.2"

        private func stage() throws -> SiteStage {
            let stage = try SiteStage("--trusted-proxy", "\(Self.proxy)/32")
            stage.origin.on("/it", .text("ok", fields: ["Cache-Control: no-store"]))
            return stage
        }

        private func ask(
            _ stage: SiteStage, from address: String, _ header: [UInt8]
        ) throws -> Response {
            let connection = try HTTPConnection(port: stage.node.port, from: address)
            try connection.socket.send(
                header + HTTPConnection.request("/it", host: SiteStage.host))
            return connection.readResponse(seconds: 10)
        }

        private func forwarded(_ stage: SiteStage) -> String? {
            stage.origin.requests("/it").last?.fields["X-Forwarded-For"]
        }

        /// Returns a version 2 header with IPv4 addresses.
        private static func second(_ family: UInt8, _ addresses: [UInt8]) -> [UInt8] {
            let signature: [UInt8] = [
                0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
            ]
            return signature + [0x21, family, 0, UInt8(addresses.count)] + addresses
        }

        @Test("Version 1 gives the client address")
        func first() throws {
            let stage = try stage()
            let line = Array("PROXY TCP4 192.0.2.7 192.0.2.8 4321 80\r\n".utf8)
            #expect(try ask(stage, from: Self.proxy, line).text == "ok")
            #expect(forwarded(stage) == "192.0.2.7")
            let sixth = Array("PROXY TCP6 2001:db8::7 2001:db8::8 4321 80\r\n".utf8)
            #expect(try ask(stage, from: Self.proxy, sixth).text == "ok")
            #expect(forwarded(stage)?.contains("2001:db8::7") == true)
        }

        @Test("Version 2 gives the client address")
        func secondVersion() throws {
            let stage = try stage()
            let header = Self.second(0x11, [192, 0, 2, 9, 192, 0, 2, 8, 0x10, 0xE1, 0, 80])
            #expect(try ask(stage, from: Self.proxy, header).text == "ok")
            #expect(forwarded(stage) == "192.0.2.9")
        }

        @Test("From an untrusted address the header is an invalid request")
        func untrusted() throws {
            let stage = try stage()
            let line = Array("PROXY TCP4 192.0.2.7 192.0.2.8 4321 80\r\n".utf8)
            let response = try ask(stage, from: "127.0.0.3", line)
            #expect(response.status == 400 || response.status == 0, "\(response)")
            #expect(stage.fetches("/it") == 0)
            #expect(try ask(stage, from: "127.0.0.3", []).text == "ok")
            #expect(forwarded(stage) == "127.0.0.3")
        }

        @Test("A malformed header of a trusted proxy is refused")
        func broken() throws {
            let stage = try stage()
            for text in [
                "PROXY TCP4 192.0.2.7\r\n", "PROXY TCP4 999.0.2.7 192.0.2.8 1 2\r\n",
                "PROXY " + String(repeating: "x", count: 200) + "\r\n",
            ] {
                let response = try ask(stage, from: Self.proxy, Array(text.utf8))
                #expect(response.status == 400 || response.status == 0, "\(text): \(response)")
            }
            #expect(stage.fetches("/it") == 0)
            #expect(stage.node.isRunning)
        }
    }
}
