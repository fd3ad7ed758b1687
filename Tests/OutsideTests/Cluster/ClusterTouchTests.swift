import Harness
import Testing

extension Outside {
    @Suite("An owner learns that its image is read at other nodes")
    struct ClusterTouchTests {
        /// Reads an image from the memory of a node that does not own it until two other images
        /// have exceeded the age limit on every disk.
        ///
        /// Those two are not read, and the second is stored after the first has expired.
        ///
        /// - Returns: The number of other nodes that then have the image on disk.
        private func keepersAfter(touches interval: String) throws -> Double {
            let stage = try ClusterStage(
                3, "--disk-limit", "64MiB", "--age-limit", "3s", "--touch-interval", interval)
            let image = TestImage.generated(.png, byteCount: 20_000, seed: 730)
            let path = stage.origin.serve(image, fields: [lasting])
            for index in 0..<3 { #expect(try stage.get(path, from: index).matches(image)) }
            let entries = { stage.nodes.map(\.diskEntries) }
            let isKept = Deadline.seconds(20).waitUntil { entries().sorted() == [0, 1, 1] }
            try #require(isKept, "\(entries())")
            let reader = try #require(entries().firstIndex(of: 0))
            let target = stage.target(path)
            let connection = try stage.nodes[reader].connect()
            let kept: Double = interval == "0s" ? 0 : 2
            for number in 0..<2 {
                let idle = TestImage.generated(.png, byteCount: 20_000, seed: 731 + UInt64(number))
                let other = stage.origin.serve(idle, fields: [lasting])
                #expect(try stage.get(other, from: 0).matches(idle))
                expectSoon(20) { entries().reduce(0, +) > kept }
                try expectSoon(60) {
                    let hit = try connection.get(target)
                    #expect(hit.matches(image) && hit.detail == "memory", "\(hit)")
                    return entries().reduce(0, +) == kept
                }
            }
            #expect(stage.fetches(path) == 1)
            return entries().reduce(0, +)
        }

        @Test("With touches the image outlives the age limit")
        func stays() throws {
            #expect(try keepersAfter(touches: "1s") == 2)
        }

        @Test("Without touches the image expires")
        func goes() throws {
            #expect(try keepersAfter(touches: "0s") == 0)
        }
    }
}
