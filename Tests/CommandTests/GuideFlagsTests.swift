import Foundation
import Harness
import Testing

/// The options of our programs by command line, as they report them.
private struct OptionTable {
    private struct Command: Decodable {
        struct Argument: Decodable {
            struct Name: Decodable {
                let kind: String
                let name: String
            }
            let names: [Name]?
        }
        let commandName: String
        let subcommands: [Command]?
        let defaultSubcommand: String?
        let arguments: [Argument]?
    }

    private struct Dump: Decodable {
        let command: Command
    }

    static let programs = ["nuthatch", "nuthatch-sim", "nuthatch-bench"]

    /// The long options by the words of the command.
    private(set) var options: [[String]: Set<String>] = [:]

    init() throws {
        for program in Self.programs {
            let dump = try Program.run(
                NodeProcess.built(program), ["--experimental-dump-help"])
            let command = try JSONDecoder().decode(Dump.self, from: dump.output).command
            add(command, after: [])
        }
    }

    init(_ options: [[String]: Set<String>]) {
        self.options = options
    }

    private mutating func add(_ command: Command, after words: [String]) {
        let words = words + [command.commandName]
        let names = (command.arguments ?? []).flatMap { $0.names ?? [] }
        // ArgumentParser has the last one for every program, in no table.
        options[words] =
            Set(names.filter { $0.kind == "long" }.map(\.name)).union(
                words.count == 1 ? ["generate-completion-script"] : [])
        for subcommand in command.subcommands ?? [] {
            add(subcommand, after: words)
            guard subcommand.commandName == command.defaultSubcommand else { continue }
            let own = options[words + [subcommand.commandName]] ?? []
            options[words]?.formUnion(own)
        }
    }

    /// Options that a text shows and no command has.
    ///
    /// Behind a program of ours and its command, they must be options of that command; alone, of
    /// any. Those behind another program are its own.
    func unknownOptions(in code: Substring) -> [String] {
        code.split { "|&;".contains($0) }.flatMap { part in
            let words = part.split { " \t\"'`[],()".contains($0) }.map(String.init)
            guard let known = known(to: words) else { return [String]() }
            return words[known.start...].compactMap { word in
                let name = word.dropFirst(2).prefix { $0 != "=" }
                // A capital letter begins a placeholder, anything else a line of a picture.
                guard word.hasPrefix("--"), name.first?.isLowercase == true else { return nil }
                return known.names.contains(String(name)) ? nil : String(name)
            }
        }
    }

    /// The options that words may have, and the first word of which that is to be said; `nil` if
    /// they are those of another program.
    private func known(to words: [String]) -> (names: Set<String>, start: Int)? {
        func names(_ command: [String], at place: Int) -> (names: Set<String>, start: Int) {
            var (command, place) = (command, place)
            while place < words.count, options[command + [words[place]]] != nil {
                command.append(words[place])
                place += 1
            }
            return (options[command] ?? [], place)
        }
        let program = words.lastIndex { word in
            word == "deploy/run"
                || Self.programs.contains { word == $0 || word.hasSuffix("/" + $0) }
        }
        if let program {
            let name = words[program].split(separator: "/").last.map(String.init) ?? ""
            return names(name == "run" ? ["nuthatch", "serve"] : [name], at: program + 1)
        }
        guard let first = words.first(where: { $0 != "-" }) else { return nil }
        if first.hasPrefix("--") || first == "…" {
            return (options.values.reduce(into: []) { $0.formUnion($1) }, 0)
        }
        return options[["nuthatch", first]].map { ($0, 1) }
    }
}

@Suite("Options in README, the guide and the files for deployment")
struct GuideFlagsTests {
    /// Options that the pages name by themselves, and whose they are.
    private static let others: Set = [
        "scale",  // docker compose up
        "force-recreate",  // docker compose up
        "read-only",  // docker run
        "ulimit",  // docker run
    ]

    private static let top = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The code of a page: its blocks, a line that ends with a backslash with the next one, and
    /// what stands between backticks.
    private func code(of page: String) -> [Substring] {
        var isBlock = false
        var found: [Substring] = []
        for line in page.replacing("\\\n", with: " ").split(separator: "\n") {
            if line.drop(while: { $0 == " " }).hasPrefix("```") {
                isBlock.toggle()
            } else if isBlock {
                found.append(
                    line.prefix(upTo: line.firstRange(of: " #")?.lowerBound ?? line.endIndex))
            } else {
                found += line.matches(of: /`([^`]+)`/).map(\.output.1)
            }
        }
        return found
    }

    @Test("Every option that a page names is in the table of its command")
    func pages() throws {
        let table = try OptionTable()
        let guide = Self.top.appending(path: "Sources/nuthatch/nuthatch.docc")
        let names = try FileManager.default.contentsOfDirectory(atPath: guide.path).sorted()
        let pages =
            [Self.top.appending(path: "README.md")]
            + names.filter { $0.hasSuffix(".md") }.map { guide.appending(path: $0) }
        #expect(pages.count > 20)
        var count = 0
        for page in pages {
            let code = code(of: try String(contentsOf: page, encoding: .utf8))
            count += code.count { $0.contains("--") }
            let unknown = code.flatMap(table.unknownOptions).filter { !Self.others.contains($0) }
            #expect(unknown == [], "\(page.lastPathComponent)")
        }
        #expect(count > 200)
        for file in ["deploy/compose.yaml", "deploy/systemd/nuthatch.service"] {
            let text = try String(contentsOf: Self.top.appending(path: file), encoding: .utf8)
            let lines = text.split(separator: "\n").map { $0.trimmingPrefix("ExecStart=") }
            #expect(lines.flatMap(table.unknownOptions) == [], "\(file)")
        }
    }

    @Test(
        "An option that its command lacks is found, one of another program is not",
        arguments: [
            ("nuthatch serve --join a --jion b", ["jion"]), ("deploy/run --wait", ["wait"]),
            ("bin/nuthatch purge --wait all --join=a", ["join"]), ("`--never`", ["never"]),
            ("purge --wait none --stop", ["stop"]), ("… --join a --never", ["never"]),
            ("curl --retry 3 http://a | nuthatch purge --retry", ["retry"]),
            ("docker run --rm nuthatch serve --rm", ["rm"]), ("curl --never", []),
            ("--NAME", []), ("--->", []),
            ("[\"serve\", \"--join\", \"--wait\"]", ["wait"]), ("--join a && --wait", []),
        ])
    func unknown(code: String, options: [String]) {
        let table = OptionTable([
            ["nuthatch"]: [], ["nuthatch", "serve"]: ["join"], ["nuthatch", "purge"]: ["wait"],
        ])
        #expect(table.unknownOptions(in: code[...]) == options)
    }
}
