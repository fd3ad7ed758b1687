import Harness

/// A node with two sites, and their origins: one for those who behave, one for those who do not.
final class AttackTestbed {
    static let healthySite = "good.example"
    static let attackedSite = "bad.example"

    let node: NodeProcess
    let origin: ScriptedOrigin
    let attackedOrigin: ScriptedOrigin

    init(_ flags: [String]) throws {
        origin = try ScriptedOrigin(host: "127.0.0.9", keepsLog: false)
        attackedOrigin = try ScriptedOrigin(keepsLog: false)
        let image = TestImage.generated(.gif, byteCount: 10_000, seed: 1)
        origin.onAnyOtherPath { _ in OriginResponse(image, fields: ["Cache-Control: max-age=86400"])
        }
        Self.script(attackedOrigin)
        node = try NodeProcess(
            [
                "--log-level", "error", "--trusted-proxy", "127.0.0.1/32",
                "--site", "\(Self.healthySite)=\(origin.url(""))",
                "--site", "\(Self.attackedSite)=\(attackedOrigin.url(""))",
            ] + flags)
        let hot = try send("/hot")
        guard hot.status == 200, hot.isWhole else {
            throw BenchError(description: "the node does not serve: \(hot)")
        }
    }

    private static func script(_ origin: ScriptedOrigin) {
        let large = TestImage.generated(.jpeg, byteCount: 5_000_000, seed: 2)
        let small = TestImage.generated(.jpeg, byteCount: 1_000, seed: 3)
        origin.on("/page", .text("ok", fields: ["Cache-Control: no-store"]))
        origin.on("/drip", OriginResponse(small).dripping(bytesMax: 1, seconds: 20))
        origin.on("/broken", OriginResponse(small).truncatedInHead(.reset))
        origin.on("/large", OriginResponse(large, fields: ["Cache-Control: no-store"]))
        origin.on("/stored", OriginResponse(large, fields: ["Cache-Control: max-age=86400"]))
        origin.on(
            "/variant",
            OriginResponse(small, fields: ["Cache-Control: max-age=86400", "Vary: X-Variant"]))
    }

    /// Waits until nobody is connected but those who go on, and nothing is fetched.
    func waitUntilIdle() throws {
        let isAtRest = Deadline.seconds(60).waitUntil {
            let open = node.metric("nuthatch_connections_open") ?? .infinity
            return open < 256 && node.metric("nuthatch_fills_in_flight") == 0
        }
        guard isAtRest else { throw BenchError(description: "the node does not come to rest") }
    }

    /// What the load balancer says of a client before its first request.
    static func header(of client: String) -> [UInt8] {
        Array("PROXY TCP4 \(client) 192.0.2.8 4321 80\r\n".utf8)
    }

    static func request(
        _ target: String, host: String, method: String = "GET", fields: [String] = []
    ) -> [UInt8] {
        HTTPConnection.request(target, method: method, host: host, fields: fields)
    }

    private func send(_ target: String) throws -> Response {
        let connection = try node.connect()
        try connection.socket.send(
            Self.header(of: "198.51.100.7") + Self.request(target, host: Self.healthySite))
        return connection.readResponse()
    }
}
