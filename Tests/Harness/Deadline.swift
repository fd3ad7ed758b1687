package import Foundation

/// An instant on the monotonic clock after which a test gives up waiting.
package struct Deadline: Sendable {
    private let end: ContinuousClock.Instant

    /// Returns a deadline the given number of seconds from now.
    package static func seconds(_ count: Double) -> Deadline {
        Deadline(end: .now.advanced(by: .milliseconds(Int(count * 1_000))))
    }

    /// True once the deadline has passed.
    package var hasPassed: Bool { ContinuousClock.now >= end }

    /// Milliseconds until the deadline, rounded up; 0 once it has passed.
    package var millisecondsLeft: Int32 {
        let left = end - ContinuousClock.now
        guard left > .zero else { return 0 }
        let (seconds, attoseconds) = left.components
        let milliseconds = seconds * 1_000 + attoseconds / 1_000_000_000_000_000 + 1
        return Int32(clamping: milliseconds)
    }

    /// The deadline as a wall-clock date, for interfaces that accept no other.
    package var date: Date { Date(timeIntervalSinceNow: Double(millisecondsLeft) / 1_000) }

    /// Waits until the deadline, for results that show only by the absence of events.
    ///
    /// `TidyTests` lists where this is used.
    package func waitUntilPassed() {
        _ = waitUntil { false }
    }

    /// Waits until the deadline or until `condition` fails, and returns whether it held.
    package func waitUntilPassed(holding condition: () throws -> Bool) rethrows -> Bool {
        try !waitUntil { try !condition() }
    }

    /// Polls until a condition holds or the time is up.
    ///
    /// For states without events: a process's memory, a log file's length.
    ///
    /// - Parameters:
    ///   - milliseconds: The longest pause between two polls. The pause grows up to it, so that an
    ///     early change is seen early and a long wait costs few polls.
    ///   - question: The condition.
    /// - Returns: True if the condition held.
    package func waitUntil(
        every milliseconds: Double = 40, _ question: () throws -> Bool
    ) rethrows -> Bool {
        let clock = DispatchSemaphore(value: 0)
        var pause = min(1, milliseconds)
        while true {
            if try question() { return true }
            let left = Double(millisecondsLeft)
            if left <= 0 { return false }
            _ = clock.wait(timeout: .now() + min(pause, left) / 1_000)
            pause = min(pause * 1.5, milliseconds)
        }
    }
}
