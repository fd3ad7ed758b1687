import Harness

/// Behaviour of some clients that is meant to keep others from being served.
struct Attack: Sendable {
    /// The objects that keep an attack going while they exist.
    typealias Resources = [AnyObject]

    let name: String
    /// The size at which the attack once stopped a node.
    let size: Int
    /// Additional flags of the node.
    var flags: [String] = []
    /// Begins the attack at a size, from the addresses of the attackers.
    let begin: @Sendable (AttackTestbed, _ size: Int, Attackers) throws -> Resources

    /// The attacking clients.
    struct Attackers: Sendable {
        /// The number of their addresses.
        var clients: Int

        func client(_ number: Int) -> String {
            let place = number % clients
            return "203.0.\(113 + place / 250).\(place % 250 + 1)"
        }
    }

    static let all: [Attack] = [
        Attack(name: "drip", size: 1_030) { testbed, size, attackers in
            try streams(testbed, size, attackers) { ("/drip?\($0)", 65_535) }
        },
        Attack(name: "windows", size: 256) { testbed, size, attackers in
            try streams(testbed, size, attackers) { ("/large?\($0)", 0) }
        },
        Attack(name: "uploads", size: 256) { testbed, size, attackers in
            try (0..<size).map { number in
                let isSmall = number % 2 == 0
                return try connection(
                    testbed, attackers.client(number),
                    AttackTestbed.request(
                        "/post", host: AttackTestbed.attackedSite, method: "POST",
                        fields: ["Content-Length: \(isSmall ? 10 : 200_000)"])
                        + Array(repeating: 0x78, count: isSmall ? 5 : 100))
            }
        },
        Attack(name: "hang-ups", size: 20) { testbed, size, attackers in
            [swarm(testbed, size, attackers) { _ in ("/broken", []) }]
        },
        Attack(name: "idle", size: 64, flags: ["--connections-limit", "500"]) {
            testbed, size, attackers in
            let operators = try (0..<size).map { _ in try testbed.node.connectAdmin() }
            return try operators
                + (0..<size).map { number in
                    try connection(testbed, attackers.client(number), [])
                }
        },
        Attack(name: "ranges", size: 60) { testbed, size, attackers in
            [swarm(testbed, size, attackers) { ("/stored?\($0)", ["Range: bytes=0-0"]) }]
        },
        Attack(name: "variants", size: 100) { testbed, size, attackers in
            [swarm(testbed, size, attackers) { ("/variant", ["X-Variant: \($0)"]) }]
        },
    ]

    private static func connection(
        _ testbed: AttackTestbed, _ client: String, _ bytes: [UInt8]
    ) throws -> HTTPConnection {
        let connection = try testbed.node.connect()
        try connection.socket.send(AttackTestbed.header(of: client) + bytes)
        return connection
    }

    /// Returns HTTP/2 connections with 128 unread requests each.
    ///
    /// Each request has a target and the window that the node may send on its stream.
    private static func streams(
        _ testbed: AttackTestbed, _ size: Int, _ attackers: Attackers,
        _ request: (Int) -> (target: String, window: UInt32)
    ) throws -> Resources {
        try stride(from: 0, to: size, by: 128).map { first in
            let connection = try HTTP2Client(
                port: testbed.node.port, settings: [(4, request(first).window)],
                behind: AttackTestbed.header(of: attackers.client(first / 128)))
            try connection.send(.settingsAcknowledgement)
            try connection.send(
                (first..<min(size, first + 128)).map {
                    .request(
                        connection.nextStreamID(), request($0).target,
                        host: AttackTestbed.attackedSite)
                })
            return connection
        }
    }

    /// Returns clients with a connection and a request each.
    private static func swarm(
        _ testbed: AttackTestbed, _ size: Int, _ attackers: Attackers,
        _ request: (Int) -> (target: String, fields: [String])
    ) -> ClientSwarm {
        ClientSwarm(
            port: testbed.node.port,
            (0..<size).map { number in
                let (target, fields) = request(number)
                var plan = SwarmClientPlan(target, host: AttackTestbed.attackedSite, fields: fields)
                plan.request = AttackTestbed.header(of: attackers.client(number)) + plan.request
                return plan
            })
    }
}

/// A node with two sites and an origin for each: one for normal clients, one for attackers.
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

    /// Waits until only the normal clients are connected and nothing is fetched.
    func waitUntilIdle() throws {
        let isAtRest = Deadline.seconds(60).waitUntil {
            let open = node.metric("nuthatch_connections_open") ?? .infinity
            return open < 256 && node.metric("nuthatch_fills_in_flight") == 0
        }
        guard isAtRest else { throw BenchError(description: "the node does not come to rest") }
    }

    /// Returns the PROXY protocol header with which a load balancer announces a client.
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
