import Foundation
import Harness
import NodeConfiguration
import Telemetry
import Testing

@Suite("Command-line options and the table of settings")
struct ConfigurationFlagsTests {
    /// The part of an option in `--experimental-dump-help` that is needed.
    private struct Option: Decodable {
        struct Name: Decodable {
            let kind: String
            let name: String
        }
        let kind: String
        let sectionTitle: String?
        let isOptional: Bool
        let isRepeating: Bool
        let names: [Name]?
        let valueName: String?
        let defaultValue: String?
        let abstract: String?
    }

    private struct Command: Decodable {
        let commandName: String
        let subcommands: [Command]?
        let arguments: [Option]?
    }

    private struct Dump: Decodable {
        let command: Command
    }

    private func options(of command: String = "serve") throws -> [Option] {
        let outcome = try NodeProcess.run(["--experimental-dump-help"])
        let dump = try JSONDecoder().decode(Dump.self, from: outcome.output)
        let found = dump.command.subcommands?.first { $0.commandName == command }
        let arguments = try #require(found?.arguments)
        return arguments.filter { $0.valueName != "help" && $0.valueName != "version" }
    }

    @Test("serve has one option for each setting, in the table's order, and no others")
    func optionsAreTheTable() throws {
        let options = try options()
        #expect(
            options.map { $0.names?.map(\.name) } == Setting.table.map { [$0.name] })
        for (option, setting) in zip(options, Setting.table) {
            #expect(option.kind == "option", "\(setting.name)")
            #expect(option.names?.first?.kind == "long", "\(setting.name)")
            let section = Setting.sections.first { $0.keys.contains { $0.setting == setting } }
            #expect(option.sectionTitle == section?.title, "\(setting.name)")
            #expect(option.isOptional && option.defaultValue == nil, "\(setting.name)")
            #expect(option.isRepeating == setting.isList, "\(setting.name)")
            #expect(option.valueName == setting.kind.placeholder, "\(setting.name)")
            #expect(option.abstract == setting.help, "\(setting.name)")
        }
    }

    @Test("Commands that use a node's settings have the same options, health also a timeout")
    func othersTakeTheSame() throws {
        let names = { (command: String) in
            try options(of: command).compactMap { $0.names?.first?.name }
        }
        #expect(try names("check-config") == names("serve"))
        #expect(try names("health").sorted() == (names("serve") + ["timeout"]).sorted())
    }

    @Test("Each flag sets its own setting", arguments: Setting.table)
    func flagsReachTheirSettings(setting: Setting) throws {
        let outcome = try NodeProcess.run(["serve", setting.flag, ""])
        let start =
            setting.name == "config"
            ? "nuthatch: setting config (from flag --config): \"\" is not a path"
            : "nuthatch: setting \(setting.name) (from flag \(setting.flag)): \"\" "
        #expect(outcome.errors.hasPrefix(start), "\(outcome.errors)")
        #expect(outcome.errors.count { $0 == "\n" } == 1)
        #expect(outcome.errors.contains("; allowed: "))
        #expect(outcome.output.isEmpty)
        #expect(outcome.status == 78)
    }

    @Test("The environment and the file set their settings")
    func otherSourcesReachTheirSettings() throws {
        try withTemporaryFile("loops: 1\nmemory-limit: 13x\n") { path in
            let fromFile = try NodeProcess.run(["serve", "--config", path])
            #expect(fromFile.errors.contains("(from \(path), line 2): \"13x\""))
            #expect(fromFile.status == 78)

            let fromBoth = try NodeProcess.run(
                ["serve"],
                environment: ["NUTHATCH_CONFIG": path, "NUTHATCH_MEMORY_LIMIT": "12x"])
            #expect(
                fromBoth.errors.contains("(from environment NUTHATCH_MEMORY_LIMIT): \"12x\""))
            #expect(fromBoth.status == 78)
        }
    }

    @Test(
        "An unreadable file stops the start with the reason",
        arguments: [
            ("/nowhere/n.yaml", "the file does not exist"), ("/", "it is not a regular file"),
        ])
    func unreadableFilesAreNamed(path: String, reason: String) throws {
        let outcome = try NodeProcess.run(["serve", "--config", path])
        #expect(
            outcome.errors
                == "nuthatch: setting config: \"\(path)\" cannot be read: \(reason)\n")
        #expect(outcome.status == 78)
    }

    @Test("A file that is not UTF-8 stops the start with the reason")
    func otherEncodingsAreNamed() throws {
        let file = FileManager.default.temporaryDirectory
            .appending(path: "nuthatch-\(UUID().uuidString).yaml")
        try Data([0x6C, 0xFF, 0x0A]).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let outcome = try NodeProcess.run(["serve", "--config", file.path])
        #expect(outcome.errors.hasSuffix("cannot be read: it is not UTF-8\n"))
    }

    @Test("An unknown flag is a usage error with the nearest name")
    func unknownFlagsAreUsage() throws {
        let outcome = try NodeProcess.run(["serve", "--memory-limt", "1GiB"])
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains("--memory-limit"))
    }

    @Test("The version is printed both ways", arguments: ["version", "--version"])
    func versionIsPrinted(argument: String) throws {
        let outcome = try NodeProcess.run([argument])
        #expect(outcome.status == 0)
        #expect(
            String(decoding: outcome.output, as: UTF8.self)
                == Configuration.versionText + "\n")
    }
}
