import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The node serves through every disk fault")
    struct FaultTests {
        private static let off = "the disk tier is off"
        private static let back = "the disk tier is back"

        /// Requests images, checks their bytes and returns the source of each.
        @discardableResult
        private func get(_ stage: DiskStage, _ numbers: Range<Int>) throws -> [String] {
            stage.origin.serveNoise()
            return try numbers.map { number in
                let image = TestImage.noise(number)
                let response = try stage.get("/" + image.name, expecting: image)
                #expect(response.matches(image), "\(response)")
                return response.detail ?? ""
            }
        }

        /// Expects that the tier has logged one failure and one recovery, and stores images again.
        private func expectReturned(
            _ stage: DiskStage, at location: SourceLocation = #_sourceLocation
        ) throws {
            try stage.wait(untilUp: true, at: location)
            #expect(stage.said(Self.off, "level=warning") == 1, sourceLocation: location)
            // A log line is written a moment after the event.
            expectSoon(20, at: location) { stage.said(Self.back) == 1 }
            try get(stage, 500..<510)
            try stage.settle()
            #expect(stage.said(Self.off) == 1, sourceLocation: location)
            try stage.restart()
            let details = try get(stage, 500..<510)
            #expect(details == Array(repeating: "disk", count: 10), sourceLocation: location)
        }

        /// Expects that the tier stays off over several recovery attempts and logs it once.
        private func expectOff(
            _ stage: DiskStage, at location: SourceLocation = #_sourceLocation
        ) throws {
            try stage.wait(untilUp: false, at: location)
            let failures = { try stage.figure("nuthatch_disk_failures_total") }
            let before = try failures()
            var number = 600
            try expectSoon(60, at: location) {
                try get(stage, number..<number + 1)
                number = number < 799 ? number + 1 : 600
                return try failures() >= before + 2
            }
            #expect(stage.said(Self.off, "level=warning") == 1, sourceLocation: location)
            #expect(stage.said(Self.back) == 0, sourceLocation: location)
            #expect(try stage.figure("nuthatch_disk_up") == 0, sourceLocation: location)
        }

        @Test("With the directory removed, memory and origin serve, and a new log is begun")
        func removed() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            try get(stage, 0..<20)
            try stage.settle()
            try FileManager.default.removeItem(at: stage.directory)
            try stage.wait(untilUp: false)
            let details = try get(stage, 10..<30)
            #expect(details == [String](repeating: "memory", count: 10) + origins(10))
            try expectReturned(stage)
        }

        @Test(
            "A full disk: serving continues, and storing resumes once space is free",
            .enabled(if: Mount.isPossible))
        func full() throws {
            let mount = try Mount(size: "6m")
            let stage = try DiskStage(
                "--disk-limit", "16MiB", directory: mount.folder.appendingPathComponent("cache"))
            try get(stage, 0..<40)
            try expectOff(stage)
            let document = try stage.node.document("/admin/v1/conditions")
            let found = document["conditions"] as? [[String: Any]]
            #expect(found?.first?["name"] as? String == "disk-full", "\(document)")
            try mount.resize(to: "64m")
            try expectReturned(stage)
            stage.stop(gently: false)
            withExtendedLifetime(mount) {}
        }

        @Test("A read-only disk still serves reads", .enabled(if: Mount.isPossible))
        func readOnly() throws {
            let mount = try Mount(size: "64m")
            let stage = try DiskStage(
                "--disk-limit", "16MiB", directory: mount.folder.appendingPathComponent("cache"))
            try get(stage, 0..<10)
            try stage.settle()
            try stage.restart(gently: true)
            try mount.cover()
            try stage.wait(untilUp: false)
            #expect(try get(stage, 0..<12) == Array(repeating: "disk", count: 10) + origins(2))
            try expectOff(stage)
            try mount.uncover()
            try expectReturned(stage)
            stage.stop(gently: false)
            withExtendedLifetime(mount) {}
        }

        @Test(
            "An invalidation that cannot be written before a stop holds after every later start",
            .enabled(if: Mount.isPossible))
        func unwritten() throws {
            let mount = try Mount(size: "24m")
            let stage = try SiteStage(
                "--disk-limit", "16MiB", "--cache-dir", mount.folder.path)
            // More than the space that the journal has already allocated.
            let tail = String(repeating: "a", count: 3_000)
            let paths = (1...30).map { "/\($0)/\(tail)" }
            for path in paths {
                stage.origin.on(path) { .text($0.method, fields: ["Cache-Control: max-age=1000"]) }
                _ = try stage.get(path)
            }
            try stage.settle(entries: paths.count)
            let filler = mount.folder.appendingPathComponent("filler")
            try fill(filler)
            for path in paths {
                #expect(try stage.send("POST", path, body: "x").text == "POST")
            }
            #expect(stage.node.stop() == 1)
            #expect(stage.node.output.contains("the latest invalidations are not on disk"))
            try FileManager.default.removeItem(at: filler)
            try stage.restart()
            for (number, path) in paths.enumerated() {
                _ = try stage.get(path)
                #expect(stage.fetches(path) == 3, "\(number)")
            }
            stage.node.kill()
            withExtendedLifetime(mount) {}
        }

        /// Creates a file that fills the file system.
        private func fill(_ file: URL) throws {
            try Data().write(to: file)
            let handle = try FileHandle(forWritingTo: file)
            defer { try? handle.close() }
            for count in [1 << 20, 4_096] {
                let block = Data(count: count)
                while (try? handle.write(contentsOf: block)) != nil {}
            }
        }

        @Test("A directory that cannot be created: the node serves without it and logs it once")
        func impossible() throws {
            let stage = try DiskStage(
                "--disk-limit", "16MiB", directory: URL(fileURLWithPath: "/proc/nuthatch"))
            try expectOff(stage)
            #expect(stage.said(Self.off, "/proc/nuthatch") == 1)
            stage.stop(gently: true)
        }

        @Test("An unprivileged node does without a directory of another user until it gets access")
        func unprivileged() throws {
            let directory = try Program.temporaryFolder()
            try permit(0o500, directory)
            let stage = try DiskStage(
                "--disk-limit", "16MiB", directory: directory, isPrivileged: false)
            #expect(try get(stage, 0..<5) == origins(5))
            #expect(try stage.figure("nuthatch_disk_up") == 0)
            try permit(0o700, directory)
            try expectReturned(stage)
        }

        @Test(
            "A byte flipped while the node is stopped costs only that image",
            arguments: [0, 230, 100_000])
        func flippedBefore(place: Int) throws {
            let stage = try DiskStage("--disk-limit", "16MiB")
            try get(stage, 0..<20)
            try stage.settle()
            stage.stop(gently: true)
            let lost = try flip(.noise(7), of: stage, at: place)
            try stage.restart()
            var details = [String](repeating: "disk", count: 20)
            details[7] = "origin"
            #expect(try get(stage, 0..<20) == details)
            try expectLost(stage, lost)
            try stage.settle()
            try stage.restart()
            #expect(try get(stage, 0..<20) == Array(repeating: "disk", count: 20))
        }

        @Test("A byte flipped in an open segment is reported at the start", arguments: 0..<3)
        func flippedInOpen(number: Int) throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            try get(stage, 0..<3)
            try stage.settle()
            stage.stop(gently: false)
            let (file, offset) = try flip(.noise(number), of: stage, at: 100_000)
            try stage.restart()
            var details = [String](repeating: "disk", count: 3)
            details[number] = "origin"
            #expect(try get(stage, 0..<3) == details)
            #expect(
                stage.said("level=warning", file, "records=1", "offsets=\(offset)") == 1,
                "\(file) \(offset)? \(stage.node.output)")
        }

        @Test("A byte flipped while the node runs is detected before it is sent")
        func flippedMeanwhile() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            try get(stage, 0..<20)
            try stage.settle()
            // After this, none of them is in memory.
            try stage.restart()
            let lost = try flip(.noise(3), of: stage, at: 100_000)
            #expect(try get(stage, 2..<5) == ["disk", "origin", "disk"])
            try expectLost(stage, lost)
        }

        private func origins(_ count: Int) -> [String] {
            Array(repeating: "origin", count: count)
        }

        private func permit(_ mode: Int, _ directory: URL) throws {
            try FileManager.default.setAttributes(
                [.posixPermissions: mode], ofItemAtPath: directory.path)
        }

        private struct NotOnDisk: Error {
            let path: String
        }

        /// Flips a byte of an image's record and returns its file and offset.
        private func flip(
            _ image: TestImage, of stage: DiskStage, at place: Int
        ) throws -> (file: String, offset: Int) {
            let path = "/" + image.name
            // A record's key follows its fixed part.
            let sought = Data(stage.origin.url(path).utf8)
            let folder = stage.directory.appendingPathComponent("node-0")
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
            where name.hasPrefix("segment-") {
                let segment = folder.appendingPathComponent(name)
                let bytes = try Data(contentsOf: segment)
                guard let key = bytes.range(of: sought) else { continue }
                let record = key.lowerBound - 192
                let file = try FileHandle(forUpdating: segment)
                try file.seek(toOffset: UInt64(record + place))
                try file.write(contentsOf: Data([bytes[record + place] ^ 0x10]))
                try file.close()
                return (name, record)
            }
            throw NotOnDisk(path: path)
        }

        /// Expects that the loss is counted and logged with its file and offset.
        private func expectLost(
            _ stage: DiskStage, _ lost: (file: String, offset: Int)
        ) throws {
            #expect(try stage.figure("nuthatch_disk_records_total{result=\"lost\"}") == 1)
            expectSoon(10, "\(lost)? \(stage.node.output)") {
                stage.said("level=warning", lost.file, "offset=\(lost.offset) ") == 1
            }
        }
    }
}
