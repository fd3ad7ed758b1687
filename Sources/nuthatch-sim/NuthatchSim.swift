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

/// Returns a number that is not negative with a fixed number of decimals.
func fixed(_ value: Double, decimals: Int) -> String {
    let unit = (0..<decimals).reduce(1) { unit, _ in unit * 10 }
    let scaled = Int((value * Double(unit)).rounded())
    let digits = String(scaled % unit)
    return "\(scaled / unit)." + String(repeating: "0", count: decimals - digits.count) + digits
}

extension String {
    /// Returns the text with spaces after it, or before it with `isRight`, to fill a column.
    func padded(to width: Int, isRight: Bool = false) -> String {
        let spaces = String(repeating: " ", count: max(0, width - count))
        return isRight ? spaces + self : self + spaces
    }
}
