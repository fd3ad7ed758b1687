import Foundation
import Harness
import Testing

extension Outside {
    @Suite("One purge covers all nodes")
    struct PurgeTests {
        private let old = TestImage.generated(.png, byteCount: 40_000, seed: 801)
        private let new = TestImage.generated(.png, byteCount: 30_000, seed: 802)

        /// Serves the old image until the box is set, then the new one.
        private func edited(_ stage: ClusterStage, _ path: String) -> LockedBox<Bool> {
            stage.origin.serve(
                old, then: new, at: [path], fields: [lasting, "Surrogate-Key: shoes"])
        }

        @Test(
            "After the receipt every node serves the new version, for one fetch of the cluster",
            arguments: ["url", "prefix", "everything"])
        func edit(kind: String) throws {
            let stage = try ClusterStage(3)
            let isEdited = edited(stage, "/a/it")
            try stage.expectAll("/a/it", old)
            let before = stage.fetches("/a/it")
            isEdited.value = true
            let target =
                switch kind {
                case "url": "{\"url\":\"\(stage.origin.url("/a/it"))\"}"
                case "prefix": "{\"prefix\":\"\(stage.origin.url("/a"))\"}"
                default: "{\"everything\":true}"
                }
            let receipt = try stage.nodes[1].purge(target)
            #expect(receipt.status == 200 && receipt.isConfirmedByAll, "\(receipt)")
            #expect(receipt.members.count == 3)
            try stage.expectAll("/a/it", new, from: [2, 0, 1, 2])
            #expect(stage.fetches("/a/it") == before + 1)
            // Entry and validators are dropped: the origin request is unconditional.
            #expect(stage.origin.requests("/a/it").last?.isConditional == false)
        }

        @Test("A softly purged entry is revalidated, and kept if it is unchanged")
        func soft() throws {
            let stage = try ClusterStage(2)
            _ = edited(stage, "/it")
            try stage.expectAll("/it", old)
            let url = "{\"url\":\"\(stage.origin.url("/it"))\"}"
            let receipt = try stage.nodes[0].purge(url, mode: "soft")
            #expect(receipt.isConfirmedByAll)
            let before = stage.fetches("/it")
            try stage.expectAll("/it", old)
            let asked = stage.origin.requests("/it").dropFirst(before)
            #expect(asked.count == 1 && asked.allSatisfy(\.isConditional))
        }

        @Test("A purge does not affect other URLs")
        func neighbours() throws {
            let stage = try ClusterStage(2)
            for path in ["/a/it", "/ab/it", "/a/it2"] { _ = edited(stage, path) }
            for path in ["/a/it", "/ab/it", "/a/it2"] {
                #expect(try stage.get(path, from: 0, expecting: old).matches(old))
            }
            let url = "{\"url\":\"\(stage.origin.url("/a/it"))\"}"
            #expect(try stage.nodes[0].purge(url).isConfirmedByAll)
            for (path, count) in [("/a/it", 2), ("/ab/it", 1), ("/a/it2", 1)] {
                #expect(try stage.get(path, from: 0, expecting: old).matches(old))
                #expect(stage.fetches(path) == count, "\(path)")
            }
        }

        @Test(
            "A repeated request with the same client id is harmless, and another purge is refused"
        )
        func repeated() throws {
            let stage = try ClusterStage(2)
            let first = try stage.nodes[0].purge("{\"tag\":\"a\"}", id: "deploy-7")
            let again = try stage.nodes[0].purge("{\"tag\":\"a\"}", id: "deploy-7")
            #expect(first.status == 200 && first.name == again.name && again.status == 200)
            let elsewhere = try stage.nodes[1].purge("{\"tag\":\"a\"}", id: "deploy-7")
            #expect(elsewhere.name == first.name)
            let other = try stage.nodes[1].purge("{\"tag\":\"b\"}", id: "deploy-7")
            #expect(other.status == 409, "\(other)")
            let page = try stage.nodes[1].connectAdmin().get("/admin/v1/purges?id=deploy-7")
            #expect(try PurgeReceipt(page).name == first.name)
        }

        @Test("A receipt names an unreachable member, and every node learns of its confirmation")
        func unreachable() throws {
            let stage = try ClusterStage(3)
            let isEdited = edited(stage, "/it")
            try stage.expectAll("/it", old)
            let id = try ClusterStage.id(of: stage.nodes[2])
            stage.nodes[2].kill()
            isEdited.value = true
            let url = "{\"url\":\"\(stage.origin.url("/it"))\"}"
            let receipt = try stage.nodes[0].purge(url, timeout: "2s")
            #expect(receipt.status == 202 && !receipt.isConfirmedByAll, "\(receipt)")
            #expect(receipt.members[id] == "unreachable", "\(receipt)")
            try stage.restart(2)
            try stage.settle(stage.nodes)
            for node in stage.nodes {
                try expectSoon(30, "\((try? node.receipt(receipt.name)) as Any)") {
                    try node.receipt(receipt.name).isConfirmedByAll
                }
            }
            #expect(try stage.get("/it", from: 2, expecting: new).matches(new))
        }

        @Test("A receipt does not wait for a member that the operator declares gone")
        func gone() throws {
            let stage = try ClusterStage(2)
            let id = try ClusterStage.id(of: stage.nodes[1])
            #expect(try stage.nodes[0].purge("{\"tag\":\"a\"}").isConfirmedByAll)
            for _ in 0..<2 { try stage.waitUntilHeard(by: stage.nodes[0], from: 1) }
            stage.nodes[1].kill()
            let one = try stage.nodes[0].purge("{\"tag\":\"c\"}", timeout: "1s")
            #expect(one.status == 202 && one.members[id] == "unreachable", "\(one)")
            let path = "/admin/v1/members/\(id)/forget"
            try expectSoon(120, "\((try? stage.nodes[0].receipt(one.name)) as Any)") {
                _ = try stage.nodes[0].connectAdmin().post("", to: path)
                return try stage.nodes[0].receipt(one.name).isConfirmedByAll
            }
        }

        @Test("Purged content stays purged after all nodes were killed")
        func killed() throws {
            let stage = try ClusterStage(2)
            let isEdited = edited(stage, "/it")
            try stage.expectAll("/it", old)
            isEdited.value = true
            let url = "{\"url\":\"\(stage.origin.url("/it"))\"}"
            let receipt = try stage.nodes[0].purge(url)
            #expect(receipt.isConfirmedByAll)
            for index in 0..<2 { stage.nodes[index].kill() }
            for index in 0..<2 { try stage.restart(index) }
            try stage.settle(stage.nodes)
            try stage.expectAll("/it", new)
            #expect(try stage.nodes[1].receipt(receipt.name).name == receipt.name)
        }

        @Test(
            "An invalid purge is refused with the permitted values",
            arguments: [
                ("", 400), ("{}", 422), ("{\"targets\":[]}", 422),
                ("{\"targets\":[{\"url\":\"ftp://a/b\"}]}", 422),
                ("{\"targets\":[{\"tag\":\"a\"}],\"mode\":\"hot\"}", 422),
            ])
        func refused(body: String, status: Int) throws {
            let stage = try ClusterStage(1)
            let response = try stage.nodes[0].purge(body: body)
            #expect(response.status == status && !response.problem.isEmpty, "\(response)")
            let long = "{\"targets\":[{\"tag\":\"" + String(repeating: "a", count: 70_000)
            #expect(try stage.nodes[0].purge(body: long).status == 413)
        }
    }
}
