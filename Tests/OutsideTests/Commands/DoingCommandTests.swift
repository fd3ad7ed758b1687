import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Commands that change state: purge, prefetch, drain")
    struct DoingCommandTests {
        private let image = TestImage.generated(.png, byteCount: 5_000, seed: 3)

        @Test("purge succeeds when all nodes have confirmed, and is unfinished while one is away")
        func purge() throws {
            let stage = try ClusterStage(3)
            stage.origin.on("/a", OriginResponse(image, fields: [lasting]))
            _ = try stage.get("/a", from: 0)
            let (node, url) = (stage.nodes[0], stage.origin.url("/a"))
            let done = try node.command("purge", url, "--id", "one")
            #expect(done.status == 0 && done.errors.isEmpty, "\(done.errors)")
            #expect(done.text.contains("\nconfirmed by all 3 within "))
            #expect(try node.command("inspect", url).status == 1)
            let other = try node.command("purge", "--tag", "t", "--id", "one")
            #expect(other.status == 1 && other.errors.contains(" answered 409 "))
            let soft = try node.command("purge", "--prefix", url, "--soft", "--json").document
            #expect(soft["mode"] as? String == "soft" && soft["all_confirmed"] as? Bool == true)
            #expect(try node.command("purge", "--tag", "t", "--wait", "none").status == 0)
            let asked = try node.command("purge", "--everything")
            #expect(asked.status == 64 && asked.errors.contains("--yes"))
            #expect(try node.command("purge", "--everything", "--yes").status == 0)

            stage.nodes[2].kill()
            let late = try node.command("purge", url, "--within", "500ms")
            #expect(late.status == 75, "\(late)")
            #expect(late.text.contains("\n2 of 3 confirmed; 1 "))
        }

        @Test("prefetch fetches the listed URLs and reports those that failed")
        func prefetch() throws {
            let origin = try ScriptedOrigin()
            let urls = (0..<5).map { origin.url("/p\($0)") }
            for index in 0..<5 { origin.on("/p\(index)", OriginResponse(image, fields: [lasting])) }
            origin.on("/none", .text("none", status: "404 Not Found"))
            let node = try NodeProcess()
            let folder = try TemporaryFolder()
            let list = try folder.write("# images\n\n\(urls.joined(separator: "\n"))\n", to: "urls")
            let done = try node.command("prefetch", "--file", list.path)
            #expect(
                done.status == 0 && done.text.hasPrefix("done  5 URLs: 5 fetched, 0 already cached")
            )
            #expect(try node.command("inspect", urls[4]).status == 0)
            let again = try node.command("prefetch", urls[0], origin.url("/none"))
            #expect(again.status == 1 && again.text.contains("1 already cached, 1 failed"))
            #expect(again.text.contains("\(origin.url("/none"))  it responded with 404"))
            let json = try node.command("prefetch", urls[1], "--json").document
            #expect(json["state"] as? String == "done" && json["urls_held"] as? Int == 1)
            #expect(try node.command("prefetch", urls[1], "--no-wait").status == 0)
            let bad = try node.command("prefetch", "nonsense")
            #expect(bad.status == 64 && bad.errors.contains("is not a URL"), "\(bad)")
            try Data("\(urls[0])\n\nnonsense\n".utf8).write(to: list)
            let wrong = try node.command("prefetch", "--file", list.path)
            #expect(
                wrong.status == 64 && wrong.errors.contains(", line 3: \"nonsense\" is not a URL"))
        }

        @Test("A prefetch waits for others in progress, or ends as unfinished")
        func waiting() throws {
            let origin = try ScriptedOrigin()
            let gate = Gate()
            let urls = (0..<5).map { origin.url("/p\($0)") }
            for index in 0..<5 {
                origin.on(
                    "/p\(index)", OriginResponse(image, fields: [lasting]).delayingHead(.gate(gate))
                )
            }
            let node = try NodeProcess()
            for url in urls.prefix(4) {
                #expect(try node.command("prefetch", url, "--no-wait").status == 0)
            }
            let late = try node.command("prefetch", urls[4], "--within", "300ms")
            #expect(late.status == 75 && late.errors.contains("not started"), "\(late)")
            let never = try node.command("prefetch", urls[4], "--no-wait")
            #expect(never.status == 75 && never.errors.contains("too many prefetches"), "\(never)")
            // The URLs are read from a pipe.
            let line = "echo '\(urls[4])' | \"$0\" prefetch --file - --node \"$1\""
            let program = try Program(
                "/bin/sh",
                ["-c", line, try NodeProcess.binary(), "127.0.0.1:\(node.adminPort)"])
            gate.open()
            #expect(program.wait(seconds: 20) == 0, "\(program.errors)")
            #expect(try node.command("inspect", urls[4]).status == 0)
        }

        @Test("An unreachable origin is retried later without delaying other origins")
        func deadOrigin() throws {
            let origin = try ScriptedOrigin()
            origin.on("/here", OriginResponse(image, fields: [lasting]))
            let gone = "http://127.0.0.1:\(try ReservedPort.forProcess())"
            let node = try NodeProcess()
            let urls = (0..<20).map { "\(gone)/\($0)" } + [origin.url("/here")]
            let begun = try NodeProcess.run(
                ["prefetch"] + urls
                    + ["--json", "--within", "1s", "--node", "127.0.0.1:\(node.adminPort)"])
            #expect(begun.status == 75, "\(begun)")
            #expect(begun.document["urls_fetched"] as? Int == 1, "\(begun.text)")
            #expect(begun.document["urls_failed"] as? Int == 0, "\(begun.text)")
        }

        @Test("drain hands off the node's entries, and can be undone")
        func drain() throws {
            let stage = try ClusterStage(2)
            for index in 0..<20 {
                stage.origin.on("/p\(index)", OriginResponse(image, fields: [lasting]))
                _ = try stage.get("/p\(index)", from: 0)
            }
            let node = stage.nodes[0]
            let drained = try node.command("drain", "--within", "30s")
            #expect(drained.status == 0 && drained.text == "handoff complete\n", "\(drained)")
            #expect(try node.command("status").line("health") == "health    draining")
            let undone = try node.command("drain", "--undo")
            #expect(undone.status == 0 && undone.text == "back on the ring\n")
            #expect(try node.command("status").line("health") == "health    ready")
            let stopped = try node.command("drain", "--stop", "--within", "30s")
            #expect(stopped.status == 0 && stopped.text == "stopped\n", "\(stopped)")
            #expect(node.waitForExit(seconds: 20) == 0)
            #expect(try node.command("drain").status == 69)
        }

        @Test("A node that is already drained can be stopped, and a waiting command sees the end")
        func stop() throws {
            let stage = try ClusterStage(3)
            for index in 0..<200 {
                stage.origin.on("/p\(index)", OriginResponse(image, fields: [lasting]))
                _ = try stage.get("/p\(index)", from: 0)
            }
            let (first, second) = (stage.nodes[0], stage.nodes[1])
            #expect(try first.command("drain").status == 0)
            let stopped = try first.command("drain", "--stop", "--within", "30s")
            #expect(stopped.status == 0 && stopped.text == "stopped\n", "\(stopped)")
            #expect(first.waitForExit(seconds: 20) == 0)
            let once = try second.command("drain", "--stop", "--within", "60s")
            #expect(once.status == 0 && once.text == "stopped\n", "\(once)")
            #expect(second.waitForExit(seconds: 20) == 0)
        }
    }
}
