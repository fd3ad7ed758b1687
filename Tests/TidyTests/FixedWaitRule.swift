/// Waits of fixed length in tests: each costs its whole time in every run.
///
/// A wait for an event (`Deadline.reached`, `readResponse(seconds:)`) is none: it ends with the
/// event.
enum FixedWaitRule {
    /// The shortest wait that needs a reason, in milliseconds.
    static let millisecondsMax = 500.0

    /// A wait that stays, and why.
    struct Exception: Sendable {
        /// The file, from the top of the repository.
        let path: String
        /// How many such waits the file has.
        let count: Int
        let reason: String
    }

    static let exceptions: [Exception] = [
        Exception(
            path: "Tests/OutsideTests/Cluster/ClusterFetchTests.swift", count: 1,
            reason: "longer than a silent peer is waited for, which is a constant of 3 s"),
        Exception(
            path: "Tests/OutsideTests/Cluster/Faults/PartitionTests.swift", count: 2,
            reason: "bytes per second are counted over 10 s; a suspicion lasts up to 24 s"),
        Exception(
            path: "Tests/OutsideTests/Life/LastBytesTests.swift", count: 1,
            reason: "longer than unread input is drained at a close, which is a constant of 5 s"),
        Exception(
            path: "Tests/OutsideTests/Purges/BlackBox/BlackBox.swift", count: 1,
            reason: "faults last longer than the fence, whose least value is a second"),
    ]

    /// Calls that wait for as long as they say.
    private static let calls = [
        ".waitUntilPassed()", ".waitUntilPassed(holding", "delayingHead(.seconds(", "stalling(at:",
        ".dripping(",
        "isIdle(seconds:", "scheduleTask(in:", "Task.sleep(", "asyncAfter(",
    ]

    /// The fixed waits of a file that are too long, or whose length cannot be read.
    static func violations(in text: SwiftText) -> [Violation] {
        text.code.indices.filter { index in
            let line = text.code[index][...]
            // One question after the other is no wait of its own.
            if line.place(of: ".waitUntil(") != nil { return false }
            guard let call = calls.compactMap({ line.place(of: $0) }).first else {
                return false
            }
            // A gate is opened by the test: it costs no time of its own.
            if line[call.lowerBound...].contains(".gate(") { return false }
            guard let milliseconds = milliseconds(in: line) else { return true }
            return milliseconds >= millisecondsMax
        }.map { Violation(line: $0 + 1, message: "a fixed wait; wait for the event itself") }
    }

    /// The violations that `exceptions` does not account for; one for each exception that is stale.
    static func violations(
        _ found: [Violation], excepting exceptions: [Exception] = exceptions
    ) -> [Violation] {
        let counts = Dictionary(grouping: found, by: \.path).mapValues(\.count)
        let allowed = exceptions.filter { counts[$0.path] == $0.count }.map(\.path)
        let stale = exceptions.filter { counts[$0.path] == nil }.map {
            Violation(path: $0.path, message: "has no fixed wait any more: drop the exception")
        }
        return found.filter { !allowed.contains($0.path) } + stale
    }

    /// The longest time that a line of code names by number.
    private static func milliseconds(in line: Substring) -> Double? {
        let times: [Double] =
            line.matches(of: /[. (]seconds(?:\(|: )([0-9][0-9_.]*)/).compactMap {
                number($0.1).map { $0 * 1_000 }
            }
            + line.matches(of: /milliseconds(?:\(|: )([0-9][0-9_.]*)/).compactMap {
                number($0.1)
            }
        return times.max()
    }

    private static func number(_ digits: Substring) -> Double? {
        Double(digits.filter { $0 != "_" })
    }
}
