import Harness
import Testing

extension Outside {
    @Suite("Frequently requested images of other owners are kept in memory")
    struct HotCopyTests {
        @Test("An image requested once evicts nothing; a frequently requested one stays")
        func popular() throws {
            let stage = try ClusterStage(2, "--replicas", "1", "--memory-entries", "1")
            var (images, paths): ([TestImage], [String]) = ([], [])
            var seed: UInt64 = 1_500
            while images.count < 12 {
                let image = TestImage.generated(.png, byteCount: 9_000, seed: seed)
                seed += 1
                let path = stage.origin.serve(image, fields: [lasting])
                guard try !stage.owns(path, 0) else { continue }
                images.append(image)
                paths.append(path)
            }
            let hot = 0
            for _ in 0..<3 { #expect(try stage.get(paths[hot], from: 0).matches(images[hot])) }
            #expect(try stage.get(paths[hot], from: 0).detail == "memory")
            for number in 1..<12 {
                let cold = try stage.get(paths[number], from: 0, expecting: images[number])
                #expect(cold.matches(images[number]) && cold.detail == "peer", "\(cold)")
                let kept = try stage.get(paths[hot], from: 0, expecting: images[hot])
                #expect(kept.matches(images[hot]) && kept.detail == "memory", "\(kept)")
            }
            // An image that becomes popular takes the slot.
            for _ in 0..<3 { #expect(try stage.get(paths[5], from: 0).matches(images[5])) }
            #expect(try stage.get(paths[5], from: 0).detail == "memory")
            #expect(paths.allSatisfy { stage.fetches($0) == 1 })
        }
    }
}
