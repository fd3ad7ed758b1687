import Foundation
import Synchronization

/// A value under a lock; every change wakes the threads that wait for a condition on it.
final class Monitor<Value>: @unchecked Sendable {
    private let condition = NSCondition()
    /// Accessed only while `condition` is held.
    private var value: Value

    init(_ value: Value) {
        self.value = value
    }

    /// Reads or changes the value and wakes all waiting threads.
    func update<Result>(_ change: (inout Value) throws -> Result) rethrows -> Result {
        condition.lock()
        defer {
            condition.broadcast()
            condition.unlock()
        }
        return try change(&value)
    }

    /// Reads the value without waking any thread.
    func read<Result>(_ question: (Value) throws -> Result) rethrows -> Result {
        condition.lock()
        defer { condition.unlock() }
        return try question(value)
    }

    /// Waits until `question` is true of the value, and returns false on timeout.
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

/// A value under a lock.
package final class LockedBox<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    package init(_ value: Value) {
        mutex = Mutex(value)
    }

    package var value: Value {
        get { mutex.withLock { $0 } }
        set { mutex.withLock { $0 = newValue } }
    }

    /// Changes the value atomically.
    package func change<Result>(_ change: (inout Value) -> Result) -> Result {
        mutex.withLock { value in change(&value) }
    }
}

/// A point in an origin's response at which it waits until the test opens the gate.
///
/// Once open, a gate stays open: later responses pass it without waiting.
package final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var arrivals = 0
        var waiters: [@Sendable () -> Void] = []
    }

    private let state = Monitor(State())

    /// Creates a closed gate.
    package init() {}

    /// Releases all waiting responses and lets all later ones pass.
    package func open() {
        let sleepers = state.update { state in
            state.isOpen = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for wake in sleepers { wake() }
    }

    /// Number of responses that have reached this gate.
    package var arrivals: Int { state.read(\.arrivals) }

    /// Waits until at least `count` responses have reached the gate, and returns false on timeout.
    package func waitForArrivals(_ count: Int = 1, seconds: Double = 30) -> Bool {
        state.wait(until: .seconds(seconds)) { $0.arrivals >= count }
    }

    /// Registers an arrival and runs `wake` once when the gate opens; false if it is already open.
    func wait(_ wake: @escaping @Sendable () -> Void) -> Bool {
        state.update { state in
            state.arrivals += 1
            guard !state.isOpen else { return false }
            state.waiters.append(wake)
            return true
        }
    }
}
