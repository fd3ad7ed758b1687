import Synchronization

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
