import Harness

/// Requests of clients behind a load balancer that uses the PROXY protocol.
enum Behind {
    static let flags = ["--trusted-proxy", "127.0.0.1/32"]
    /// The address of a well-behaved client.
    static let good = "198.51.100.7"
    /// The address of an abusive client.
    static let bad = "203.0.113.1"

    /// Returns the PROXY protocol header for a client.
    static func header(of client: String) -> [UInt8] {
        Array("PROXY TCP4 \(client) 192.0.2.8 4321 80\r\n".utf8)
    }

    static func plan(
        _ client: String, _ target: String, host: String = "localhost",
        behaviour: SwarmBehaviour = .readAll
    ) -> SwarmClientPlan {
        var plan = SwarmClientPlan(target, host: host, behaviour: behaviour)
        plan.request = header(of: client) + plan.request
        return plan
    }

    static func get(
        _ node: NodeProcess, as client: String = good, _ target: String,
        host: String = "localhost", expecting: TestImage? = nil
    ) throws -> Response {
        let connection = try node.connect()
        try connection.socket.send(
            header(of: client) + HTTPConnection.request(target, host: host))
        return connection.readResponse(expecting: expecting)
    }
}
