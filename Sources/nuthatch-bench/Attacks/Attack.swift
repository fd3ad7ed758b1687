import Harness

/// Something that some clients do so that others are not served.
struct Attack: Sendable {
    /// What is kept as long as it goes on.
    typealias Held = [AnyObject]

    let name: String
    /// The size in which it once stopped a node.
    let size: Int
    /// Further flags of the node.
    var flags: [String] = []
    /// Begins it in a size, by those who are there.
    let begin: @Sendable (AttackStage, _ size: Int, Crowd) throws -> Held

    /// Those who take part.
    struct Crowd: Sendable {
        /// How many addresses they have.
        var clients: Int

        func client(_ number: Int) -> String {
            let place = number % clients
            return "203.0.\(113 + place / 250).\(place % 250 + 1)"
        }
    }

    static let all: [Attack] = [
        Attack(name: "drip", size: 1_030) { stage, size, crowd in
            try streams(stage, size, crowd) { ("/drip?\($0)", 65_535) }
        },
        Attack(name: "windows", size: 256) { stage, size, crowd in
            try streams(stage, size, crowd) { ("/large?\($0)", 0) }
        },
        Attack(name: "uploads", size: 256) { stage, size, crowd in
            try (0..<size).map { number in
                let isSmall = number % 2 == 0
                return try connection(
                    stage, crowd.client(number),
                    AttackStage.request(
                        "/post", host: AttackStage.bad, method: "POST",
                        fields: ["Content-Length: \(isSmall ? 10 : 200_000)"])
                        + Array(repeating: 0x78, count: isSmall ? 5 : 100))
            }
        },
        Attack(name: "hang-ups", size: 20) { stage, size, crowd in
            [swarm(stage, size, crowd) { _ in ("/broken", []) }]
        },
        Attack(name: "idle", size: 64, flags: ["--connections-limit", "500"]) {
            stage, size, crowd in
            let operators = try (0..<size).map { _ in try stage.node.connectAdmin() }
            return try operators
                + (0..<size).map { number in
                    try connection(stage, crowd.client(number), [])
                }
        },
        Attack(name: "ranges", size: 60) { stage, size, crowd in
            [swarm(stage, size, crowd) { ("/stored?\($0)", ["Range: bytes=0-0"]) }]
        },
        Attack(name: "variants", size: 100) { stage, size, crowd in
            [swarm(stage, size, crowd) { ("/variant", ["X-Variant: \($0)"]) }]
        },
    ]

    private static func connection(
        _ stage: AttackStage, _ client: String, _ bytes: [UInt8]
    ) throws -> HTTPConnection {
        let connection = try stage.node.connect()
        try connection.socket.send(AttackStage.header(of: client) + bytes)
        return connection
    }

    /// Requests over HTTP/2, 128 on a connection, of which nothing is read; each with its target
    /// and how much the node may send on it.
    private static func streams(
        _ stage: AttackStage, _ size: Int, _ crowd: Crowd,
        _ request: (Int) -> (target: String, window: UInt32)
    ) throws -> Held {
        try stride(from: 0, to: size, by: 128).map { first in
            let connection = try HTTP2Client(
                port: stage.node.port, settings: [(4, request(first).window)],
                behind: AttackStage.header(of: crowd.client(first / 128)))
            try connection.send(.settingsTaken)
            try connection.send(
                (first..<min(size, first + 128)).map {
                    .request(
                        connection.takeStream(), request($0).target, host: AttackStage.bad)
                })
            return connection
        }
    }

    /// Clients with a connection and a request each.
    private static func swarm(
        _ stage: AttackStage, _ size: Int, _ crowd: Crowd,
        _ request: (Int) -> (target: String, fields: [String])
    ) -> ClientSwarm {
        ClientSwarm(
            port: stage.node.port,
            (0..<size).map { number in
                let (target, fields) = request(number)
                var plan = SwarmClientPlan(target, host: AttackStage.bad, fields: fields)
                plan.request = AttackStage.header(of: crowd.client(number)) + plan.request
                return plan
            })
    }
}
