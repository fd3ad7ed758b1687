import ArgumentParser

@main
struct NuthatchBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nuthatch-bench",
        abstract: "Measures parts of a node in this process; prints figures, judges nothing.",
        discussion: "Whole servers are compared over sockets; this is for the parts of a hit.",
        subcommands: [HitCommand.self, MemoryCommand.self, DiskCommand.self])
}
