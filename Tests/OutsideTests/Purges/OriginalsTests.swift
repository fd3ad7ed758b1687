import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A purge of an original covers the images made from it")
    struct OriginalsTests {
        private static let site = "img.example"
        private static let photo = "http://photos.example/a.jpg"
        private static let small = "/s/w:100/plain/\(photo)@webp"
        private static let large = "/s/w:900/plain/\(photo)@avif"
        private static let other = "/s/w:100/plain/http://photos.example/b.jpg"

        private func stage(_ count: Int, keepsOnDisk: Bool = true) throws -> ClusterStage {
            let stage = try ClusterStage(
                count, keepsOnDisk: keepsOnDisk, site: Self.site, settings: "originals: imgproxy")
            for path in [Self.small, Self.large, Self.other] {
                stage.origin.on(path) { request in
                    let accept = request.fields["Accept"] ?? "any"
                    return .text(
                        "\(path) \(accept)", fields: [lasting, "Vary: Accept"])
                }
            }
            return stage
        }

        private func get(
            _ stage: ClusterStage, _ path: String, from index: Int, _ accept: String = "image/*"
        ) throws -> Response {
            try stage.nodes[index].get(path, host: Self.site, fields: ["Accept: \(accept)"])
        }

        @Test(
            "Every size is fetched again once for all nodes, and another image stays a hit",
            arguments: ["{\"url\":\"\(photo)\"}", "{\"url\":\"https://PHOTOS.example/a.jpg\"}"])
        func sizes(target: String) throws {
            let stage = try stage(2)
            let all = [Self.small, Self.large, Self.other]
            for path in all {
                for accept in ["image/*", "image/webp"] {
                    _ = try get(stage, path, from: 0, accept)
                    // A requester has the complete body from another node a moment before it is
                    // stored.
                    try expectSoon(10, "\(path)") { try get(stage, path, from: 0, accept).isHit }
                }
                _ = try get(stage, path, from: 1)
            }
            #expect(all.map(stage.fetches) == [2, 2, 2])
            #expect(try stage.nodes[1].purge(target).isConfirmedByAll)
            for path in all {
                let isSpared = path == Self.other
                for accept in ["image/*", "image/webp"] {
                    let first = try get(stage, path, from: 0, accept)
                    #expect(first.isHit == isSpared, "\(path): \(first)")
                    try expectSoon(10, "\(path)") { try get(stage, path, from: 0, accept).isHit }
                }
                let other = try get(stage, path, from: 1)
                #expect(other.isHit || !isSpared, "\(other)")
            }
            #expect(all.map(stage.fetches) == [4, 4, 2])
        }

        @Test("The same holds on disk, on a killed node, and by prefix and host")
        func disk() throws {
            let stage = try stage(2)
            let all = [Self.small, Self.large, Self.other]
            for target in ["\(Self.photo)", "http://photos.example/a.jpg/", "photos.example"] {
                for path in all { _ = try get(stage, path, from: 0) }
                // One response and its Vary record.
                expectSoon {
                    stage.nodes[0].diskEntries >= 6
                        && stage.nodes[0].metric("nuthatch_disk_queued_bytes") == 0
                }
                try stage.restart(0)
                try stage.settle(stage.nodes)
                let before = all.map(stage.fetches)
                #expect(
                    try stage.nodes[1].purge("{\"prefix\":\"\(target)\"}").isConfirmedByAll)
                for path in all + all { _ = try get(stage, path, from: 0) }
                let fetches = zip(before, all.map(stage.fetches)).map { $1 - $0 }
                switch target {
                case "photos.example": #expect(fetches == [1, 1, 1])
                case Self.photo: #expect(fetches == [1, 1, 0])
                default: #expect(fetches == [0, 0, 0])
                }
            }
        }

        @Test("A request after the purge does not join a fetch that started before it")
        func inFlight() throws {
            let stage = try stage(1)
            let gate = Gate()
            stage.origin.on(Self.small) { request in
                var response = OriginResponse.text("\(request.number)", fields: [lasting])
                if request.number == 0 { response.headPauses = [.gate(gate)] }
                return response
            }
            let (node, first) = (stage.nodes[0], LockedBox<Response?>(nil))
            Thread.detachNewThread { first.value = try? node.get(Self.small, host: Self.site) }
            expectSoon { stage.fetches(Self.small) == 1 }
            #expect(try node.purge("{\"url\":\"\(Self.photo)\"}").isConfirmedByAll)
            let second = LockedBox<Response?>(nil)
            Thread.detachNewThread { second.value = try? node.get(Self.small, host: Self.site) }
            expectSoon { node.metric("nuthatch_waiters") == 2 }
            gate.open()
            expectSoon { first.value != nil && second.value != nil }
            // Both were decided after the purge was confirmed.
            #expect(first.value?.text == "1" && second.value?.text == "1")
            #expect(try node.get(Self.small, host: Self.site).text == "1")
        }
    }
}
