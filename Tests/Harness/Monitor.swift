import Foundation
import Synchronization

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

    /// Changes the value in one step.
    package func change<Result>(_ change: (inout Value) -> Result) -> Result {
        mutex.withLock { value in change(&value) }
    }
}

/// A place in an origin's answer where the answer waits until the test lets it go on.
///
/// Once open, a gate stays open: later answers pass it without stopping.
package final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var arrivals = 0
        var waiters: [@Sendable () -> Void] = []
    }

    private let state = Monitor(State())

    /// A closed gate.
    package init() {}

    /// Lets everything that waits here go on, and all that comes later pass.
    package func open() {
        let sleepers = state.update { state in
            state.isOpen = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for wake in sleepers { wake() }
    }

    /// How many answers have come to this gate so far.
    package var arrivals: Int { state.read(\.arrivals) }

    /// Waits until at least `count` answers have come here; false if the time was up first.
    package func waitForArrivals(_ count: Int = 1, seconds: Double = 30) -> Bool {
        state.wait(until: .seconds(seconds)) { $0.arrivals >= count }
    }

    /// Registers an arrival and runs `wake` once when the gate opens; false if it is open already.
    func wait(_ wake: @escaping @Sendable () -> Void) -> Bool {
        state.update { state in
            state.arrivals += 1
            guard !state.isOpen else { return false }
            state.waiters.append(wake)
            return true
        }
    }
}
