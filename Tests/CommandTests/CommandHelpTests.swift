import Foundation
import Harness
import Testing

@Suite("Help and shell completion of every command")
struct CommandHelpTests {
    /// The part of a command in `--experimental-dump-help` that is needed.
    private struct Command: Decodable {
        let commandName: String
        let subcommands: [Command]?

        /// The command lines of this command and its subcommands, itself first.
        func calls(after words: [String] = []) -> [[String]] {
            let own = words + [commandName]
            return [own] + (subcommands ?? []).flatMap { $0.calls(after: own) }
        }
    }

    private struct Dump: Decodable {
        let command: Command
    }

    /// The command lines of all commands but `help`, which ArgumentParser adds.
    private func calls() throws -> [[String]] {
        let outcome = try NodeProcess.run(["--experimental-dump-help"])
        let dump = try JSONDecoder().decode(Dump.self, from: outcome.output)
        return (dump.command.subcommands ?? []).flatMap { $0.calls() }.filter { $0 != ["help"] }
    }

    @Test("The commands are complete")
    func commands() throws {
        #expect(
            try calls().map { $0.joined(separator: " ") } == [
                "serve", "get", "purge", "status", "members", "members list", "members forget",
                "members bootstrap", "members recover", "top", "inspect", "prefetch", "drain",
                "sign", "health", "check-config", "explain", "version",
            ])
    }

    @Test("Each command has examples of its use and explains its exit status")
    func help() throws {
        for words in try calls() {
            let outcome = try NodeProcess.run(words + ["--help"])
            let text = String(decoding: outcome.output, as: UTF8.self)
            let call = (["nuthatch"] + words).joined(separator: " ")
            #expect(outcome.status == 0 && text.contains("\nUSAGE: \(call)"), "\(call)")
            #expect(text.contains("Example:\n") || text.contains("Examples:\n"), "\(call)")
            #expect(text.contains("\n  \(call)"), "\(call)")
            #expect(text.contains("Exit status: 0"), "\(call)")
        }
    }

    @Test("Commands that query nodes show few options of their own, and accept those of serve")
    func settings() throws {
        for words in try calls() {
            let asks = ![
                "serve", "sign", "health", "check-config", "explain", "version",
            ].contains(words[0])
            guard asks, words != ["members"] else { continue }
            let help = try NodeProcess.run(words + ["--help"])
            let text = String(decoding: help.output, as: UTF8.self)
            #expect(!text.contains("--admin-listen"), "\(words)")
            let member = String(repeating: "0", count: 32)
            let unknown = "Unknown option '--admin-listens'"
            for (flag, isKnown) in [("--admin-listen", true), ("--admin-listens", false)] {
                let given = try NodeProcess.run(words + [flag, member])
                #expect(given.errors.contains(unknown) != isKnown, "\(words): \(given)")
            }
        }
    }

    @Test(
        "A usage error has status 64",
        arguments: [
            ["purge"], ["purge", "--wait", "long", "--everything"], ["inspect"], ["get"],
            ["get", "--head", "-o", "a", "http://a/b"], ["get", "--json", "http://a/b"],
            ["get", "nonsense"], ["get", "--header", "no colon", "--head", "http://a/b"],
            ["drain", "--undo", "--stop"], ["drain", "--no-wait", "--within", "1s"], ["prefetch"],
            ["prefetch", "--sitemap", "http://a/s", "http://a/b"],
            ["prefetch", "--file", "/nowhere/list"], ["top", "--twice"], ["status", "extra"],
            ["status", "--node", "not a place"], ["status", "--node", "https://a:8081"],
            ["inspect", "u", "--node", "127.0.0.1:1", "--node", "127.0.0.1:2"], ["unknown"],
            ["explain", "memory-limt"], ["explain", "--yaml", "grace"],
        ])
    func usage(arguments: [String]) throws {
        let outcome = try NodeProcess.run(arguments)
        #expect(outcome.status == 64 && outcome.output.isEmpty, "\(outcome)")
    }

    @Test(
        "If no node answers the status is 69, whatever the source of the address",
        arguments: [
            ["status"], ["status", "--json"], ["inspect", "http://a/b"], ["purge", "http://a/b"],
            ["purge", "--everything", "--yes"], ["drain"], ["drain", "--undo"],
            ["prefetch", "http://a/b"], ["top"], ["top", "--once"], ["members"],
        ])
    func nobody(arguments: [String]) throws {
        let here = ["--node", "127.0.0.1:1"]
        for (words, environment) in [
            (arguments + here, [:]), (arguments, ["NUTHATCH_NODE": "127.0.0.1:1"]),
            (arguments + ["--admin-listen", "127.0.0.1:1"], ["NUTHATCH_NODE": "nowhere:7"]),
        ] {
            let outcome = try NodeProcess.run(words, environment: environment)
            #expect(outcome.status == 69, "\(words): \(outcome)")
            let hasNothing = outcome.output.isEmpty || arguments.contains("--json")
            #expect(hasNothing && outcome.errors.hasSuffix(": Connection refused\n"))
        }
        let head = ["get", "--head", "http://a/b", "--base", "http://127.0.0.1:1/"]
        #expect(try NodeProcess.run(head).status == 69)
    }

    @Test(
        "An unreadable token file has status 78",
        arguments: [["--token-file", "/nowhere/t"], ["--admin-token-file", "/nowhere/t"]])
    func tokens(flags: [String]) throws {
        for place in [[], ["--node", "127.0.0.1:1"]] {
            let outcome = try NodeProcess.run(["status"] + flags + place)
            #expect(outcome.status == 78 && outcome.errors.contains("/nowhere/t"), "\(outcome)")
        }
    }

    @Test("serve accepts the environment variables of commands")
    func variables() throws {
        let outcome = try NodeProcess.run(
            ["check-config"],
            environment: ["NUTHATCH_NODE": "a", "NUTHATCH_TOKEN_FILE": "b", "NUTHATCH_NODES": "c"])
        #expect(outcome.status == 0 && outcome.errors.contains("NUTHATCH_NODES"))
        #expect(!outcome.errors.contains("NUTHATCH_TOKEN_FILE"))
        #expect(!outcome.errors.contains("\"NUTHATCH_NODE\""))
    }

    @Test("Shells complete commands, options and choices", arguments: ["bash", "zsh", "fish"])
    func completions(shell: String) throws {
        let outcome = try NodeProcess.run(["--generate-completion-script", shell])
        let script = String(decoding: outcome.output, as: UTF8.self)
        #expect(outcome.status == 0 && script.count > 10_000)
        for words in ["check-config", "prefetch", "token-file", "logfmt", "issued"] {
            #expect(script.contains(words), "\(words)")
        }
        let isThere = ["/bin", "/usr/bin", "/usr/local/bin"].contains {
            FileManager.default.isExecutableFile(atPath: "\($0)/\(shell)")
        }
        guard isThere else { return #expect(shell != "bash") }
        let reading = try withTemporaryFile(script) { path in
            try Program.run("/usr/bin/env", [shell, "-n", path])
        }
        #expect(reading.status == 0, "\(reading.errors)")
    }
}
