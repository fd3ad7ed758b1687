import ArgumentParser
import Node
import NodeConfiguration

/// The program `nuthatch` with its subcommands.
@main
struct Nuthatch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nuthatch",
        abstract: "A cache node for images.",
        discussion: """
            serve runs a node; the others ask running nodes, sign URLs and check settings. People \
            get tables, programs JSON (--json). Each command's help has examples and says what its \
            exit status means. A shell completes what `nuthatch --generate-completion-script bash` \
            (zsh, fish) tells it.
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
            Of this program and of the libraries it is linked with.

            Example:
              nuthatch version

            Exit status: 0.
            """)

    func run() {
        print(Nuthatch.configuration.version)
    }
}
