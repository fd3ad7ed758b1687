import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A kill loses only what was being written")
    struct KillTests {
        private static let limit = 16 << 20

        @Test("A killed writer leaves no wrong or deleted entry, and stays within the limit")
        func store() throws {
            let directory = try TemporaryFolder()
            let seed = UInt64.random(in: 0...(.max))
            let campaign = try Program.run(
                try NodeProcess.built("nuthatch-bench"),
                ["kill", directory.path, "--runs", "20", "--seed", "\(seed)"], seconds: 120)
            let report = String(decoding: campaign.output, as: UTF8.self)
            print(report)
            #expect(campaign.status == 0, "\(report)\(campaign.errors)")
            #expect(report.contains("runs 20: "), "\(report)")
        }

        @Test("A node killed under load serves no wrong byte, before or after its restart")
        func node() throws {
            let seed = UInt64.random(in: 0...(.max))
            var dice = SeededDice(seed)
            print("seed \(seed)")
            let stage = try DiskStage("--disk-limit", "16MiB", "--memory-limit", "16MiB")
            stage.origin.serveNoise()
            let images = (0..<70).map(TestImage.noise)
            let wanted = images.map {
                (target: ImageRequestTarget.forURL(stage.origin.url("/" + $0.name)), image: $0)
            }
            let peak = PeakDiskUsage(of: stage.directory)
            var (whole, cut, fromDisk) = (0, 0, 0)
            for _ in 0..<10 {
                let load = ImageLoad(
                    port: stage.node.port, connections: 6, seed: dice.next(), wanted)
                // By the first kill it must have served most of them.
                let responses = Int.random(in: 200...600, using: &dice)
                #expect(load.waitForAnswers(responses), "\(stage.node.output)")
                // A kill loses the whole write queue, which may hold everything.
                try expectSoon(30, "\(stage.node.output)") {
                    try stage.figure("nuthatch_disk_entries") >= 20
                }
                try stage.restart()
                let tally = load.stop()
                #expect(tally.wrong.isEmpty, "\(tally.wrong.prefix(3))")
                whole += tally.complete
                cut += tally.truncated
                let found = try imagesFromDisk(stage, images.shuffled(using: &dice).prefix(30))
                #expect(found > 0, "\(stage.node.output)")
                fromDisk += found
            }
            let (bytes, samples) = peak.stop()
            #expect(bytes <= Self.limit && bytes > Self.limit / 2 && samples > 50)
            #expect(fromDisk > 150, "\(fromDisk) of 300 come from disk")
            print("\(whole) whole, \(cut) cut, \(fromDisk) of 300 from disk, peak \(bytes)")
        }

        /// Returns the number of images served from disk; the origin gets no request for them.
        private func imagesFromDisk(
            _ stage: DiskStage, _ images: ArraySlice<TestImage>
        ) throws -> Int {
            try images.count { image in
                let before = stage.fetches("/" + image.name)
                let response = try stage.get("/" + image.name, expecting: image)
                #expect(response.matches(image), "\(response)")
                let isFromDisk = response.detail == "disk"
                #expect(!isFromDisk || stage.fetches("/" + image.name) == before, "\(response)")
                return isFromDisk
            }
        }
    }
}
