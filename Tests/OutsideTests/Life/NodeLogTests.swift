import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The log is machine-readable")
    struct NodeLogTests {
        private func members(_ line: String) throws -> [String: Any] {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            return try #require(object as? [String: Any], "\(line)")
        }

        @Test("In JSON every line is an object with time, level and message, from first to last")
        func json() throws {
            let folder = try TemporaryFolder()
            let stage = try SettingsStage(
                "log-format: json\n", "--cache-dir", folder.path,
                environment: ["NUTHATCH_PORT\u{1B}\"": "1"])
            _ = try stage.node.get("/v1/image?url=http://10.0.0.1/a%22b")
            try stage.reload("log-format: json\nmemory-limit: \"1\\\"\\e[2J\"\n")
            try stage.reload("log-format: json\nloops: 2\nranges-limit: 2\n")
            #expect(stage.node.stop() == 0)
            let lines = stage.node.lines
            var messages: [String] = []
            for line in lines {
                let members = try members(line)
                let time = try #require(members["time"] as? String)
                #expect(
                    time.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil, "\(line)")
                #expect(
                    ["info", "notice", "warning", "error"].contains(members["level"] as? String))
                messages.append(try #require(members["message"] as? String))
            }
            for message in [
                "disk log opened", "serving", "origin fetch failed", "settings reloaded",
                "settings not reloaded; the previous ones remain in force", "draining", "stopped",
            ] {
                #expect(messages.contains(message), "\(message) in \(messages)")
            }
            let opened = try members(try #require(lines.first { $0.contains("disk log opened") }))
            #expect(opened["entries"] as? Int == 0 && opened["path"] is String)
            let refused = try members(try #require(lines.first { $0.contains("not reloaded") }))
            #expect((refused["why"] as? String)?.contains(#""1\"\u{1B}[2J""#) == true)
        }

        @Test("A failed start reports its reason in the same format")
        func failure() throws {
            let node = try NodeProcess()
            let result = try NodeProcess.run([
                "serve", "--log-format", "json", "--listen", "127.0.0.1:\(node.port)",
                "--admin-listen", "off",
            ])
            #expect(result.status == 1)
            let lines = result.errors.split(separator: "\n").map(String.init)
            let critical = try lines.map(members).filter { $0["level"] as? String == "critical" }
            #expect(critical.count == 1)
            #expect((critical.first?["why"] as? String)?.contains(":\(node.port)") == true)
        }
    }

    @Suite("The limit on descriptors")
    struct DescriptorTests {
        private func run(_ limits: String, _ arguments: [String]) throws -> Program {
            try Program(
                "/bin/sh",
                ["-c", "\(limits) && exec \"$0\" \"$@\"", try NodeProcess.binary()] + arguments)
        }

        @Test("A limit that leaves few connections is reported at the start and by check-config")
        func low() throws {
            let said = "the limit on open descriptors, 400, leaves room for 16 connections"
            let advice = "raise it to 2048 (ulimit -n, LimitNOFILE=, --ulimit nofile=)"
            let port = try ReservedPort.forProcess()
            let node = try run(
                "ulimit -n 400",
                ["serve", "--listen", "127.0.0.1:\(port)", "--admin-listen", "off"])
            expectSoon(20) { node.errors.contains("message=serving") }
            #expect(node.errors.contains("level=warning message=\"\(said)"), "\(node.errors)")
            #expect(node.errors.contains(advice), "\(node.errors)")
            let check = try run("ulimit -n 400", ["check-config"])
            #expect(check.wait(seconds: 20) == 0)
            #expect(check.errors.contains("warning: \(said)") && check.errors.contains(advice))
            let better = try run("ulimit -n 2048", ["check-config"])
            #expect(better.wait(seconds: 20) == 0 && !better.errors.contains("warning"))
        }

        @Test("A soft limit is raised, and unattainable connection limits are reported")
        func soft() throws {
            let raised = try run("ulimit -Sn 300", ["check-config"])
            #expect(raised.wait(seconds: 20) == 0 && !raised.errors.contains("warning"))
            let wanted = try run("ulimit -n 3000", ["check-config", "--connections-limit", "9000"])
            #expect(wanted.wait(seconds: 20) == 0)
            #expect(wanted.errors.contains("connections-limit is 9000, but the limit on open"))
        }
    }
}
