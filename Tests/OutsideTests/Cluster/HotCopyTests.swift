import Harness
import Testing

extension Outside {
    @Suite("What others own is kept in memory if it is wanted again and again")
    struct HotCopyTests {
        /// Two nodes, of which the second owns nearly everything; the first has room for one image.
        private func stage() throws -> ClusterStage {
            try ClusterStage(
                2, "--replicas", "1", "--memory-entries", "1",
                ownFlags: [["--ring-weight", "1"], ["--ring-weight", "65535"]])
        }

        @Test("An image wanted once drives nothing out; one that is wanted often stays")
        func popular() throws {
            let stage = try stage()
            let images = (0..<12).map {
                TestImage.generated(.png, byteCount: 9_000, seed: 1_500 + UInt64($0))
            }
            let paths = images.map { stage.origin.serve($0, fields: [lasting]) }
            let hot = 0
            for _ in 0..<3 { #expect(try stage.get(paths[hot], from: 0).brings(images[hot])) }
            #expect(try stage.get(paths[hot], from: 0).detail == "memory")
            for number in 1..<12 {
                let cold = try stage.get(paths[number], from: 0, expecting: images[number])
                #expect(cold.brings(images[number]) && cold.detail == "peer", "\(cold)")
                let kept = try stage.get(paths[hot], from: 0, expecting: images[hot])
                #expect(kept.brings(images[hot]) && kept.detail == "memory", "\(kept)")
            }
            // What becomes popular takes the place.
            for _ in 0..<3 { #expect(try stage.get(paths[5], from: 0).brings(images[5])) }
            #expect(try stage.get(paths[5], from: 0).detail == "memory")
            #expect(paths.allSatisfy { stage.fetches($0) == 1 })
        }
    }
}
