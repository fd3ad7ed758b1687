import Foundation
import Harness
import NIOCore
import NIOPosix
import Testing

extension Outside {
    @Suite("A node looks for its cluster before it serves")
    struct JoiningTests {
        /// A node that need not become ready, and its ports.
        private func start(_ flags: [String]) throws -> (program: Program, port: Int, admin: Int) {
            let (port, admin) = (try HeldPort.forever(), try HeldPort.forever())
            let doors = [
                "serve", "--listen", "127.0.0.1:\(port)", "--admin-listen", "127.0.0.1:\(admin)",
            ]
            return (try Program(NodeProcess.binary(), doors + flags), port, admin)
        }

        @Test("While a seed says nothing at all it is starting, and then serves all the same")
        func starting() throws {
            let silent = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .serverChannelOption(.autoRead, value: false)
                .bind(host: "127.0.0.1", port: 0).wait()
            defer { try? silent.close().wait() }
            let directory = try Program.temporaryFolder()
            defer { try? FileManager.default.removeItem(at: directory) }
            let secret = directory.appending(path: "secret")
            try Data(ClusterStage.secret.utf8).write(to: secret)
            let node = try start([
                "--join", "127.0.0.1:\(silent.localAddress?.port ?? 0)",
                "--peer-listen", "127.0.0.1:\(try HeldPort.forever())",
                "--cluster-secret-file", secret.path,
            ])
            defer { node.program.kill() }
            var wasClosed = false
            let isReady = Deadline.seconds(30).reached {
                let answer = try? HTTPConnection(port: node.port).get("/readyz")
                let said = try? HTTPConnection(port: node.admin).get("/readyz")
                if answer == nil, said?.status == 503, said?.text.contains("starting") == true {
                    wasClosed = true
                }
                return answer?.status == 200
            }
            #expect(isReady && wasClosed, "\(node.program.errors)")
        }

        @Test("A second live process of one node ends without serving; the first goes on")
        func twin() throws {
            let stage = try ClusterStage(2)
            let copy = stage.directory.appending(path: "copy")
            try FileManager.default.copyItem(at: stage.cache(1), to: copy)
            let twin = try start(
                stage.clusterFlags(peerPort: HeldPort.forever()) + ["--cache-dir", copy.path])
            defer { twin.program.kill() }
            // It has nothing to drain.
            #expect(twin.program.wait(seconds: 20).map { $0 != 0 } == true)
            let said = twin.program.errors
            #expect(said.contains("another live process has this node's id"), "\(said)")
            #expect(!said.contains("serving"), "\(said)")
            try stage.settle(stage.nodes)
        }

        @Test("A node that has joined knows at once whom the others hold for the owners")
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
