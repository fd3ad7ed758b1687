import ArgumentParser

/// The program that runs the pure modules in simulated environments.
@main
struct NuthatchSim: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nuthatch-sim",
        abstract: "Runs the decision logic of Nuthatch on traces and in simulations.",
        subcommands: [
            VoterSetCommand.self, EvictionCommand.self, InvalidationCommand.self,
            MembershipCommand.self, RingCommand.self,
        ])
}

/// Returns the numbers in an option, separated by commas.
///
/// - Throws: a usage error for a number outside of `range`.
func numbers<Number: LosslessStringConvertible & Comparable>(
    _ text: String, of option: String, in range: ClosedRange<Number>
) throws -> [Number] {
    try text.split(separator: ",").map { part in
        guard let number = Number(String(part)), range ~= number else {
            throw ValidationError(
                "\(option) must hold numbers from \(range.lowerBound) to \(range.upperBound), "
                    + "not \(part)")
        }
        return number
    }
}
