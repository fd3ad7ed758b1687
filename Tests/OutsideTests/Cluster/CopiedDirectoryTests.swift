import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A directory that is put back as it was some time ago")
    struct CopiedDirectoryTests {
        private func id(of node: NodeProcess) throws -> String {
            try #require(try ClusterStage.members(of: node).first(where: \.isSelf)?.id)
        }

        @Test("is given up by the first start, and the next one is another member without promises")
        func older() throws {
            let stage = try ClusterStage(3, isNamed: true, "--fence", "2s")
            let image = TestImage.generated(.jpeg, byteCount: 3_000, seed: 882)
            let path = stage.origin.serve(image, fields: [lasting], etag: "\"1\"")
            for _ in 0..<2 {
                for index in 0..<3 {
                    #expect(try stage.get(path, from: index, expecting: image).brings(image))
                }
            }
            let before = try id(of: stage.nodes[2])
            let copy = stage.directory.appending(path: "copy")
            stage.nodes[2].kill()
            try FileManager.default.copyItem(at: stage.cache(2), to: copy)
            try stage.restart(2)
            #expect(try id(of: stage.nodes[2]) == before)
            try stage.settle(stage.nodes)

            stage.nodes[2].kill()
            try FileManager.default.removeItem(at: stage.cache(2))
            try FileManager.default.moveItem(at: copy, to: stage.cache(2))
            let refused = try NodeProcess(
                stage.clusterFlags(peerPort: stage.peerPort(of: 2)) + [
                    "--cache-dir", stage.cache(2).path, "--fence", "2s", "--node-name", "node-2",
                ], waits: false)
            #expect(refused.waitForExit().map { $0 != 0 } == true)
            #expect(
                refused.said("the directory is older than what this node has promised") == 1,
                "\(refused.output)")
            #expect(refused.said("message=serving") == 0)

            try stage.restart(2)
            try stage.settle(stage.nodes)
            #expect(try id(of: stage.nodes[2]) != before)
            #expect(stage.nodes[2].said("every entry is revalidated once") == 1)
            let isWhole = try Deadline.seconds(30).reached {
                let purge = try stage.nodes[2].purge("{\"tag\":\"t\"}")
                return purge.isConfirmedByAll && purge.members.count == 3
            }
            #expect(isWhole)
        }
    }
}
