import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Nodes that share a secret form a cluster")
    struct MembershipTests {
        @Test("A node that stops announces it; a node that starts again is the same member")
        func comingAndGoing() throws {
            let stage = try ClusterStage(3)
            let before = try #require(ClusterStage.members(of: stage.nodes[2]).first)
            #expect(before.isSelf)
            #expect(stage.nodes[2].stop() == 0)
            for node in stage.nodes.prefix(2) {
                #expect(try stage.believes(node, before.id, "left"))
                #expect(node.lineCount(containing: "member has left", before.id) == 1)
                #expect(node.lineCount(containing: "member is dead") == 0)
            }
            try stage.restart(2)
            try stage.settle(stage.nodes)
            let after = try #require(ClusterStage.members(of: stage.nodes[2]).first)
            #expect(after.id == before.id && after.process != before.process)
        }

        @Test("Nodes that stop together are idle once they have stopped")
        func together() throws {
            let stage = try ClusterStage(3)
            for node in stage.nodes { node.terminate() }
            for node in stage.nodes {
                #expect(node.waitForExit() == 0)
                #expect(node.lines.last?.contains("message=stopped") == true, "\(node.output)")
            }
        }

        @Test("Unprivileged nodes find each other, whichever dials")
        func unprivileged() throws {
            let stage = try ClusterStage(3, isPrivileged: false)
            try stage.restart(0)
            try stage.settle(stage.nodes)
        }

        @Test("A node with another secret is rejected, and both sides log why")
        func otherSecret() throws {
            let stage = try ClusterStage(2)
            try stage.write(ClusterStage.otherSecret, to: "other")
            let port = try ReservedPort.forProcess()
            let stranger = try NodeProcess(
                stage.clusterFlags(peerPort: port, secret: "other") + ["--join-timeout", "1s"])
            defer { stranger.kill() }
            expectSoon(30, "\(stranger.output)\n\(stage.nodes[0].output)") {
                stranger.lineCount(containing: "connection to a peer failed", "secret") > 0
                    && stage.nodes[0].lineCount(containing: "connection to a peer failed", "secret")
                        > 0
            }
            #expect(try ClusterStage.members(of: stranger).count == 1)
            try stage.settle(stage.nodes)
        }

        @Test("Secrets can be rotated without interruption")
        func rotation() throws {
            let stage = try ClusterStage(2)
            let (old, new) = (ClusterStage.secret, ClusterStage.otherSecret)
            for text in ["\(old)\n\(new)\n", "\(new)\n\(old)\n", "\(new)\n"] {
                try stage.write(text, to: "secret")
                for node in stage.nodes {
                    let before = node.lineCount(containing: "settings reloaded")
                    node.hangUp()
                    expectSoon(20) { node.lineCount(containing: "settings reloaded") > before }
                }
                try stage.settle(stage.nodes)
            }
            try stage.restart(1)
            try stage.settle(stage.nodes)
        }

        @Test("Silent strangers take no slot of the connections that a node dials")
        func crowd() throws {
            let stage = try ClusterStage(2)
            let crowd = StrangerCrowd(300, at: stage.peerPort(of: 0))
            defer { crowd.leave() }
            let other = try #require(ClusterStage.members(of: stage.nodes[1]).first)
            stage.nodes[1].kill()
            #expect(try stage.believes(stage.nodes[0], other.id, "dead"))
            try #require(crowd.waitUntilThere())
            try stage.restart(1)
            try stage.settle(stage.nodes)
            #expect(crowd.isThere)
            #expect(stage.nodes[0].lineCount(containing: "maximum number of connections") == 0)
        }

        @Test(
            "Clear text, garbage and silence are dropped with a log line, and the cluster goes on"
        )
        func strangers() throws {
            let stage = try ClusterStage(2)
            let port = stage.peerPort(of: 0)
            let garbage = (0..<4_096).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ 13) }
            for bytes in [Array("GET / HTTP/1.1\r\n\r\n".utf8), garbage] {
                let socket = try HTTPConnection(port: port).socket
                try socket.send(bytes)
                #expect(socket.isEndedByPeer(seconds: 20))
            }
            let silent = try HTTPConnection(port: port).socket
            #expect(silent.isEndedByPeer(seconds: 20))
            expectSoon(20, "\(stage.nodes[0].output)") {
                stage.nodes[0].lineCount(containing: "connection to a peer failed") >= 2
            }
            try stage.settle(stage.nodes)
        }
    }
}
