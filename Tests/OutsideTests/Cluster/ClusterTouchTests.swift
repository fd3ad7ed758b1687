import Harness
import Testing

extension Outside {
    @Suite("An owner knows that an image is read elsewhere")
    struct ClusterTouchTests {
        /// Has an image read for three times the age limit from the memory of a node that does not
        /// keep it; how many of the others have it on disk then.
        private func keepersAfter(touches interval: String) throws -> Double {
            let stage = try ClusterStage(
                3, "--disk-limit", "64MiB", "--age-limit", "3s", "--touch-interval", interval)
            let image = TestImage.generated(.png, byteCount: 20_000, seed: 730)
            let path = stage.origin.serve(image, fields: [lasting])
            for index in 0..<3 { #expect(try stage.get(path, from: index).brings(image)) }
            let entries = { stage.nodes.map { $0.figure("nuthatch_disk_entries") ?? -1 } }
            let isKept = Deadline.seconds(20).reached { entries().sorted() == [0, 1, 1] }
            try #require(isKept, "\(entries())")
            let reader = try #require(entries().firstIndex(of: 0))
            let target = stage.target(path)
            let connection = try stage.nodes[reader].connect()
            let end = Deadline.seconds(9)
            while !end.hasPassed {
                let hit = try connection.get(target)
                #expect(hit.brings(image) && hit.detail == "memory", "\(hit)")
            }
            #expect(stage.fetches(path) == 1)
            return entries().reduce(0, +)
        }

        @Test("With touches it outlives the age limit")
        func stays() throws {
            #expect(try keepersAfter(touches: "1s") == 2)
        }

        @Test("Without them it is gone")
        func goes() throws {
            #expect(try keepersAfter(touches: "0s") == 0)
        }
    }
}
