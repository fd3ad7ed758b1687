import ArgumentParser
import Node
import NodeConfiguration

/// The program `nuthatch` with its subcommands.
@main
struct Nuthatch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nuthatch",
        abstract: "A cache node for images and sites.",
        discussion: """
            serve runs a node; the other commands query running nodes, sign URLs and check \
            settings. Output is tables for people, or JSON for programs (--json). The help of each \
            command has examples and explains its exit status. For shell completion, use the \
            output of `nuthatch --generate-completion-script bash` (zsh, fish).
            """,
        version: Configuration.versionText,
        subcommands: [
            Serve.self, Get.self, Purge.self, Status.self, Members.self, Top.self, Inspect.self,
            Prefetch.self, Drain.self, Sign.self, Health.self, CheckConfig.self,
            Explain.self, Version.self,
        ])

    static func main() async {
        prepareProcess()
        await main(nil)
    }
}

/// The command `nuthatch version`.
struct Version: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the version.",
        discussion: """
            The versions of this program and of the libraries it is linked with.

            Example:
              nuthatch version

            Exit status: 0.
            """)

    func run() {
        print(Nuthatch.configuration.version)
    }
}
