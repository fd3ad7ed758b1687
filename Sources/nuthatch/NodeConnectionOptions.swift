import ArgumentParser
import Client
import NodeConfiguration

/// The options of every command that sends requests to a running node.
struct NodeConnectionOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Admin address of the node to query; the port defaults to 8081. Default: "
                + "NUTHATCH_NODE, or the node of this machine.", valueName: "host:port"))
    var node: [String] = []

    @Option(
        help: ArgumentHelp(
            "File with the token to authenticate with: a token alone, or lines as in "
                + "admin-token-file. Default: NUTHATCH_TOKEN_FILE, or the node's own.",
            valueName: "path"),
        completion: .file())
    var tokenFile: String?

    @Option(
        help: ArgumentHelp(
            "Time for each response. Units: ms, s, m, h, d. Default: 3s.", valueName: "duration"))
    var timeout: String?

    @Flag(help: "Print JSON, for programs.")
    var json = false

    // All flags of serve are accepted, so that one set of flags works for both.
    @OptionGroup(visibility: .hidden)
    var settings: SettingOptions

    /// The commands with these options.
    var commands: Commands {
        Commands(
            CommandOptions(
                ownNode: settings.sources.ownNode, nodes: node, tokenFile: tokenFile,
                timeout: timeout ?? "3s", isJSON: json))
    }
}

/// Texts that the help of the commands for running nodes shares.
enum NodeConnectionHelp {
    static let localNodeHelp = """
        The node of this machine or container is found from admin-listen and admin-token-file, \
        as in the flags, the environment and the settings file of serve.
        """

    /// Returns the exit statuses; `others` are those that the command has in addition.
    static func exitStatusHelp(_ others: String = "") -> String {
        "Exit status: 0 on success, 1 if the node refused or has no such object, 64 if the "
            + "command line is invalid, 69 if no node responded, \(others)78 if the settings do "
            + "not say which node to query."
    }

    static let timeoutStatus = "75 if it was not complete in time, "
}

extension CommandOutcome {
    /// Exits with the status of this outcome.
    ///
    /// - Throws: the exit code, unless the outcome is a success.
    func exit() throws {
        if self != .succeeded { throw ExitCode(exitStatus) }
    }
}

/// The options of a command for waiting until an operation is complete.
struct WaitOptions: ParsableArguments {
    @Flag(help: "Do not wait for completion.")
    var noWait = false

    @Option(
        help: ArgumentHelp(
            "Maximum wait for completion. Units: ms, s, m, h, d. Default: no limit.",
            valueName: "duration"))
    var within: String?

    /// True if one of the options is given.
    var isSpecified: Bool { noWait || within != nil }

    func validate() throws {
        if noWait, within != nil {
            throw ValidationError("--no-wait and --within exclude each other")
        }
    }
}
