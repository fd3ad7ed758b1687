import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Killed nodes that return without their directory")
    struct ReplacingTests {
        /// Waits until the new node is a voter in place of its predecessor; the others are never
        /// fenced meanwhile.
        private func expectReplaced(
            _ index: Int, in stage: ClusterStage, at location: SourceLocation = #_sourceLocation
        ) throws {
            let others = stage.nodes.indices.filter { $0 != index }
            var fenced = 0
            let isCounted = try Deadline.seconds(30).waitUntil {
                for other in others {
                    let response = try stage.nodes[other].connectAdmin().get("/readyz")
                    if response.text.contains("fenced") { fenced += 1 }
                }
                return stage.nodes[index].isReadyUnfenced
            }
            #expect(isCounted && fenced == 0, "node \(index)", sourceLocation: location)
        }

        /// Waits until a purge is confirmed by the present nodes and waits for no other: a lost
        /// node may have served for one fence period.
        private func expectReceipt(
            _ stage: ClusterStage, at location: SourceLocation = #_sourceLocation
        ) throws {
            let purge = try stage.nodes[0].purge("{\"tag\":\"t\"}", wait: "issued")
            try expectSoon(at: location) {
                let receipt = try stage.nodes[0].receipt(purge.name)
                return receipt.isConfirmedByAll && receipt.members.count == stage.nodes.count
            }
        }

        @Test(
            "Nodes with a configured name replace their predecessors one after another",
            arguments: [3, 5])
        func named(count: Int) throws {
            let stage = try ClusterStage(
                count, keepsOnDisk: false, isNamed: true, "--fence", "2s")
            for index in Array(0..<count) + [0, 1] {
                try stage.restart(index)
                try expectReplaced(index, in: stage)
            }
            try expectReceipt(stage)
        }

        @Test("Nodes with an emptied directory replace their predecessors")
        func emptied() throws {
            let stage = try ClusterStage(3, isNamed: true, "--fence", "2s")
            for index in 0..<3 {
                stage.nodes[index].kill()
                try FileManager.default.removeItem(at: stage.cache(index))
                try stage.restart(index)
                try expectReplaced(index, in: stage)
            }
            try expectReceipt(stage)
        }

        @Test(
            "Unnamed nodes leave their predecessors voters until the operator forgets them",
            arguments: [4, 3])
        func unnamed(count: Int) throws {
            let stage = try ClusterStage(count, keepsOnDisk: false, "--fence", "2s")
            let gone = try stage.nodes.prefix(2).map(ClusterStage.id)
            // First it learns that the voter set is settled, then the versions known to the
            // majority.
            for _ in 0..<2 { try stage.waitUntilHeard(by: stage.nodes[2], from: count / 2) }
            for index in 0..<2 { stage.nodes[index].kill() }
            for index in 0..<2 { try stage.restart(index) }
            #expect(!stage.nodes[0].isReadyUnfenced)
            let path = "/admin/v1/members/\(gone.joined(separator: ","))/forget"
            // Of four nodes, the remaining two know every purge; of three, the remaining one may
            // not.
            let isKnown = count == 4
            try expectSoon {
                let response = try stage.nodes[2].connectAdmin().post("", to: path)
                if isKnown { return response.status == 202 }
                return response.status == 409 && response.text.contains("members recover")
            }
            if !isKnown {
                let path = "/admin/v1/members/recover"
                #expect(try stage.nodes[2].connectAdmin().post("", to: path).status == 202)
            }
            expectSoon { stage.nodes.allSatisfy(\.isReadyUnfenced) }
        }
    }
}
