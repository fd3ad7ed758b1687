import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A directory restored from an old copy")
    struct CopiedDirectoryTests {
        @Test("The first start discards it and ends; the next is a new member without promises")
        func older() throws {
            let stage = try ClusterStage(3, isNamed: true, "--fence", "2s")
            let image = TestImage.generated(.jpeg, byteCount: 3_000, seed: 882)
            let path = stage.origin.serve(image, fields: [lasting], etag: "\"1\"")
            for _ in 0..<2 { try stage.expectAll(path, image) }
            let before = try ClusterStage.id(of: stage.nodes[2])
            let copy = stage.directory.appending(path: "copy")
            stage.nodes[2].kill()
            try FileManager.default.copyItem(at: stage.cache(2), to: copy)
            try stage.restart(2)
            #expect(try ClusterStage.id(of: stage.nodes[2]) == before)
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
                refused.lineCount(
                    containing: "the data directory is older than the state this node has") == 1,
                "\(refused.output)")
            #expect(refused.lineCount(containing: "message=serving") == 0)

            try stage.restart(2)
            try stage.settle(stage.nodes)
            #expect(try ClusterStage.id(of: stage.nodes[2]) != before)
            #expect(stage.nodes[2].lineCount(containing: "every entry is revalidated once") == 1)
            try expectSoon {
                let purge = try stage.nodes[2].purge("{\"tag\":\"t\"}")
                return purge.isConfirmedByAll && purge.members.count == 3
            }
        }
    }
}
