/// A law that did not hold, with the events that led there.
package struct Violation: Error, CustomStringConvertible {
    package let seed: UInt64
    package let invariant: String
    /// The last of them.
    package let history: [String]

    init(seed: UInt64, law: String, history: ArraySlice<String>) {
        self.seed = seed
        self.invariant = law
        self.history = Array(history)
    }

    package var description: String {
        "seed \(seed): \(invariant)\n" + history.joined(separator: "\n")
    }
}
