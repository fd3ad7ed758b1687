import Harness
import Testing

extension Outside {
    /// Tests that need the shared folder; `HTTPRulesTests` has a small image of every kind.
    @Suite("Real images, whole and broken", .enabled(if: !ImageCorpus.real.isEmpty))
    struct SharedImagesTests {
        @Test("The size read from every complete image equals that of other readers")
        func sizes() throws {
            let stage = try Stage("--pixel-limit", "1")
            defer { withExtendedLifetime(stage) {} }
            for image in ImageCorpus.real {
                let size = try #require(SharedImages.sizes[image.name], "\(image)")
                let path = stage.origin.serve(image, fields: [lasting])
                let response = try stage.get(path)
                guard size != (1, 1) else {
                    #expect(response.matches(image), "\(image): \(response)")
                    continue
                }
                expectProblem(response, 502, "\(image)")
                #expect(
                    response.text.contains(" \(size.width) x \(size.height) pixels"),
                    "\(image): \(response.text)")
            }
            #expect(ImageCorpus.real.count == SharedImages.sizes.count)
        }

        @Test("Every complete image is served, stored and recognised as complete")
        func whole() throws {
            let stage = try Stage()
            defer { withExtendedLifetime(stage) {} }
            for image in ImageCorpus.real {
                let path = stage.origin.serve(image, fields: [lasting])
                #expect(try stage.get(path).matches(image), "\(image)")
                let hit = try stage.get(path)
                #expect(hit.matches(image) && hit.isHit, "\(image): \(hit)")
            }
            #expect(!stage.node.output.contains("image not stored"))
        }

        @Test("Every broken image is treated as listed")
        func broken() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            for image in ImageCorpus.broken {
                let (fate, why) = try #require(SharedImages.fates[image.name], "\(image)")
                let path = stage.origin.serve(image, fields: [lasting])
                let first = try stage.get(path)
                let second = try stage.get(path)
                switch fate {
                case .kept:
                    #expect(first.matches(image) && second.matches(image), "\(image): \(why)")
                    #expect(second.isHit, "\(image): \(why) \(second)")
                    #expect(first.cacheStatus["stored"] != nil)
                case .refused:
                    expectProblem(first, 502, "\(image): \(why)")
                    expectProblem(second, 502, "\(image): \(why)")
                    #expect(first.text.contains("image-too-large"), "\(image): \(first.text)")
                }
                #expect(stage.fetches(path) == (fate == .kept ? 1 : 2), "\(image)")
                #expect(first["X-Content-Type-Options"] == "nosniff")
            }
            #expect(ImageCorpus.broken.count == SharedImages.fates.count)
        }

        @Test("Without a length, a truncated image never looks complete")
        func cut() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            for image in ImageCorpus.broken {
                let path = "/" + image.name
                let original = OriginResponse(image, framing: .close, fields: [lasting])
                stage.origin.on(path, original)
                let response = try stage.get(path)
                let isWhole = response.isWhole && response.status == 200
                let isCut = SharedImages.cut.contains(image.name)
                let isRefused = SharedImages.fates[image.name]?.0 == .refused
                #expect(isWhole == !(isCut || isRefused), "\(image): \(response)")
            }
        }
    }
}
