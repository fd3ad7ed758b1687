import Harness
import Testing

@Suite("Command lines of nuthatch members")
struct MembersUsageTests {
    private static let id = String(repeating: "0a", count: 16)
    private static let nobody = ["--admin-listen", "127.0.0.1:1"]

    private func run(
        _ arguments: [String], environment: [String: String] = [:]
    ) throws -> (status: Int?, errors: String) {
        let outcome = try NodeProcess.run(
            ["members"] + arguments, environment: environment)
        #expect(outcome.output.isEmpty)
        return (outcome.status, outcome.errors)
    }

    @Test(
        "An invalid argument is a usage error",
        arguments: [
            ["forget"], ["forget", "0a"], ["forget", id + "0"], ["forget", id, "0a"],
            ["recover", id],
            ["forget", String(repeating: "0g", count: 16)], ["remove"],
            ["--jsn"],
        ])
    func usage(arguments: [String]) throws {
        #expect(try run(arguments).status == 64)
    }

    @Test(
        "If no node answers the status says so",
        arguments: [[], ["--json"], ["list"], ["forget", id], ["recover", "--yes"]] as [[String]])
    func nobody(arguments: [String]) throws {
        let given = try run(arguments + Self.nobody)
        #expect(given.status == 69)
        #expect(given.errors.hasPrefix("nuthatch: http://127.0.0.1:1/admin/v1/members"))
        #expect(given.errors.hasSuffix(": Connection refused\n"))
        let variable = ["NUTHATCH_ADMIN_LISTEN": "127.0.0.1:1", "NUTHATCH_LOOPS": "many"]
        #expect(try run(arguments, environment: variable).status == 69)
    }

    @Test(
        "Settings without a usable admin port are reported",
        arguments: [
            (["--admin-listen", "off"], "admin-listen is off"),
            (["--admin-listen", "127.0.0.1:0"], "port 0"),
            (["--client-ca", "ca.pem"], "client-ca"),
            (["--admin-listen", "here"], "setting admin-listen (from flag --admin-listen)"),
            (["--admin-token-file", "/nowhere/t"], "setting admin-token-file"),
            (["--config", "/nowhere/n.yaml"], "the file does not exist"),
        ])
    func settings(flags: [String], words: String) throws {
        for arguments in [[], ["forget", Self.id]] {
            let given = try run(arguments + flags)
            #expect(given.status == 78 && given.errors.contains(words), "\(given)")
            #expect(given.errors.count { $0 == "\n" } == 1)
        }
    }

    @Test("An invalid time limit is a usage error")
    func timeLimit() throws {
        let given = try run(["--timeout", "soon"])
        #expect(given.status == 64 && given.errors.contains("\"soon\" is not a duration"))
    }

    @Test("Help has examples and explains the exit status")
    func help() throws {
        let outcome = try NodeProcess.run(["members", "--help"])
        let text = String(decoding: outcome.output, as: UTF8.self)
        for words in ["nuthatch members forget 0123456789abcdef", "--json", "Exit status: 0", "69"]
        {
            #expect(text.contains(words), "\(words)")
        }
        let forget = try NodeProcess.run(["members", "forget", "--help"])
        #expect(String(decoding: forget.output, as: UTF8.self).contains("32 hexadecimal digits"))
    }
}
