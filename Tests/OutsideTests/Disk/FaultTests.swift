import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Whatever becomes of the disk, the node serves")
    struct FaultTests {
        private static let off = "the disk tier is off"
        private static let back = "the disk tier is back"

        /// Asks for images whose bytes are checked; where each came from.
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

        /// The tier has said once that it is off, and once that it is back, and keeps images.
        private func expectReturned(
            _ stage: DiskStage, at location: SourceLocation = #_sourceLocation
        ) throws {
            try stage.wait(untilUp: true, at: location)
            #expect(stage.said(Self.off, "level=warning") == 1, sourceLocation: location)
            // A line is written a moment after what it says.
            expectSoon(20, at: location) { stage.said(Self.back) == 1 }
            try get(stage, 500..<510)
            try stage.settle()
            #expect(stage.said(Self.off) == 1, sourceLocation: location)
            try stage.restart()
            let details = try get(stage, 500..<510)
            #expect(details == Array(repeating: "disk", count: 10), sourceLocation: location)
        }

        /// The tier is off for several attempts to come back, and says so once.
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

        @Test("The directory is removed: memory and origin go on, and a new log is begun")
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
            "A full disk: serving goes on, and keeping too once there is room",
            .enabled(if: Mount.isPossible))
        func full() throws {
            let mount = try Mount(size: "6m")
            let stage = try DiskStage(
                "--disk-limit", "16MiB", directory: mount.folder.appendingPathComponent("cache"))
            try get(stage, 0..<40)
            try expectOff(stage)
            try mount.resize(to: "64m")
            try expectReturned(stage)
            stage.stop(gently: false)
            withExtendedLifetime(mount) {}
        }

        @Test("A disk that takes no writes is still read from", .enabled(if: Mount.isPossible))
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
            "What was made invalid and cannot be written at the stop is served by no later start",
            .enabled(if: Mount.isPossible))
        func unwritten() throws {
            let mount = try Mount(size: "24m")
            let stage = try SiteStage(
                "--disk-limit", "16MiB", "--cache-dir", mount.folder.path)
            // More than the room that the journal has taken already.
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
            #expect(stage.node.output.contains("what was invalidated last is not on disk"))
            try FileManager.default.removeItem(at: filler)
            try stage.restart()
            for (number, path) in paths.enumerated() {
                _ = try stage.get(path)
                #expect(stage.fetches(path) == 3, "\(number)")
            }
            stage.node.kill()
            withExtendedLifetime(mount) {}
        }

        /// Makes a file of all the room that there is.
        private func fill(_ file: URL) throws {
            try Data().write(to: file)
            let handle = try FileHandle(forWritingTo: file)
            defer { try? handle.close() }
            for count in [1 << 20, 4_096] {
                let block = Data(count: count)
                while (try? handle.write(contentsOf: block)) != nil {}
            }
        }

        @Test("A directory that cannot be made: the node serves without, and says so once")
        func impossible() throws {
            let stage = try DiskStage(
                "--disk-limit", "16MiB", directory: URL(fileURLWithPath: "/proc/nuthatch"))
            try expectOff(stage)
            #expect(stage.said(Self.off, "/proc/nuthatch") == 1)
            stage.stop(gently: true)
        }

        @Test("Without privileges a directory that is not ours is done without until it is")
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
            "A byte flipped while the node is stopped costs that image and no other",
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

        @Test(
            "A byte flipped in a segment that was not closed is said at the start",
            arguments: 0..<3)
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

        @Test("A byte flipped while the node runs is found before it is sent")
        func flippedMeanwhile() throws {
            let stage = try DiskStage("--disk-limit", "64MiB")
            try get(stage, 0..<20)
            try stage.settle()
            // Memory holds none of them then.
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

        /// Flips a byte of an image's record; the file that it is in and its offset.
        private func flip(
            _ image: TestImage, of stage: DiskStage, at place: Int
        ) throws -> (file: String, offset: Int) {
            let path = "/" + image.name
            // A record's key stands behind its fixed part.
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

        /// The loss is counted, and the log says in which file and at which offset.
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
