import Foundation
import Harness
import NIOCore
import NIOPosix
import Testing

extension Outside {
    @Suite("A node looks for its cluster before it serves")
    struct JoiningTests {
        /// Starts a node that need not become ready, and returns it with its ports.
        private func start(_ flags: [String]) throws -> (program: Program, port: Int, admin: Int) {
            let (port, admin) = (try ReservedPort.forProcess(), try ReservedPort.forProcess())
            let doors = [
                "serve", "--listen", "127.0.0.1:\(port)", "--admin-listen", "127.0.0.1:\(admin)",
            ]
            return (try Program(NodeProcess.binary(), doors + flags), port, admin)
        }

        /// Starts a node with its own secret that joins through `seeds`.
        private func joining(
            _ seeds: [String], peerPort: Int? = nil, secret: String = ClusterStage.secret,
            _ flags: String...
        ) throws -> (program: Program, port: Int, admin: Int) {
            let file = try directory.write(secret, to: "secret-\(UUID().uuidString)")
            return try start(
                seeds.flatMap { ["--join", $0] } + [
                    "--peer-listen", "127.0.0.1:\(try peerPort ?? ReservedPort.forProcess())",
                    "--cluster-secret-file", file.path,
                ] + flags)
        }

        private let directory: TemporaryFolder

        init() throws {
            directory = try TemporaryFolder()
        }

        private func status(_ node: (program: Program, port: Int, admin: Int)) throws -> String {
            try String(
                decoding: NodeProcess.run(["status", "--node", "127.0.0.1:\(node.admin)"]).output,
                as: UTF8.self)
        }

        private func readiness(
            _ node: (program: Program, port: Int, admin: Int), _ wanted: Int, _ word: String
        ) -> Bool {
            Deadline.seconds(30).waitUntil {
                let said = try? HTTPConnection(port: node.admin).get("/readyz")
                return said?.status == wanted && said?.text.contains(word) == true
            }
        }

        /// Listens on a port that accepts everything and sends nothing.
        private func silence() throws -> any Channel {
            try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.autoRead, value: false)
                .bind(host: "127.0.0.1", port: 0).wait()
        }

        @Test(
            "Silence, a refusal, another secret, or a name without address do not found a cluster",
            arguments: ["silence", "refused", "secret", "name"])
        func nobody(kind: String) throws {
            let silent = try silence()
            defer { try? silent.close().wait() }
            let peerPort = try ReservedPort.forProcess()
            let other = try joining([], peerPort: peerPort)
            defer { other.program.kill() }
            #expect(readiness(other, 200, "ready"))
            let seed =
                switch kind {
                case "silence": "127.0.0.1:\(silent.localAddress?.port ?? 0)"
                case "refused": "127.0.0.1:\(try ReservedPort.forProcess())"
                case "name": "nobody.invalid:8082"
                default: "127.0.0.1:\(peerPort)"
                }
            let secret = kind == "secret" ? ClusterStage.otherSecret : ClusterStage.secret
            let node = try joining([seed], secret: secret, "--join-timeout", "2s")
            defer { node.program.kill() }
            #expect(readiness(node, 503, "joining"))
            #expect((try? HTTPConnection(port: node.port)) == nil)
            let said = try status(node)
            #expect(said.contains("looking for the cluster") && said.contains(seed), "\(said)")
            #expect(readiness(node, 200, "\"fenced\":true"), "\(node.program.errors)")
            let metrics = try HTTPConnection(port: node.admin).get("/metrics").text
            #expect(metrics.contains("nuthatch_joining 1") && metrics.contains("nuthatch_fenced 1"))
            let purge = try HTTPConnection(port: node.admin).post(
                "{\"targets\":[{\"everything\":true}]}",
                to: "/admin/v1/purges?wait=all&timeout=1s")
            #expect(try !PurgeReceipt(purge).isConfirmedByAll, "\(purge)")
        }

        @Test("A bootstrap command founds a cluster once, and is not needed by a node that has one")
        func bootstrap() throws {
            let port = try ReservedPort.forProcess()
            let node = try joining(["127.0.0.1:\(port)"], "--join-timeout", "60s")
            defer { node.program.kill() }
            #expect(readiness(node, 503, "joining"))
            let command = ["members", "bootstrap", "--node", "127.0.0.1:\(node.admin)"]
            let result = try NodeProcess.run(command)
            #expect(result.status == 0, "\(result.errors)")
            #expect(readiness(node, 200, "ready"))
            let again = try NodeProcess.run(command)
            #expect(again.status != 0 && again.errors.contains("in a cluster already"))
            // A node that starts at the address it looked for joins it.
            let second = try joining(
                ["127.0.0.1:\(port)"], peerPort: port, "--join-timeout", "60s")
            defer { second.program.kill() }
            #expect(readiness(second, 200, "ready"))
        }

        @Test("More than half of the expected nodes found a cluster, and fewer do not")
        func expected() throws {
            let ports = try (0..<3).map { _ in try ReservedPort.forProcess() }
            let seeds = ports.map { "127.0.0.1:\($0)" }
            let first = try joining(
                seeds, peerPort: ports[0], "--expect", "3", "--join-timeout", "2s")
            defer { first.program.kill() }
            #expect(readiness(first, 503, "joining"))
            #expect(readiness(first, 200, "\"fenced\":true"))
            let second = try joining(
                seeds, peerPort: ports[1], "--expect", "3", "--join-timeout", "60s")
            defer { second.program.kill() }
            for node in [first, second] {
                expectSoon(30, "\(node.program.errors)") {
                    let said = try? HTTPConnection(port: node.admin).get("/readyz")
                    return said?.status == 200 && said?.text.contains("fenced") == false
                }
            }
        }

        @Test("A second live process of one node ends without serving, and the first goes on")
        func twin() throws {
            let stage = try ClusterStage(2)
            let copy = stage.directory.appending(path: "copy")
            try FileManager.default.copyItem(at: stage.cache(1), to: copy)
            let twin = try start(
                stage.clusterFlags(peerPort: ReservedPort.forProcess()) + [
                    "--cache-dir", copy.path,
                ])
            defer { twin.program.kill() }
            // It has nothing to drain.
            #expect(twin.program.wait(seconds: 20).map { $0 != 0 } == true)
            let said = twin.program.errors
            #expect(said.contains("another live process has this node's id"), "\(said)")
            #expect(!said.contains("serving"), "\(said)")
            try stage.settle(stage.nodes)
        }

        @Test("A node that has joined immediately knows the owners that the others know")
        func knowsOwners() throws {
            let stage = try ClusterStage(3)
            for round in 0..<3 {
                try stage.restart(round)
                let members = try ClusterStage.members(of: stage.nodes[round])
                #expect(members.count { $0.state == "alive" && $0.isConnected } == 3)
                #expect(abs(members.reduce(0) { $0 + $1.share } - 1) < 0.001)
                #expect(members.allSatisfy { $0.share > 0 }, "\(members)")
                try stage.settle(stage.nodes)
            }
        }
    }
}
