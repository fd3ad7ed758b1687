import ArgumentParser
import Client

/// The command `nuthatch drain`.
struct Drain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Take a node off the ring and hand off its entries, or put it back.",
        discussion: """
            A drained node owns nothing and /readyz responds with 503, but the node still serves. \
            Shows how many entries are left to hand off, until none is left or no node responds \
            for the rest. Interrupting the command does not end the drain; --undo does.

            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch drain
              nuthatch drain --stop --within 10m --node 10.0.0.7:8081
              nuthatch drain --undo

            \(NodeConnectionHelp.exitStatusHelp("75 if not all was handed off, "))
            """)

    @Flag(help: "Stop the node when all entries are handed off.")
    var stop = false

    @Flag(help: "Put a drained node back on the ring.")
    var undo = false

    @OptionGroup
    var waitOptions: WaitOptions

    @OptionGroup
    var connection: NodeConnectionOptions

    func validate() throws {
        if undo, stop || waitOptions.isSpecified {
            throw ValidationError("--undo cannot be combined with other options")
        }
    }

    func run() throws {
        guard !undo else { return try connection.commands.undrain().exit() }
        var order = DrainArguments()
        (order.stopsNode, order.waitsUntilDone, order.timeout) = (
            stop, !waitOptions.noWait, waitOptions.within
        )
        try connection.commands.drain(order).exit()
    }
}
