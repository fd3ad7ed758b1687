import ArgumentParser

@main
struct NuthatchBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nuthatch-bench",
        abstract: "Measures parts of a node, and tries whether its disk tier outlives a kill.",
        discussion: "Whole servers are compared over sockets; this is for their parts.",
        subcommands: [
            HitCommand.self, MemoryCommand.self, DiskCommand.self, KillCommand.self,
            StormCommand.self,
        ])
}
