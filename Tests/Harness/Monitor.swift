import Foundation

/// A value under a lock whose every change wakes those who wait for it to become something.
final class Monitor<Value>: @unchecked Sendable {
    private let condition = NSCondition()
    /// Touched only while `condition` is held.
    private var value: Value

    init(_ value: Value) {
        self.value = value
    }

    /// Reads or changes the value and wakes all who wait.
    func update<Result>(_ change: (inout Value) throws -> Result) rethrows -> Result {
        condition.lock()
        defer {
            condition.broadcast()
            condition.unlock()
        }
        return try change(&value)
    }

    /// Reads the value without waking anybody.
    func read<Result>(_ question: (Value) throws -> Result) rethrows -> Result {
        condition.lock()
        defer { condition.unlock() }
        return try question(value)
    }

    /// Waits until the value answers yes; false once the deadline passed without that.
    func wait(until deadline: Deadline, for question: (Value) -> Bool) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        while !question(value) {
            guard !deadline.hasPassed else { return false }
            _ = condition.wait(until: deadline.date)
        }
        return true
    }
}
