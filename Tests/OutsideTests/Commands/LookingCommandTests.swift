import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Commands that read: status, inspect, get, top")
    struct LookingCommandTests {
        private let image = TestImage.generated(.png, byteCount: 20_000, seed: 7)

        private func stage(_ flags: String...) throws -> Stage {
            let origin = try ScriptedOrigin()
            origin.on("/a", OriginResponse(image, fields: [lasting]))
            return Stage(origin: origin, node: try NodeProcess(flags))
        }

        @Test("status reports the state of nodes; with several nodes all must respond")
        func status() throws {
            let stage = try stage()
            _ = try stage.get("/a")
            _ = try stage.get("/a")
            let result = try stage.node.command("status")
            #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
            #expect(result.line("health") == "health    ready")
            #expect(result.line("requests").contains("hit ratio 50.0% of requests"))
            #expect(result.line("cluster") == "cluster   none")
            #expect(!result.text.contains("\u{1B}"))
            let json = try stage.node.command("status", "--json").document
            let statistics = json["statistics"] as? [String: Any]
            #expect((statistics?["requests"] as? [String: Int])?["memory"] == 1)
            let two = try stage.node.command("status", "--node", "127.0.0.1:1")
            #expect(two.status == 69 && two.line("127.0.0.1:1 ").contains("Connection refused"))
            #expect(two.line("127.0.0.1:\(stage.node.adminPort)").contains("ready"))
            let unknown = try stage.node.command("status", "--node", "nowhere.invalid")
            #expect(unknown.status == 69 && unknown.line("nowhere.invalid").contains("resolved ("))
            #expect(unknown.line("127.0.0.1:\(stage.node.adminPort)").contains("ready"))
        }

        @Test("A token is taken from a flag, the environment or the configuration file")
        func tokens() throws {
            let folder = try TemporaryFolder()
            func file(_ name: String, _ text: String) throws -> String {
                try folder.write(text, to: name).path
            }
            let (strong, weak) = (
                String(repeating: "a", count: 20), String(repeating: "r", count: 20)
            )
            let all = try file("all", "read \(weak)\nadmin \(strong)\n")
            let node = try stage("--admin-token-file", all).node
            let without = try node.command("status")
            #expect(without.status == 1 && without.errors.contains(" answered 401 "))
            let wrong = try file("wrong", String(repeating: "w", count: 20))
            for words in [["status"], ["top", "--once"], ["inspect", "http://a/b"]] {
                let refused = try NodeProcess.run(
                    words + ["--node", "127.0.0.1:\(node.adminPort)", "--token-file", wrong])
                #expect(refused.status == 1 && refused.errors.contains(" answered 4"))
            }
            let none = try node.command("status", "--token-file", "/nowhere/token")
            #expect(none.status == 78 && none.errors.contains("--token-file: \"/nowhere/token\""))
            let reading = try file("reading", "\(weak)\n")
            let read = try node.command("status", "--token-file", reading)
            #expect(read.status == 0 && read.line("role") == "role      read")
            let drain = try node.command("drain", "--no-wait", "--token-file", reading)
            #expect(drain.status == 1 && drain.errors.contains(" answered 403 "))
            let variable = try node.command("status", environment: ["NUTHATCH_TOKEN_FILE": all])
            #expect(variable.line("role") == "role      admin")
            let own = try node.command("status", "--admin-token-file", all)
            #expect(own.line("role") == "role      admin")
        }

        @Test("inspect shows stored entries and reports missing ones")
        func inspect() throws {
            let stage = try stage()
            let url = stage.origin.url("/a")
            let before = try stage.node.command("inspect", url)
            #expect(before.status == 1 && before.errors.contains(" answered 404 Not stored on"))
            _ = try stage.get("/a")
            let held = try stage.node.command("inspect", url, "--head")
            #expect(held.status == 0 && held.line("now").contains("fresh: fresh for"))
            #expect(held.line("response") == "response  200 image/png, 19.5 KiB")
            #expect(held.text.contains("\ncontent-type: image/png\n"))
            let json = try stage.node.command("inspect", url, "--json").document
            #expect((json["variants"] as? [Any])?.count == 1 && json["url"] as? String == url)
        }

        @Test("get writes the complete image or nothing")
        func get() throws {
            let stage = try stage()
            let folder = try TemporaryFolder()
            let base = ["--base", "127.0.0.1:\(stage.node.port)"]
            func get(_ words: String...) throws -> ProgramResult {
                try NodeProcess.run(["get"] + base + words)
            }
            let url = stage.origin.url("/a")
            #expect(try get(url).output == Data(image.bytes(0..<image.byteCount)))
            let file = folder.appending(path: "a.png")
            let saved = try get(url, "--output", file.path)
            #expect(saved.status == 0 && saved.text.contains("19.5 KiB image/png, nuthatch; hit;"))
            #expect(try Data(contentsOf: file) == Data(image.bytes(0..<image.byteCount)))
            let head = try get(url, "--head", "--header", "Accept: image/png")
            #expect(head.status == 0 && head.line("cache").contains("detail=memory"))
            let missing = try get(stage.origin.url("/missing"), "--head")
            #expect(missing.status == 1 && missing.line("status") == "status  404", "\(missing)")
            let document = try get(stage.origin.url("/missing"), "--head", "--json").document
            #expect(document["status"] as? Int == 404)

            stage.origin.on("/none", .text("none", status: "404 Not Found"))
            let none = try get(stage.origin.url("/none"), "-o", folder.appending(path: "n").path)
            #expect(none.status == 1 && none.errors.contains(" answered 404 "))
            // By then the node has begun to relay the body.
            stage.origin.on(
                "/cut",
                OriginResponse(image, fields: [lasting]).stalling(at: 9_000, .seconds(0.2))
                    .truncated(after: 9_000, .close))
            let cut = try get(stage.origin.url("/cut"), "-o", folder.appending(path: "c").path)
            #expect(cut.status == 69 && cut.errors.contains("truncated"), "\(cut.errors)")
            let nowhere = try get(url, "-o", "/nowhere/a")
            #expect(nowhere.status == 1 && nowhere.errors.contains("No such file or directory"))
            let device = folder.appending(path: "device").path
            try FileManager.default.createSymbolicLink(
                atPath: device, withDestinationPath: "/dev/null")
            #expect(try get(url, "-o", device).status == 0)
            let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(left.sorted() == ["a.png", "device"])
            let target = try FileManager.default.destinationOfSymbolicLink(atPath: device)
            #expect(target == "/dev/null")
        }

        @Test("get verifies the certificate for the site, the node's address, or --server-name")
        func secure() throws {
            let stage = try SecureStage()
            stage.origin.on("/a", OriginResponse(image, fields: [lasting]))
            stage.origin.on("/large", OriginResponse(Self.large, fields: [lasting]))
            let base = "https://127.0.0.1:\(stage.node.securePort)"
            func get(_ words: String...) throws -> ProgramResult {
                try NodeProcess.run(["get", "--ca", stage.authority.file] + words)
            }
            let bytes = Data(image.bytes(0..<image.byteCount))
            let address = try get("--base", base, stage.origin.url("/a"))
            #expect(address.status == 0 && address.output == bytes, "\(address.errors)")
            let site = try get("--base", base, "--site-url", "https://\(SecureStage.site)/a")
            #expect(site.status == 0 && site.output == bytes, "\(site.errors)")
            let named = try get(
                "--base", base, "--server-name", SecureStage.images, stage.origin.url("/large"))
            #expect(
                named.status == 0
                    && named.output == Data(Self.large.bytes(0..<Self.large.byteCount)),
                "\(named.errors)")
            let head = try get("--base", base, "--head", "--json", stage.origin.url("/none"))
            #expect(head.status == 1 && head.document["status"] as? Int == 404, "\(head)")
        }

        private static let large = TestImage.generated(.png, byteCount: 3_000_000, seed: 8)

        @Test("An error of TLS says what is wrong and what to do")
        func insecure() throws {
            let stage = try SecureStage()
            let url = stage.origin.url("/a")
            func fault(_ words: String...) throws -> String {
                let result = try NodeProcess.run(["get", "--head", url] + words)
                #expect(result.status == 69 && result.output.isEmpty, "\(result)")
                return result.errors
            }
            let base = ["--base", "https://127.0.0.1:\(stage.node.securePort)"]
            let unknown = try fault(base[0], base[1])
            #expect(unknown.contains("the node's certificate has no trusted issuer"), "\(unknown)")
            #expect(unknown.contains("; --ca names a file"), "\(unknown)")
            let trusted = ["--ca", stage.authority.file]
            let other = try fault(
                base[0], base[1], trusted[0], trusted[1], "--server-name", "other.example")
            #expect(
                other.contains("is not for other.example; it is for a.example, b.example"),
                "\(other)")
            #expect(other.contains("; --server-name names the host"), "\(other)")
            let old = try NodeProcess(certificates: [
                try stage.authority.leaf("old", addresses: ["127.0.0.1"], years: 2020..<2021)
            ])
            let expired = try fault(
                base[0], "https://127.0.0.1:\(old.securePort)", trusted[0], trusted[1])
            #expect(
                expired.contains("the node's certificate expired on ")
                    && expired.contains("; renew it"), "\(expired)")
            let plain = try fault(base[0], "https://127.0.0.1:\(stage.node.port)")
            #expect(plain.contains("does not use TLS") && plain.contains("; http://"), "\(plain)")
            let none = try NodeProcess.run(["get", "--head", url] + base + ["--ca", "/nowhere"])
            #expect(none.status == 78 && none.errors.contains("the file does not exist"))
            let odd = try NodeProcess.run(
                ["get", "--head", url] + base + ["--server-name", "a b"])
            #expect(odd.status == 64 && odd.errors.contains("--server-name: \"a b\""))
        }

        @Test("A check prints the worst state in one line and exits with it")
        func check() throws {
            let stage = try stage()
            let ready = try stage.node.command("status", "--check")
            #expect(ready.status == 0 && ready.text == "ready: no fault is known\n", "\(ready)")
            let silent = try stage.node.command("status", "--check", "--node", "127.0.0.1:1")
            #expect(silent.status == 2, "\(silent)")
            #expect(silent.text == "critical: 127.0.0.1:1 Connection refused\n")
            let none = try stage.node.command("status", "--check", "--token-file", "/nowhere")
            #expect(none.status == 3 && none.output.isEmpty, "\(none)")
        }

        @Test("A site whose origin is dead comes first in status and top")
        func deadOrigin() throws {
            let dead = try ReservedPort()
            let node = try NodeProcess(["--site", "dead.example=http://127.0.0.1:\(dead.number)"])
            for _ in 0..<30 { _ = try? node.get("/a", host: "dead.example") }
            let place = "127.0.0.1:\(dead.number)"
            var status = try node.command("status")
            expectSoon(30, "\(status.text)") {
                status = (try? node.command("status")) ?? status
                return status.text.hasPrefix("critical: ")
            }
            #expect(status.line("critical: ").contains(place), "\(status.text)")
            #expect(status.line("status").contains("5xx "), "\(status.text)")
            #expect(status.line("errors").contains("failed fetches: "), "\(status.text)")
            #expect(status.text.contains("\ndead.example"), "\(status.text)")
            #expect(status.text.contains("  last error "), "\(status.text)")
            let check = try node.command("status", "--check")
            #expect(check.status == 2 && check.text.hasPrefix("critical: "), "\(check)")
            let top = try node.command("top", "--once", "--interval", "100ms")
            #expect(top.text.hasPrefix("critical: ") && top.text.contains(place), "\(top.text)")
            let json = try node.command("status", "--json").document
            let conditions = json["conditions"] as? [String: Any]
            #expect(conditions?["state"] as? String == "critical", "\(json)")
        }

        @Test("get fetches a resource of a site by the site's URL")
        func site() throws {
            let origin = try ScriptedOrigin()
            origin.on("/page", OriginResponse(image, fields: [lasting]))
            let node = try NodeProcess(["--site", "www.example.com=\(origin.url(""))"])
            let result = try NodeProcess.run([
                "get", "--site-url", "--base", "http://127.0.0.1:\(node.port)/",
                "http://www.example.com/page",
            ])
            #expect(
                result.status == 0 && result.output == Data(image.bytes(0..<image.byteCount)),
                "\(result.errors)")
        }

        @Test("top prints a single screen without a terminal, and lines for programs")
        func top() throws {
            let stage = try stage()
            _ = try stage.get("/a")
            let picture = try stage.node.command("top", "--interval", "100ms")
            #expect(picture.status == 0 && !picture.text.contains("\u{1B}"), "\(picture.errors)")
            #expect(picture.text.hasPrefix("ready: no fault is known\nnuthatch top  one node, not"))
            #expect(picture.text.contains("127.0.0.1:\(stage.node.adminPort)"))
            let lines = try stage.node.command("top", "--json", "--once", "--node", "127.0.0.1:1")
            let rows = lines.text.split(separator: "\n").map { line in
                try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            }
            #expect(rows.count == 2 && rows.contains { $0?["statistics"] != nil })
            #expect(rows.contains { $0?["fault"] as? String == "Connection refused" })
        }
    }
}
