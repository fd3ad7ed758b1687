import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The disk limit holds")
    struct RoomTests {
        private static let limit = 16 << 20

        /// Requests images 0, 1, 2, … of about 300 KB, most of them once, some repeatedly.
        private func churn(_ stage: DiskStage, _ numbers: Range<Int>) throws {
            stage.origin.serveNoise()
            for number in numbers {
                for wanted in [number, number % 7] {
                    let image = TestImage.noise(wanted)
                    let response = try stage.get("/" + image.name, expecting: image)
                    #expect(response.matches(image), "\(response)")
                }
            }
        }

        @Test("Blocks below the directory stay within the limit, whatever is written")
        func cap() throws {
            let stage = try DiskStage("--disk-limit", "16MiB", "--memory-limit", "16MiB")
            let peak = PeakDiskUsage(of: stage.directory)
            try churn(stage, 0..<400)
            try stage.settle()
            let (bytes, samples) = peak.stop()
            #expect(bytes <= Self.limit && bytes > Self.limit / 2 && samples > 10)
            #expect(try stage.figure("nuthatch_disk_reclaims_total") > 20)
            #expect(try stage.figure("nuthatch_disk_gone_total{reason=\"evicted\"}") > 100)
            #expect(try stage.figure("nuthatch_disk_used_bytes") <= Double(Self.limit))
        }

        @Test("A smaller limit holds from the next start on, and the newest images stay")
        func smaller() throws {
            let stage = try DiskStage("--disk-limit", "64MiB", "--memory-limit", "16MiB")
            try churn(stage, 0..<139)
            // A full queue accepts no record, so the newest image waits for an empty one.
            try stage.settle()
            try churn(stage, 139..<140)
            try stage.settle()
            try stage.restart(gently: true, "--disk-limit", "40MiB")
            #expect(try stage.usedBytes() <= 40 << 20)
            let newest = TestImage.noise(139)
            let response = try stage.get("/" + newest.name, expecting: newest)
            #expect(response.matches(newest) && response.detail == "disk", "\(response)")
            try churn(stage, 140..<240)
            #expect(try stage.usedBytes() <= 40 << 20)
        }

        @Test("A limit of 0 disables the disk, and too small a limit fails the start")
        func none() throws {
            let stage = try DiskStage("--disk-limit", "0")
            let image = TestImage.generated(.png, byteCount: 5_000, seed: 3)
            _ = try stage.get(stage.origin.serve(image, fields: [lasting]))
            try stage.restart(gently: true)
            #expect(try stage.get("/" + image.name).detail == "origin")
            let names = try FileManager.default.contentsOfDirectory(atPath: stage.directory.path)
            #expect(names.isEmpty)
            let refused = try NodeProcess.run(
                ["serve", "--cache-dir", stage.directory.path, "--disk-limit", "4MiB"])
            #expect(refused.status == 78)
            #expect(refused.errors.contains("disk-limit"), "\(refused.errors)")
            #expect(refused.errors.contains("at least"), "\(refused.errors)")
        }

        @Test("An image larger than a segment is served and not stored on disk")
        func tooLarge() throws {
            let stage = try DiskStage("--disk-limit", "16MiB")
            let image = TestImage.generated(.png, byteCount: 3_000_000, seed: 4)
            _ = try stage.get(stage.origin.serve(image, fields: [lasting]))
            #expect(try stage.get("/" + image.name, expecting: image).matches(image))
            try stage.settle()
            #expect(try stage.figure("nuthatch_disk_records_total{result=\"dropped\"}") == 1)
            try stage.restart()
            let again = try stage.get("/" + image.name, expecting: image)
            #expect(again.matches(image) && again.detail == "origin", "\(again)")
        }

        @Test("A large image is served from disk, and evicts nothing from memory")
        func largeOnDisk() throws {
            let stage = try DiskStage("--disk-limit", "512MiB", "--memory-limit", "16MiB")
            let large = TestImage.generated(.bmp, byteCount: 8_000_000, seed: 7)
            let path = stage.origin.serve(large, fields: [lasting])
            #expect(try stage.get(path, expecting: large).matches(large))
            try stage.settle()
            let small = (0..<200).map {
                TestImage.generated(.jpeg, byteCount: 60_000 + $0, seed: UInt64(20 + $0))
            }
            for image in small { stage.origin.serve(image, fields: [lasting]) }
            for _ in 0..<3 {
                for image in small { _ = try stage.get("/" + image.name, expecting: image) }
            }
            for _ in 0..<2 {
                let response = try stage.get(path, expecting: large)
                #expect(response.matches(large) && response.detail == "disk", "\(response)")
            }
            #expect(stage.fetches(path) == 1)
            for image in small {
                let response = try stage.get("/" + image.name, expecting: image)
                #expect(response.matches(image) && response.detail == "memory", "\(response)")
            }
        }

        @Test("An image larger than the queue is stored when the queue is empty")
        func largerThanQueue() throws {
            let stage = try DiskStage("--disk-limit", "256MiB", "--disk-queue-limit", "1MiB")
            let image = TestImage.generated(.png, byteCount: 3_000_000, seed: 6)
            _ = try stage.get(stage.origin.serve(image, fields: [lasting]))
            try stage.settle()
            try stage.restart()
            let again = try stage.get("/" + image.name, expecting: image)
            #expect(again.matches(image) && again.detail == "disk", "\(again)")
        }

        @Test("Nodes that share a directory have a subdirectory each, and find it again")
        func shared() throws {
            let first = try DiskStage("--disk-limit", "64MiB")
            let second = try DiskStage("--disk-limit", "64MiB", directory: first.directory)
            let image = TestImage.generated(.png, byteCount: 5_000, seed: 5)
            for stage in [first, second] {
                _ = try stage.get(stage.origin.serve(image, fields: [lasting]))
                try stage.settle()
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: first.directory.path)
            #expect(Set(names) == ["node-0", "node-1"])
            for stage in [first, second] {
                try stage.restart()
                #expect(try stage.get("/" + image.name).detail == "disk")
                #expect(stage.fetches("/" + image.name) == 1)
            }
        }
    }
}

extension TestImage {
    /// Returns one of many images, each with its own size of about 300 KB.
    static func noise(_ number: Int) -> TestImage {
        generated(.png, byteCount: 200_000 + number * 37 % 200_000, seed: UInt64(9_000 + number))
    }
}

extension ScriptedOrigin {
    /// Serves `noise` images by their names on every path without its own handler.
    func serveNoise() {
        for number in 0..<1_000 {
            let image = TestImage.noise(number)
            on("/" + image.name) { _ in OriginResponse(image, fields: [lasting]) }
        }
    }
}
