import ArgumentParser

/// For how long a command stays with what it has begun.
struct WaitOptions: ParsableArguments {
    @Flag(help: "Do not wait until it is over.")
    var noWait = false

    @Option(
        help: ArgumentHelp(
            "How long that is waited for. Units: ms, s, m, h, d. Default: as long as it takes.",
            valueName: "duration"))
    var within: String?

    var isSpecified: Bool { noWait || within != nil }

    func validate() throws {
        if noWait, within != nil {
            throw ValidationError("--no-wait and --within exclude each other")
        }
    }
}
