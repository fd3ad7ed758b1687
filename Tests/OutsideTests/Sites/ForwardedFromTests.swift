import Foundation
import Harness
import Testing

extension Outside {
    /// A proxy in front of the node that sets X-Forwarded-For, -Proto and -Host itself.
    @Suite("X-Forwarded fields of a trusted proxy")
    struct ForwardedFromTests {
        private static let proxy = "127.0.0.2"
        private static let said = [
            "X-Forwarded-For: 198.51.100.1, 192.0.2.7", "X-Forwarded-Proto: https",
            "X-Forwarded-Host: a.example",
        ]

        private func stage(_ flags: String...) throws -> SiteStage {
            let stage = try SiteStage(
                "--forwarded-from", "\(Self.proxy)/32", "--access-log", "json",
                more: flags)
            stage.origin.on("/it", .text("ok", fields: [lasting]))
            return stage
        }

        private func ask(
            _ stage: SiteStage, from address: String, _ fields: [String] = said,
            host: String = "inner.example", method: String = "GET"
        ) throws -> Response {
            let connection = try HTTPConnection(port: stage.node.port, from: address)
            return try connection.get("/it", method: method, host: host, fields: fields)
        }

        @Test("Client, scheme and host of the fields apply to the site, the origin, and the log")
        func believed() throws {
            let stage = try stage()
            #expect(try ask(stage, from: Self.proxy).text == "ok")
            let sent = try #require(stage.origin.requests("/it").last).fields
            #expect(sent["X-Forwarded-For"] == "198.51.100.1, 192.0.2.7, \(Self.proxy)")
            #expect(sent["X-Forwarded-Proto"] == "https")
            #expect(sent["X-Forwarded-Host"] == SiteStage.host)
            #expect(stage.node.stop() == 0)
            // Not necessarily the last line: each loop writes its own lines.
            let lines = stage.node.standardOutput.split(separator: "\n")
            let line = try #require(lines.first { $0.contains("/it") })
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            #expect((object as? [String: Any])?["remote"] as? String == "192.0.2.7")
        }

        @Test("A request that arrived over https has a separate cache entry")
        func key() throws {
            let stage = try stage()
            #expect(try ask(stage, from: Self.proxy).text == "ok")
            #expect(try ask(stage, from: Self.proxy).isHit)
            let plain = ["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Host: a.example"]
            #expect(try !ask(stage, from: Self.proxy, plain).isHit)
            #expect(stage.fetches("/it") == 2)
        }

        @Test("The fields of an untrusted client are dropped")
        func others() throws {
            let stage = try stage()
            let response = try ask(stage, from: "127.0.0.3", host: SiteStage.host)
            #expect(response.text == "ok")
            let sent = try #require(stage.origin.requests("/it").last).fields
            #expect(sent["X-Forwarded-Proto"] == "http")
            #expect(sent["X-Forwarded-Host"] == SiteStage.host)
            // The host that such a client names is no site of this node.
            #expect(try ask(stage, from: "127.0.0.3").status == 404)
        }

        @Test("The PROXY protocol overrides the client address and does not enable these fields")
        func proxyProtocol() throws {
            let stage = try SiteStage("--trusted-proxy", "\(Self.proxy)/32")
            stage.origin.on("/it", .text("ok", fields: [lasting]))
            let connection = try HTTPConnection(port: stage.node.port, from: Self.proxy)
            let line = Array("PROXY TCP4 192.0.2.9 192.0.2.8 4321 80\r\n".utf8)
            let fields = [
                "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example",
                "Forwarded: host=evil.example",
            ]
            let request = HTTPConnection.request("/it", host: SiteStage.host, fields: fields)
            try connection.socket.send(line + request)
            #expect(connection.readResponse().text == "ok")
            let sent = try #require(stage.origin.requests("/it").last).fields
            #expect(sent["X-Forwarded-For"] == "192.0.2.9")
            #expect(sent["X-Forwarded-Proto"] == "http")
            #expect(sent["X-Forwarded-Host"] == SiteStage.host)
            #expect(sent["Forwarded"]?.contains("evil") == false)
        }

        @Test("Permission to purge depends on the client behind the proxy")
        func purge() throws {
            let stage = try stage("--purge-from", "192.0.2.0/24", "--purge-from", Self.proxy)
            let outsider = ["X-Forwarded-For: 198.51.100.1", "X-Forwarded-Host: a.example"]
            #expect(try ask(stage, from: Self.proxy, outsider, method: "PURGE").status == 403)
            #expect(try ask(stage, from: Self.proxy, method: "PURGE").status == 200)
            // The proxy's own address gives no permission, whatever a client has put before its
            // own.
            for said in ["\", 198.51.100.1", "unknown", "fe80::1%1"] {
                let fields = ["X-Forwarded-For: \(said)", "X-Forwarded-Host: a.example"]
                #expect(try ask(stage, from: Self.proxy, fields, method: "PURGE").status == 403)
            }
        }

        @Test("Each client behind the proxy has a share, and the proxy itself has none")
        func shares() throws {
            let stage = try stage("--connections-per-client", "2", "--fills-limit", "8")
            let held = try (0..<6).map { _ in
                let client = try HTTPConnection(port: stage.node.port, from: Self.proxy)
                #expect(try client.get("/healthz").status == 200)
                return client
            }
            let gate = Gate()
            defer { gate.open() }
            stage.origin.on("/held", .text("late").delayingHead(.gate(gate)))
            func ask(_ connection: HTTPConnection, _ query: Int, for client: Int) throws {
                let fields = [
                    "X-Forwarded-For: 192.0.2.\(client)", "X-Forwarded-Host: \(SiteStage.host)",
                ]
                let target = "/held?\(query)"
                try connection.socket.send(HTTPConnection.request(target, fields: fields))
            }
            // A quarter of eight is one client's share of fetches.
            for (query, connection) in held[..<2].enumerated() {
                try ask(connection, query, for: 1)
            }
            #expect(stage.origin.waitForRequests(2, "/held"))
            try ask(held[2], 2, for: 1)
            #expect(held[2].readResponse().status == 503)
            try ask(held[3], 3, for: 2)
            #expect(stage.origin.waitForRequests(3, "/held"))
            gate.open()
            for connection in [held[0], held[1], held[3]] {
                #expect(connection.readResponse().text == "late")
            }
        }

        @Test("A changed setting applies to the next request of an open connection")
        func reloaded() throws {
            let stage = try SettingsStage(opened)
            stage.origin.on("/it", .text("ok", fields: ["Cache-Control: no-store"]))
            let site = opened + "sites:\n  a.example: \(stage.origin.url(""))\n"
            try stage.change(site)
            let connection = try stage.node.connect()
            func schemeSaid() throws -> String? {
                let fields = ["X-Forwarded-Proto: https"]
                #expect(
                    try connection.get("/it", host: SiteStage.host, fields: fields).text == "ok")
                return stage.origin.requests("/it").last?.fields["X-Forwarded-Proto"]
            }
            #expect(try schemeSaid() == "http")
            try stage.change(site + "forwarded-from: 127.0.0.1\n")
            #expect(try schemeSaid() == "https")
            try stage.change(site)
            #expect(try schemeSaid() == "http")
        }
    }
}
