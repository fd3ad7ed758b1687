import Ground
import NIOCore
import Synchronization

/// How often the node was told to stop, and who waits to hear of the next time.
///
/// The first request makes it drain. Every further one makes it give up what it waits for.
final class StopRequests: Sendable {
    private struct State {
        var count = 0
        var observers: [UInt64: Observer] = [:]
        var observersEver: UInt64 = 0
    }

    private struct Observer {
        /// It waits for the first request after so many.
        let count: Int
        let notify: @Sendable () -> Void
    }

    private let state = Mutex(State())

    var count: Int { state.withLock(\.count) }

    /// The node was told to stop once more.
    func record() {
        let told = state.withLock { state in
            state.count += 1
            let listeners = state.observers.filter { $0.value.count < state.count }
            for number in listeners.keys { state.observers[number] = nil }
            return listeners.values.map(\.notify)
        }
        for tell in told { tell() }
    }

    /// Waits for `work`; false if it took longer than `limit`, or the node was told to stop more
    /// than `count` times.
    ///
    /// What was not waited for goes on. The time is kept by `loop`; without a limit it waits as
    /// long as it takes.
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

    /// Calls `tell` at the first request after so many, which may be at once.
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

    private func forget(_ listener: UInt64) {
        state.withLock { $0.observers[listener] = nil }
    }
}
