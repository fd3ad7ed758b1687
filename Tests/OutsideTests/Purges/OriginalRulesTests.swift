import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Changes of the rules that name originals")
    struct OriginalRulesTests {
        private static let site = "www.example"
        private static let path = "/_next/image"
        private static let small = "/_next/image?url=%2Fa.jpg&w=64"

        /// An origin, and a node with a disk whose file gives the site these rules.
        private final class Play {
            let origin: ScriptedOrigin
            let folder: TemporaryFolder
            var node: NodeProcess
            private var reloads = 0

            init(_ rules: String) throws {
                origin = try ScriptedOrigin()
                folder = try TemporaryFolder()
                origin.on(OriginalRulesTests.path) { request in
                    request.isConditional
                        ? .notModified([lasting, "ETag: \"1\""])
                        : .text("it", fields: [lasting, "ETag: \"1\"", "Surrogate-Key: t"])
                }
                try Self.write(rules, origin, folder)
                node = try Self.start(folder)
            }

            deinit { node.kill() }

            private static func write(
                _ rules: String, _ origin: ScriptedOrigin, _ folder: TemporaryFolder
            ) throws {
                let text = """
                    sites:
                      \(OriginalRulesTests.site):
                        origin: \(origin.url(""))
                        originals: \(rules)
                      b.example: \(origin.url(""))
                    """
                let file = folder.appending(path: "nuthatch.yaml")
                try Data(text.utf8).write(to: file, options: .atomic)
            }

            private static func start(_ folder: TemporaryFolder) throws -> NodeProcess {
                try NodeProcess([
                    "--config", folder.appending(path: "nuthatch.yaml").path, "--cache-dir",
                    folder.appending(path: "cache").path,
                ])
            }

            /// Applies other rules to the node, by a reload or by a restart.
            func change(_ rules: String, byRestart: Bool, entries: Int = 2) throws {
                try Self.write(rules, origin, folder)
                if byRestart { return try restart(entries: entries) }
                reloads += 1
                node.hangUp()
                let isDone = Deadline.seconds(30).waitUntil {
                    node.lines.count { $0.contains("settings reloaded") } >= reloads
                }
                try #require(isDone, "\(node.output)")
            }

            /// Kills the node once everything is on disk, and starts it again.
            func restart(entries: Int = 2) throws {
                let isWritten = Deadline.seconds(30).waitUntil {
                    node.metric("nuthatch_disk_queued_bytes") == 0
                        && node.diskEntries == Double(entries)
                }
                try #require(isWritten)
                node.kill()
                reloads = 0
                node = try Self.start(folder)
            }

            func get(_ host: String = OriginalRulesTests.site) throws -> Response {
                try node.get(OriginalRulesTests.small, host: host)
            }

            /// For each origin request so far, whether it was conditional.
            var conditional: [Bool] {
                origin.requests(OriginalRulesTests.path).map(\.isConditional)
            }

            /// Waits until the directory records the rules by which it is tagged.
            func settle() throws {
                let file = folder.appending(path: "cache/node-0/originals")
                let isSettled = Deadline.seconds(30).waitUntil {
                    // The number of sites with rules.
                    (try? Data(contentsOf: file)).map { $0.count >= 16 && $0[12] == 1 } ?? false
                }
                try #require(isSettled, "\(node.output)")
            }
        }

        @Test(
            "Stored entries are revalidated once, and are then found by their original",
            arguments: [false, true])
        func changed(byRestart: Bool) throws {
            let play = try Play("[]")
            #expect(try !play.get().isHit && play.get().isHit)
            #expect(try !play.get("b.example").isHit)
            try play.change("nextjs", byRestart: byRestart)
            #expect(try !play.get().isHit && play.get().isHit)
            #expect(play.conditional == [false, false, true])
            #expect(try play.get("b.example").isHit, "it has the rules that it had")
            let url = "{\"url\":\"https://\(Self.site)/a.jpg\"}"
            #expect(try play.node.purge(url).isConfirmedByAll)
            #expect(try !play.get().isHit && play.get().isHit)
            #expect(play.conditional == [false, false, true, false])
            #expect(try play.get("b.example").isHit)
            // The origin's cache tags are not lost on the way.
            #expect(try play.node.purge("{\"tag\":\"t\"}").isConfirmedByAll)
            #expect(try !play.get().isHit)
        }

        @Test("The same rules in another spelling cost nothing, by reload or restart")
        func same() throws {
            let play = try Play("nextjs")
            try play.settle()
            #expect(try !play.get().isHit && !play.get("b.example").isHit)
            try play.change("['  nextjs ']", byRestart: false)
            #expect(try play.get().isHit)
            try play.restart()
            #expect(try play.get().isHit && play.get("b.example").isHit)
            #expect(play.conditional == [false, false])
        }

        @Test("Rules that were removed for a while count as changed")
        func away() throws {
            let play = try Play("nextjs")
            try play.settle()
            try play.change("[]", byRestart: true, entries: 0)
            #expect(try !play.get().isHit && !play.get("b.example").isHit)
            try play.change("nextjs", byRestart: true)
            #expect(try !play.get().isHit && play.get().isHit)
            #expect(play.conditional == [false, false, true])
        }

        @Test(
            "A damaged or missing rule fingerprint file counts as unknown rules",
            arguments: [true, false])
        func damaged(isGone: Bool) throws {
            let play = try Play("nextjs")
            try play.settle()
            #expect(try !play.get().isHit && !play.get("b.example").isHit)
            let file = play.folder.appending(path: "cache/node-0/originals")
            if isGone {
                try FileManager.default.removeItem(at: file)
            } else {
                var bytes = try Data(contentsOf: file)
                bytes[30] ^= 1
                try bytes.write(to: file)
            }
            try play.restart()
            #expect(try !play.get().isHit && play.get().isHit)
            #expect(play.conditional == [false, false, true])
        }
    }
}
