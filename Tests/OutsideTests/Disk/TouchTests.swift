import Harness
import Testing

extension Outside {
    @Suite("Entries served from memory do not look idle to the disk")
    struct TouchTests {
        /// Serves an image from memory until two idle images exceed the disk's age limit, and
        /// returns the image's source after a restart of the node.
        ///
        /// The second idle image is stored after the first has expired.
        private func detailAfter(touches interval: String) throws -> String? {
            let stage = try DiskStage(
                "--disk-limit", "64MiB", "--age-limit", "3s", "--touch-interval", interval)
            let image = TestImage.generated(.png, byteCount: 20_000, seed: 61)
            let path = stage.origin.serve(image, fields: [lasting])
            _ = try stage.get(path)
            try stage.settle()
            let connection = try stage.node.connect()
            let target = ImageRequestTarget.forURL(stage.origin.url(path))
            let entries: Double = interval == "0s" ? 0 : 1
            for number in 0..<2 {
                let idle = TestImage.generated(.png, byteCount: 20_000, seed: 63 + UInt64(number))
                _ = try stage.get(stage.origin.serve(idle, fields: [lasting]))
                try stage.settle()
                try expectSoon(60) {
                    let hit = try connection.get(target)
                    #expect(hit.matches(image) && hit.detail == "memory", "\(hit)")
                    return try stage.figure("nuthatch_disk_entries") == entries
                }
            }
            // The duration of the start must not make the image too old.
            try stage.restart(gently: true, "--age-limit", "1h")
            let again = try stage.get(path, expecting: image)
            #expect(again.matches(image))
            #expect(stage.fetches(path) == (again.detail == "disk" ? 1 : 2))
            return again.detail
        }

        @Test("With touches an image outlives the age limit")
        func stays() throws {
            #expect(try detailAfter(touches: "1s") == "disk")
        }

        @Test("Without touches the image expires on disk")
        func goes() throws {
            #expect(try detailAfter(touches: "0s") == "origin")
        }

        @Test("An image without requests leaves the disk at the age limit")
        func expires() throws {
            let stage = try DiskStage("--disk-limit", "64MiB", "--age-limit", "2s")
            let image = TestImage.generated(.png, byteCount: 20_000, seed: 62)
            _ = try stage.get(stage.origin.serve(image, fields: [lasting]))
            try stage.settle()
            try expectSoon { try stage.figure("nuthatch_disk_gone_total{reason=\"expired\"}") == 1 }
            #expect(try stage.figure("nuthatch_disk_entries") == 0)
        }
    }
}
