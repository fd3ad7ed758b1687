import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Purges of URLs that are not stored")
    struct UnstoredPurgesTests {
        /// A third of the names is what a node with this disk remembers.
        private let names = 300_000
        private let targetsMax = 256

        @Test("More purged names than a node can remember do not affect hits")
        func unstored() throws {
            let stage = try DiskStage("--disk-limit", "1GiB")
            let images = (0..<20).map {
                TestImage.generated(.png, byteCount: 9_000, seed: 1_700 + UInt64($0))
            }
            let paths = images.map { stage.origin.serve($0, fields: [lasting]) }
            for (image, path) in zip(images, paths) {
                #expect(try stage.get(path, expecting: image).matches(image))
            }
            try stage.settle()
            let admin = try stage.node.connectAdmin()
            for first in stride(from: 0, to: names, by: targetsMax) {
                let targets = (first..<min(first + targetsMax, names)).map {
                    "{\"url\":\"http://nobody.example/\($0)\"}"
                }
                let body = "{\"targets\":[\(targets.joined(separator: ","))]}"
                let response = try admin.post(body, to: "/admin/v1/purges?wait=none")
                try #require(response.status == 200 || response.status == 202, "\(response)")
            }
            for (image, path) in zip(images, paths) {
                let response = try stage.get(path, expecting: image)
                #expect(response.matches(image) && response.isHit, "\(response)")
                #expect(stage.fetches(path) == 1)
            }
            try expectSoon { try stage.figure("nuthatch_invalidation_names") == 0 }
            #expect(stage.said("too many invalidations") == 0)
        }
    }
}
