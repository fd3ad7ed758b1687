import ArgumentParser
import Client

struct Drain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Take a node off the ring and hand over what it owns, or put it back.",
        discussion: """
            The node owns nothing from then on, /readyz answers 503, and it goes on answering. \
            Shows how much is left to be handed over, until nothing is, or nobody answers for what \
            is left. Ending the command does not end the drain; --undo does.

            \(CallHelp.whom)

            Examples:
              nuthatch drain
              nuthatch drain --stop --within 10m --node 10.0.0.7:8081
              nuthatch drain --undo

            \(CallHelp.status("75 if not all was handed over, "))
            """)

    @Flag(help: "Stop the node once everything is handed over.")
    var stop = false

    @Flag(help: "Put a drained node back on the ring.")
    var undo = false

    @OptionGroup
    var waiting: WaitOptions

    @OptionGroup
    var call: CallOptions

    func validate() throws {
        if undo, stop || waiting.isSaid {
            throw ValidationError("--undo stands alone")
        }
    }

    func run() throws {
        guard !undo else { return try call.commands.undrain().exit() }
        var order = DrainOrder()
        (order.stops, order.waits, order.limit) = (stop, !waiting.noWait, waiting.within)
        try call.commands.drain(order).exit()
    }
}
