import Ground
import NIOCore
import Synchronization

/// The number of orders to stop so far, and the observers of the next one.
///
/// The first order drains the node. Each further order ends the wait in progress.
final class StopRequests: Sendable {
    /// The state under the lock.
    private struct State {
        var count = 0
        var observers: [UInt64: Observer] = [:]
        var observersEver: UInt64 = 0
    }

    /// A callback for the next order to stop.
    private struct Observer {
        /// The number of orders after which the next one notifies this observer.
        let count: Int
        let notify: @Sendable () -> Void
    }

    private let state = Mutex(State())

    /// The number of orders to stop so far.
    var count: Int { state.withLock(\.count) }

    /// Records an order to stop and notifies the observers of it.
    func record() {
        let callbacks = state.withLock { state in
            state.count += 1
            let listeners = state.observers.filter { $0.value.count < state.count }
            for number in listeners.keys { state.observers[number] = nil }
            return listeners.values.map(\.notify)
        }
        for callback in callbacks { callback() }
    }

    /// Waits for `work`; returns false if that took longer than `limit` or the node was ordered to
    /// stop more than `count` times.
    ///
    /// After that `work` continues unobserved.
    ///
    /// - Parameters:
    ///   - limit: the maximum wait; `nil` for no limit.
    ///   - count: the number of orders to stop, in total, that the wait survives.
    ///   - loop: the loop that runs the timer.
    ///   - work: the operation to wait for.
    /// - Returns: true if `work` has ended in time.
    func wait(
        within limit: Interval?, stopRequestsMax count: Int, on loop: any EventLoop,
        _ work: @escaping @Sendable () async -> Void
    ) async -> Bool {
        let promise = loop.makePromise(of: Bool.self)
        let listener = listen(after: count) { promise.succeed(false) }
        defer { forget(listener) }
        let timer = limit.map { limit in
            loop.scheduleTask(in: .nanoseconds(limit.nanoseconds)) { promise.succeed(false) }
        }
        defer { timer?.cancel() }
        Task {
            await work()
            promise.succeed(true)
        }
        return (try? await promise.futureResult.get()) ?? false
    }

    /// Registers `tell` for the first order to stop after `count`; calls it at once if that has
    /// come.
    private func listen(after count: Int, _ tell: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, isLate) = state.withLock { state in
            state.observersEver += 1
            if state.count <= count {
                state.observers[state.observersEver] = Observer(count: count, notify: tell)
            }
            return (state.observersEver, state.count > count)
        }
        if isLate { tell() }
        return number
    }

    /// Removes an observer.
    private func forget(_ listener: UInt64) {
        state.withLock { $0.observers[listener] = nil }
    }
}
