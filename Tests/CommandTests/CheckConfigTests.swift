import Harness
import NodeConfiguration
import Telemetry
import Testing

@Suite("nuthatch check-config")
struct CheckConfigTests {
    private func check(
        _ flags: [String] = [], environment: [String: String] = [:], file: String? = nil
    ) throws -> (status: Int?, lines: [String], complaints: [String], path: String) {
        try withTemporaryFile(file) { path in
            let outcome = try NodeProcess.run(
                ["check-config"] + flags + (file == nil ? [] : ["--config", path]),
                environment: environment)
            let lines = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
            let complaints = outcome.errors.split(separator: "\n")
            return (outcome.status, lines.map(String.init), complaints.map(String.init), path)
        }
    }

    private let valid = "nuthatch: the settings are valid"

    @Test("Without settings it prints only that all is well")
    func nothing() throws {
        let result = try check()
        #expect(result.status == 0 && result.lines.isEmpty && result.complaints == [valid])
    }

    @Test("Settings are printed with their source, in the order of the table")
    func sources() throws {
        let result = try check(
            ["--listen", "0.0.0.0:80", "--listen", "[::1]:81", "--request-head-limit", "4KiB"],
            environment: ["NUTHATCH_LOOPS": "1", "NUTHATCH_PORT": "tcp://x"],
            file: "# A file.\nmemory-limit: 1GiB\nallow-origin:\n  - '*.a.example'\n  - b:81\n")
        #expect(result.status == 0)
        #expect(
            result.lines == [
                "# config: \(result.path)  # flag --config",
                "listen: [0.0.0.0:80, \"[::1]:81\"]  # flag --listen",
                "loops: 1  # environment NUTHATCH_LOOPS",
                "memory-limit: 1GiB  # \(result.path), line 2",
                "allow-origin: [\"*.a.example\", b:81]  # \(result.path), line 4",
                "request-head-limit: 4KiB  # flag --request-head-limit",
                "url-limit: 4KiB  # derived from the settings above",
            ])
        #expect(
            result.complaints == [
                "nuthatch: warning: environment \"NUTHATCH_PORT\" is not a setting", valid,
            ])
    }

    @Test(
        "The output is a file with the same meaning",
        arguments: [
            "/tmp/a", "/tmp/a #b", "/tmp/a: b", "a:", "'a'", "\"c\"\\ ü", "~", "a\nb\u{1B}", " a ",
            "[a]", "off", "1e3", "&a", "/a &b", "? a", "/a/?",
        ])
    func printedIsAFile(path: String) throws {
        let given = [
            "--cache-dir", path, "--listen", "[::1]:81", "--access-log", "off",
            "--allow-private-origin", "10.0.0.0/8", "--allow-private-origin", "fd00::/8",
            "--allow-type", "application/json", "--origin-proxy", "proxy.example:3128",
            "--idle-timeout", "1500ms", "--memory-limit", "20MiB", "--admin-listen", "off",
        ]
        let first = try check(given)
        #expect(first.status == 0 && first.lines.count == 10)
        let second = try check(file: first.lines.joined(separator: "\n"))
        #expect(second.status == 0)
        let bare = { (lines: [String]) in
            lines.filter { !$0.hasPrefix("#") }
                .map { line in line.split(separator: "  # ").dropLast().joined(separator: "  # ") }
        }
        #expect(bare(first.lines) == bare(second.lines))
        #expect(bare(first.lines).count == 10)
    }

    @Test("Keys without flags are explained, and the help of serve names the command")
    func explained() throws {
        let help = try NodeProcess.run(["serve", "--help"]).output
        #expect(String(decoding: help, as: UTF8.self).contains("nuthatch explain sites"))
        for (block, scope) in [("sites", SiteOption.Scope.site), ("images", .images)] {
            let outcome = try NodeProcess.run(["explain", block])
            let text = String(decoding: outcome.output, as: UTF8.self)
            for option in SiteOption.options(of: scope) {
                #expect(text.contains("\(option.name), in "), "\(option.name)")
                #expect(text.contains("\n    \(option.help)\n"), "\(option.name)")
            }
        }
        let both = try NodeProcess.run(["explain", "default-ttl"])
        let text = String(decoding: both.output, as: UTF8.self)
        #expect(
            text.hasPrefix(
                "--default-ttl <duration>\n    \(Setting.memory.defaultTTL.setting.help)"))
        #expect(text.contains("\n\ndefault-ttl, in sites, images, origins of images\n"))
    }

    @Test("Every error is on a line of its own, and the status is that of a refused setting")
    func faults() throws {
        let result = try check(
            ["--loops", "x"], file: "memory-limt: 1GiB\nallow-origin: a/b\nidle-timeout: 1\n")
        #expect(result.status == 78 && result.lines.isEmpty)
        let words = ["memory-limt", "--loops", "allow-origin", "idle-timeout"]
        #expect(result.complaints.count == words.count, "\(result.complaints)")
        for (line, word) in zip(result.complaints, words) { #expect(line.contains(word)) }
        let serve = try NodeProcess.run(["serve", "--loops", "x", "--disk-threads", "0"])
        #expect(serve.status == 78 && serve.errors.split(separator: "\n").count == 2)
    }
}
