import ArgumentParser
import Node

@main
struct Nuthatch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nuthatch",
        abstract: "A cache node for images.",
        version: Configuration.versionText,
        subcommands: [
            Serve.self, Get.self, Purge.self, Status.self, Members.self, Top.self, Inspect.self,
            Prefetch.self, Drain.self, Sign.self, Health.self, CheckConfig.self, Version.self,
        ])

    static func main() async {
        prepareProcess()
        await main(nil)
    }
}

struct Version: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Print the version.")

    func run() {
        print(Nuthatch.configuration.version)
    }
}
