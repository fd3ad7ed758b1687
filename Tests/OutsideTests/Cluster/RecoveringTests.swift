import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A cluster whose voters have lost their majority, or diverge")
    struct RecoveringTests {
        private func recover(_ node: NodeProcess, _ flags: String...) throws -> ProgramResult {
            try NodeProcess.run(
                ["members", "recover", "--admin-listen", "127.0.0.1:\(node.adminPort)"] + flags)
        }

        @Test(
            "With two of three nodes lost for good, a new voter set begins with the remaining one"
        )
        func lostMajority() throws {
            let stage = try ClusterStage(3, "--fence", "2s")
            let image = TestImage.generated(.jpeg, byteCount: 3_000, seed: 881)
            let path = stage.origin.serve(image, fields: [lasting], etag: "\"1\"")
            let left = stage.nodes[0]
            for _ in 0..<2 {
                #expect(try stage.get(path, from: 0, expecting: image).matches(image))
            }
            for index in 1...2 {
                stage.nodes[index].kill()
                try FileManager.default.removeItem(at: stage.cache(index))
            }
            expectSoon { left.isFenced }

            let unsure = try recover(left)
            #expect(unsure.status == 64 && unsure.errors.contains("must not run"), "\(unsure)")
            #expect(left.isFenced)
            let done = try recover(left, "--yes")
            #expect(done.status == 0, "\(done)")
            expectSoon { left.isReadyUnfenced }
            // It may have been purged at nodes that are gone.
            let before = stage.fetches(path)
            for _ in 0..<3 {
                #expect(try stage.get(path, from: 0, expecting: image).matches(image))
            }
            #expect(stage.fetches(path) == before + 1)
            let again = try recover(left, "--yes")
            #expect(again.status == 1 && again.errors.contains("409"), "\(again)")

            for index in 1...2 { try stage.restart(index) }
            expectSoon { stage.nodes.allSatisfy(\.isReadyUnfenced) }
            // The lost nodes may have served for one more fence period.
            try expectSoon {
                let purge = try left.purge("{\"tag\":\"t\"}")
                return purge.isConfirmedByAll && purge.members.count == 3
            }
        }

        @Test("Two clusters founded separately merge, with all purges of both")
        func twoClusters() throws {
            let (one, other) = (
                try ClusterStage(2, "--fence", "2s"), try ClusterStage(2, "--fence", "2s")
            )
            // A node that knows both makes each learn of the other.
            let between = try NodeProcess(
                one.clusterFlags(peerPort: ReservedPort.forProcess())
                    + ["--join", "127.0.0.1:\(other.peerPort(of: 0))", "--fence", "2s"])
            let nodes = one.nodes + other.nodes
            expectSoon { nodes.allSatisfy(\.isFenced) }
            let done = try recover(one.nodes[0], "--yes")
            #expect(done.status == 0, "\(done)")
            expectSoon { (nodes + [between]).allSatisfy(\.isReadyUnfenced) }
            let purge = try other.nodes[1].purge("{\"tag\":\"t\"}")
            #expect(purge.isConfirmedByAll && purge.members.count == 5, "\(purge)")
            // The chosen cluster survives a restart.
            try one.restart(1)
            expectSoon { one.nodes[1].isReadyUnfenced }
        }
    }
}
