import ArgumentParser
import Client

/// The command `nuthatch drain`.
struct Drain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Take a node off the ring and hand over what it owns, or put it back.",
        discussion: """
            From then on the node owns nothing and /readyz answers 503, but it goes on serving. \
            Shows how much is still to be handed over, until nothing is left or no node responds \
            for the rest. Interrupting the command does not end the drain; --undo does.

            \(NodeConnectionHelp.localNodeHelp)

            Examples:
              nuthatch drain
              nuthatch drain --stop --within 10m --node 10.0.0.7:8081
              nuthatch drain --undo

            \(NodeConnectionHelp.exitStatusHelp("75 if not all was handed over, "))
            """)

    @Flag(help: "Stop the node once everything is handed over.")
    var stop = false

    @Flag(help: "Put a drained node back on the ring.")
    var undo = false

    @OptionGroup
    var waitOptions: WaitOptions

    @OptionGroup
    var connection: NodeConnectionOptions

    func validate() throws {
        if undo, stop || waitOptions.isSpecified {
            throw ValidationError("--undo stands alone")
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
