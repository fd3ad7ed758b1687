/// The latest events of a run, which explain a violation.
struct RunHistory: Sendable {
    /// The number of events that are kept at least, if there are that many.
    private static let keptMin = 200

    private let seed: UInt64
    private let shownCount: Int
    private var events: [String] = []

    /// Creates an empty history.
    ///
    /// - Parameters:
    ///   - seed: The seed of the run.
    ///   - shownCount: The number of events that a violation shows, at most 200.
    init(seed: UInt64, showing shownCount: Int) {
        self.seed = seed
        self.shownCount = shownCount
    }

    /// Appends an event.
    mutating func append(_ event: String) {
        if events.count >= 2 * Self.keptMin { events.removeFirst(Self.keptMin) }
        events.append(event)
    }

    /// Returns a violation of `law` with the latest events.
    func violation(_ law: String) -> Violation {
        Violation(seed: seed, invariant: law, history: Array(events.suffix(shownCount)))
    }

    /// Throws a ``Violation`` of `law` unless `holds`.
    func require(_ holds: Bool, _ law: @autoclosure () -> String) throws {
        guard !holds else { return }
        throw violation(law())
    }
}

/// A broken invariant, with the events that preceded it.
package struct Violation: Error, CustomStringConvertible {
    /// The seed of the run.
    package let seed: UInt64
    /// The invariant that was broken, with details.
    package let invariant: String
    /// The last events before the violation.
    package let history: [String]

    /// The seed, the invariant and the events, one per line.
    package var description: String {
        "seed \(seed): \(invariant)\n" + history.joined(separator: "\n")
    }
}
