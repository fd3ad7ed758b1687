import Foundation
import Glibc
import Harness
import Testing

extension Outside {
    @Suite("SIGHUP changes all settings atomically, or none")
    struct ReloadTests {
        private static let image = TestImage.generated(.jpeg, byteCount: 20_000, seed: 190)
        private var image: TestImage { Self.image }
        private static let longPath = "/" + String(repeating: "a", count: 650)

        /// Two pairs of limits, under which the same requests get different statuses.
        private enum Flavour: String, CaseIterable {
            case narrow = "url-limit: 512B\nranges-limit: 1\n"
            case wide = "url-limit: 1KiB\nranges-limit: 4\n"

            var file: String { "# Some settings.\n" + opened + "log-level: notice\n" + rawValue }

            /// The statuses of a request with a long URL and of one with two ranges of an image.
            var statuses: [Int] { self == .narrow ? [414, 200] : [200, 206] }
        }

        /// Invalid files that must change nothing, with the expected words in the log.
        private static let bad: [(file: Data?, words: [String])] = [
            (
                Data("memory-limit: 1KiB\nurl-limit: 700B\n".utf8),
                ["line 1", "memory-limit", "16MiB"]
            ),
            (Data("url-limit: 700B\nurl-limt: 600B\n".utf8), ["line 2", "url-limt", "url-limit"]),
            (Data("url-limit: 700B\ndisk-limit: 4MiB\n".utf8), ["disk-limit", "line 2", "4MiB"]),
            (
                Data("object-limit: 1GiB\nmemory-limit: 16MiB\n".utf8),
                ["object-limit", "line 1", "memory-limit", "line 2"]
            ),
            (Data("url-limit: 700B\nranges-limit: [1\n".utf8), ["line 3", "did not find"]),
            (Data("url-limit: &a 700B\n".utf8), ["line 1", "anchor"]),
            (Data("- url-limit\n".utf8), ["line 1", "mapping"]),
            (Data("config: other.yaml\n".utf8), ["line 1", "config"]),
            (Data([0x75, 0xFF]), ["UTF-8"]),
            (Data(repeating: 0x20, count: 1 << 20 + 1), ["1 MiB"]),
            (nil, ["the file does not exist"]),
        ]

        /// Returns requests for a long URL and for two ranges of an image, both in memory.
        private func requests(_ stage: SettingsStage) throws -> [[UInt8]] {
            for path in [Self.longPath, "/" + image.name] {
                stage.origin.on(path, OriginResponse(image, fields: [lasting]))
                #expect(try stage.get(path).matches(image))
            }
            return [
                HTTPConnection.request(stage.target(Self.longPath)),
                HTTPConnection.request(
                    stage.target("/" + image.name), fields: ["Range: bytes=0-1,10-11"]),
            ]
        }

        /// Sends requests in one write and returns their statuses.
        private func statuses(_ requests: [[UInt8]], on connection: HTTPConnection) throws -> [Int]
        {
            try connection.socket.send(Array(requests.joined()))
            return requests.map { _ in connection.readResponse().status }
        }

        @Test("A hundred reloads under load lose no request and mix no settings")
        func hundredTimes() throws {
            let stage = try SettingsStage(Flavour.wide.file, "--loops", "2")
            let requests = try requests(stage)
            let watch = try StatusRecorder(port: stage.node.port, requests)
            let load = ImageLoad(port: stage.node.port, connections: 8, seed: 1, loaded(stage))
            let old = try stage.node.connect()
            for round in 0..<100 {
                let flavour = Flavour.allCases[round / 2 % 2]
                if round % 2 == 0 {
                    let line = try stage.reload(flavour.file)
                    #expect(line.contains("level=notice") && line.contains("settings reloaded"))
                } else {
                    let (file, words) = Self.bad[round / 2 % Self.bad.count]
                    let line = try stage.reload(bytes: file)
                    #expect(line.contains("level=error") && line.contains("not reloaded"))
                    #expect(words.allSatisfy(line.contains), "\(words) in \(line)")
                }
                // Every loop has applied it, on connections old and new.
                for _ in 0..<4 {
                    let new = try stage.node.connect()
                    #expect(try statuses(requests, on: new) == flavour.statuses)
                }
                #expect(try statuses(requests, on: old) == flavour.statuses, "\(round)")
            }
            #expect(load.waitForAnswers(5_000, seconds: 60))
            let tally = load.stop()
            #expect(tally.truncated == 0 && tally.wrong.isEmpty, "\(tally)")
            let (seen, rounds) = watch.stop()
            #expect(seen == Set(Flavour.allCases.map(\.statuses)) && rounds >= 100)
            #expect(stage.node.isRunning)
        }

        /// Returns images that are stored, and images that are fetched each time.
        private func loaded(_ stage: SettingsStage) -> [ImageLoad.RequestedImage] {
            (0..<20).map { number in
                let image = TestImage.generated(
                    .jpeg, byteCount: 30_000, seed: UInt64(200 + number))
                let fields = number < 10 ? [lasting] : ["Cache-Control: no-store"]
                return (stage.target(stage.origin.serve(image, fields: fields)), image)
            }
        }

        @Test("A burst of signals ends with the settings of the last file")
        func burst() throws {
            let stage = try SettingsStage(Flavour.wide.file)
            let requests = try requests(stage)
            for _ in 0..<100 { stage.node.hangUp() }
            try Data(Flavour.narrow.file.utf8).write(
                to: URL(fileURLWithPath: stage.path), options: .atomic)
            for _ in 0..<100 { stage.node.hangUp() }
            try expectSoon(20) {
                try statuses(requests, on: stage.node.connect()) == Flavour.narrow.statuses
            }
            #expect(
                stage.node.isRunning
                    && stage.node.lineCount(containing: "settings not reloaded") == 0)
        }

        @Test("A signal during the start does not end the node")
        func early() throws {
            let port = try ReservedPort.forProcess()
            // Ignored before the program runs at all, as under nohup(1).
            let script =
                "trap '' HUP && exec \"$0\" serve --listen 127.0.0.1:\(port) --admin-listen off"
            let node = try Program("/bin/sh", ["-c", script, try NodeProcess.binary()])
            // A process that was only just forked still has the signal dispositions of this one.
            let program = "/proc/\(node.identifier)/exe"
            let isNode = {
                let path = try? FileManager.default.destinationOfSymbolicLink(atPath: program)
                return path?.hasSuffix("/nuthatch") == true
            }
            expectSoon(20) { node.ignores(SIGHUP) || isNode() && node.catches(SIGHUP) }
            let isUp = Deadline.seconds(20).waitUntil {
                node.hangUp()
                return (try? HTTPConnection(port: port).get("/readyz").status) == 200
            }
            #expect(isUp && node.isRunning)
            expectSoon(20) { node.errors.contains("settings reloaded") }
            node.terminate()
            #expect(node.wait(seconds: 20) == 0)
        }

        @Test("Settings that need a restart are reported and unchanged; the others change")
        func restartNeeded() throws {
            let stage = try SettingsStage(opened + "disk-threads: 2\n")
            let line = try stage.reload(opened + "disk-threads: 3\nranges-limit: 2\n")
            #expect(line.contains("\"ranges-limit 16 -> 2\""), "\(line)")
            #expect(
                stage.node.lineCount(
                    containing: "level=warning", "restart", "\"disk-threads 2 -> 3\"") == 1)
            #expect(try stage.reload(opened + "disk-threads: 2\n").contains("ranges-limit 2 -> 16"))
            #expect(stage.node.lineCount(containing: "level=warning") == 1)
        }

        @Test("A node reachable beyond loopback keeps allow-origin required at a reload")
        func openNode() throws {
            let port = try ReservedPort.forProcess()
            let folder = try TemporaryFolder()
            let file = try folder.write(
                "listen: 0.0.0.0:\(port)\nallow-origin: a.example\n", to: "n.yaml")
            let node = try Program(
                try NodeProcess.binary(),
                ["serve", "--config", file.path, "--admin-listen", "off"])
            expectSoon(20) { node.errors.contains("message=serving") }
            try Data("listen: 127.0.0.1:\(port)\n".utf8).write(to: file)
            node.hangUp()
            expectSoon(20) { node.errors.contains("not reloaded") }
            #expect(node.errors.contains("allow-origin or site is required"))
            let response = try HTTPConnection(port: port)
                .get("/v1/image?url=http://b.example/x", seconds: 10)
            expectProblem(response, 403)
        }
    }
}
