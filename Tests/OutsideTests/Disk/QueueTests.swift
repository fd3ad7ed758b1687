import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The write queue of a disk that hangs")
    struct QueueTests {
        private let disk: HungDisk
        private let folder: TemporaryFolder
        private let origin: ScriptedOrigin

        init() throws {
            disk = try HungDisk()
            folder = try TemporaryFolder()
            origin = try ScriptedOrigin()
        }

        /// Starts a node with memory for one response, whose disk hangs from then on.
        private func start(_ flags: String...) throws -> NodeProcess {
            let small = ["--cache-dir", folder.path, "--disk-limit", "64MiB"]
            let node = try NodeProcess(
                small + ["--memory-entries", "1"] + flags, environment: disk.environment)
            try disk.hang()
            return node
        }

        @Test("Images without a slot in memory are not fetched again")
        func images() throws {
            let node = try start()
            defer { node.kill() }
            let images = (0..<5).map {
                TestImage.generated(.png, byteCount: 9_000, seed: 1_600 + UInt64($0))
            }
            let paths = images.map { origin.serve($0, fields: [lasting]) }
            for _ in 0..<4 {
                for (image, path) in zip(images, paths) {
                    let response = try node.get(
                        ImageRequestTarget.forURL(origin.url(path)), expecting: image)
                    #expect(response.matches(image), "\(response)")
                }
            }
            for path in paths { #expect(origin.requests(path).count == 1) }
        }

        @Test("Variants of a site's resource are not fetched again either")
        func variants() throws {
            let node = try start("--site", "site.example=\(origin.url(""))")
            defer { node.kill() }
            let image = TestImage.generated(.png, byteCount: 9_000, seed: 1_610)
            let paths = (0..<3).map { "/\($0)" }
            for path in paths {
                origin.on(path, OriginResponse(image, fields: [lasting, "Vary: X-Kind"]))
            }
            for _ in 0..<4 {
                for kind in ["a", "b", "c"] {
                    for path in paths {
                        let response = try node.get(
                            path, host: "site.example", fields: ["X-Kind: \(kind)"],
                            expecting: image)
                        #expect(response.matches(image), "\(response)")
                    }
                }
            }
            for path in paths { #expect(origin.requests(path).count == 3) }
        }
    }
}
