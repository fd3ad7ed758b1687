import Harness
import Testing

extension Outside {
    @Suite("Idle connections make way for active ones")
    struct PlaceTests {
        private static let yielded = "nuthatch_connections_yielded_total"

        private func health(_ node: NodeProcess) throws -> Int? {
            try NodeProcess.run(["health", "--admin-listen", "127.0.0.1:\(node.adminPort)"]).status
        }

        private func isServed(_ node: NodeProcess) throws -> Bool {
            try node.get("/healthz").status == 200
        }

        @Test("Idle connections that fill the admin port block neither health checks nor operators")
        func idleOperators() throws {
            let node = try NodeProcess()
            // More than there are slots: the first ones are already closed.
            let idle = try (0..<200).map { _ in try node.connectAdmin() }
            #expect(try health(node) == 0)
            #expect(try node.connectAdmin().get("/admin/v1/status").status == 200)
            #expect(idle[0].waitForEnd() != .timedOut)
        }

        @Test("An authenticated operator keeps the connection, however many others connect")
        func provenOperators() throws {
            let stage = try GuardedNode()
            let token = ["Authorization: Bearer \(GuardedNode.words[0].token)"]
            let admin = try stage.node.connectAdmin()
            #expect(try admin.get("/admin/v1/status", fields: token).status == 200)
            let idle = try (0..<200).map { _ in try stage.node.connectAdmin() }
            #expect(try admin.get("/admin/v1/status", fields: token).status == 200)
            #expect(idle[0].waitForEnd() != .timedOut)
        }

        @Test("Unauthenticated admin connections are closed within seconds, whatever they request")
        func unproven() throws {
            let stage = try GuardedNode()
            let (silent, healthy) = (
                try stage.node.connectAdmin(), try stage.node.connectAdmin()
            )
            #expect(try healthy.get("/healthz").status == 200)
            #expect(silent.waitForEnd() != .timedOut && healthy.waitForEnd() != .timedOut)
        }

        @Test(
            "Remote operators, authenticated or not, leave slots for the machine itself",
            .enabled(
                if: NetworkNamespace.isAvailable, "namespaces need root, iproute2 and nftables"))
        func reserved() throws {
            let space = try NetworkNamespace()
            // Connections to 127.0.0.1 from this address do not come from loopback.
            try space.run("ip address add 192.0.2.1/32 dev lo")
            let stage = try GuardedNode(in: space)
            let token = ["Authorization: Bearer \(GuardedNode.words[2].token)"]
            let far = try (0..<64).map { _ in
                try HTTPConnection(port: stage.node.adminPort, from: "192.0.2.1", in: space)
            }
            let responses = far.map { try? $0.get("/admin/v1/status", fields: token).status }
            #expect(responses.count { $0 == 200 } == 56)
            let more = try HTTPConnection(
                port: stage.node.adminPort, from: "192.0.2.1", in: space)
            #expect(more.readResponse().status == 503)
            #expect(try stage.node.connectAdmin().get("/readyz").status == 200)
        }

        @Test("Idle connections that fill a data port let a new client in at once")
        func idleClients() throws {
            let node = try NodeProcess(["--connections-limit", "50", "--loops", "2"])
            let idle = try (0..<50).map { _ in try node.connect() }
            expectSoon { node.metric("nuthatch_connections_open") == 50 }
            for _ in 0..<200 { #expect(try isServed(node)) }
            #expect(node.metric(Self.yielded).map { $0 >= 1 } == true)
            #expect(node.metric("nuthatch_connections_refused_total") == 0)
            withExtendedLifetime(idle) {}
        }

        @Test(
            "The longest idle connection is closed, and a partial head does not count as a request"
        )
        func longestIdle() throws {
            let node = try NodeProcess(["--connections-limit", "4", "--loops", "1"])
            let clients = try (0..<4).map { _ in
                let client = try node.connect()
                #expect(try client.get("/healthz").status == 200)
                return client
            }
            try clients[1].socket.send("GET /healthz HTTP/1.1\r\n")
            #expect(try clients[0].get("/healthz").status == 200)
            let first = try node.connect()
            #expect(try first.get("/healthz").status == 200)
            #expect(clients[2].waitForEnd() != .timedOut)
            let second = try node.connect()
            #expect(try second.get("/healthz").status == 200)
            #expect(clients[3].waitForEnd() != .timedOut)
            #expect(try clients[0].get("/healthz").status == 200)
            let third = try node.connect()
            #expect(try third.get("/healthz").status == 200)
            #expect(clients[1].waitForEnd() != .timedOut)
        }

        @Test("A client that waits for a response keeps its slot, and others are refused")
        func busyClients() throws {
            let stage = try Stage("--connections-limit", "3")
            let gate = Gate()
            defer { gate.open() }
            let busy = try stage.occupy(3, gate)
            let refused = try stage.node.connect().readResponse()
            expectProblem(refused, 503)
            #expect(refused["Retry-After"] == "1")
            gate.open()
            for client in busy { #expect(client.readResponse().status == 200) }
            #expect(try stage.node.get("/healthz").status == 200)
        }

        @Test("Connections that have not finished their handshake make way too")
        func silentSecureClients() throws {
            let stage = try SecureStage("--connections-limit", "8")
            let silent = try (0..<8).map { _ in try HTTPConnection(port: stage.node.securePort) }
            stage.waitForFigure("nuthatch_connections_open", 8)
            #expect(try stage.node.get("/healthz").status == 200)
            withExtendedLifetime(silent) {}
        }

        @Test("A client has its share of connections, and others have slots beside it")
        func shares() throws {
            let stage = try Stage("--connections-per-client", "3")
            let gate = Gate()
            defer { gate.open() }
            let busy = try stage.occupy(3, gate)
            let other = try HTTPConnection(port: stage.node.port, from: "127.0.0.3")
            #expect(try other.get("/healthz").status == 200)
            let refused = try stage.node.connect().readResponse()
            expectProblem(refused, 429)
            #expect(refused["Retry-After"] == "1")
            // It displaced no other client's idle connection.
            #expect(try other.get("/healthz").status == 200)
            gate.open()
            for client in busy { #expect(client.readResponse().status == 200) }
        }

        @Test("A new connection of a client at its share replaces the client's longest idle one")
        func ownShare() throws {
            let node = try NodeProcess(["--connections-per-client", "3", "--loops", "1"])
            func client(_ address: String) throws -> HTTPConnection {
                let client = try HTTPConnection(port: node.port, from: address)
                #expect(try client.get("/healthz").status == 200)
                return client
            }
            let other = try client("127.0.0.3")
            let held = try (0..<3).map { _ in try client("127.0.0.2") }
            #expect(try held[0].get("/healthz").status == 200)
            let fourth = try client("127.0.0.2")
            #expect(held[1].waitForEnd() != .timedOut)
            for client in [held[0], held[2], fourth, other] {
                #expect(try client.get("/healthz").status == 200)
            }
            #expect(node.metric("nuthatch_connections_refused_total") == 0)
        }

        @Test("New connections of a client whose connections all wait are refused, and fast")
        func manyNewcomers() throws {
            let stage = try Stage("--connections-per-client", "3", "--loops", "1")
            let gate = Gate()
            defer { gate.open() }
            let busy = try stage.occupy(3, gate)
            for _ in 0..<200 { expectProblem(try stage.node.connect().readResponse(), 429) }
            gate.open()
            for client in busy { #expect(client.readResponse().status == 200) }
        }

        @Test("Behind a proxy that names its clients, each client has a share")
        func proxiedShares() throws {
            let stage = try Stage(
                "--connections-per-client", "2", "--trusted-proxy", "127.0.0.2/32",
                "--loops", "1")
            let gate = Gate()
            defer { gate.open() }
            let image = TestImage.generated(.jpeg, byteCount: 1_000, seed: 134)
            stage.origin.on("/it", OriginResponse(image).delayingHead(.gate(gate)))
            func client(_ number: Int, _ target: String = "/healthz") throws -> HTTPConnection {
                let client = try HTTPConnection(port: stage.node.port, from: "127.0.0.2")
                let line = "PROXY TCP4 192.0.2.\(number) 192.0.2.200 4321 80\r\n"
                try client.socket.send(Array(line.utf8) + HTTPConnection.request(target))
                return client
            }
            let idle = try [1, 2, 2].map { try client($0) }
            #expect(idle.allSatisfy { $0.readResponse().status == 200 })
            let busy = try client(1, stage.target("/it"))
            #expect(gate.waitForArrivals())
            // The idle one is closed for a new connection, and no further one is.
            let other = try client(1, stage.target("/it"))
            #expect(idle[0].waitForEnd() != .timedOut)
            expectSoon { stage.node.metric("nuthatch_waiters") == 2 }
            #expect(try client(1).readResponse().status == 0)
            #expect(try client(3).readResponse().status == 200)
            #expect(try idle[1].get("/healthz").status == 200)
            gate.open()
            #expect(busy.readResponse().status == 200 && other.readResponse().status == 200)
        }
    }
}

extension Stage {
    /// Opens connections of clients that wait for a response until `gate` opens.
    func occupy(_ count: Int, _ gate: Gate) throws -> [HTTPConnection] {
        let image = TestImage.generated(.jpeg, byteCount: 1_000, seed: 133)
        origin.on("/occupied", OriginResponse(image).delayingHead(.gate(gate)))
        let clients = try (0..<count).map { _ in
            let client = try node.connect()
            try client.socket.send(HTTPConnection.request(target("/occupied")))
            return client
        }
        let isOccupied = Deadline.seconds(30).waitUntil {
            node.metric("nuthatch_waiters") == Double(count)
        }
        try #require(isOccupied)
        return clients
    }
}
