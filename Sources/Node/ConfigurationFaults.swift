/// Everything that is wrong with the settings a node was given; at least one fault.
package struct ConfigurationErrors: Error, Hashable {
    package let first: ConfigurationError
    package let others: [ConfigurationError]

    init(_ first: ConfigurationError, _ others: [ConfigurationError] = []) {
        self.first = first
        self.others = others
    }

    /// Nil if there are none.
    init?(_ faults: [ConfigurationError]) {
        guard let first = faults.first else { return nil }
        self.init(first, Array(faults.dropFirst()))
    }

    /// One line each, in the order of the table; faults of the file as a whole come first.
    package var lines: [String] { ([first] + others).map(\.description) }
}
