import ArgumentParser

/// Runs the pure rooms where nothing is real.
@main
struct NuthatchSim: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nuthatch-sim",
        abstract: "Runs the deciding parts of Nuthatch on traces and in simulated worlds.",
        subcommands: [
            VoterSetCommand.self, EvictionCommand.self, InvalidationCommand.self,
            MembershipCommand.self, RingCommand.self,
        ])
}
