import ArgumentParser
import Foundation
import Node

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serve images until SIGTERM or SIGINT.",
        discussion: """
            A flag beats its environment variable, which beats the key of the same name in the \
            file that --config names, which beats the default.
            """)

    @OptionGroup(title: "Node")
    var node: NodeOptions

    @OptionGroup(title: "Memory")
    var memory: MemoryOptions

    @OptionGroup(title: "Disk")
    var disk: DiskOptions

    @OptionGroup(title: "Origins")
    var origins: OriginOptions

    @OptionGroup(title: "Clients")
    var clients: ClientOptions

    func run() async throws {
        let given = [
            node.flags, memory.flags, disk.flags, origins.flags, clients.flags,
        ]
        let flags = given.joined().reduce(into: [:]) { $0[$1.0] = $1.1 }
        let configuration = try load(flags)
        for warning in configuration.warnings { complain("warning: \(warning)") }
        try await Node.run(configuration)
    }

    /// The exit code of a refused setting is that of sysexits(3); a command line that cannot be
    /// read has ended with `EX_USAGE` before.
    private func load(_ flags: [String: [String]]) throws(ExitCode) -> Configuration {
        do {
            return try Configuration.load(flags: flags)
        } catch {
            complain("\(error)")
            throw ExitCode(EX_CONFIG)
        }
    }

    private func complain(_ line: String) {
        FileHandle.standardError.write(Data("nuthatch: \(line)\n".utf8))
    }
}
