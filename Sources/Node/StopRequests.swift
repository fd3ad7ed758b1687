import Ground
import NIOCore
import Synchronization

/// How often the node was told to stop, and who waits to hear of the next time.
///
/// The first request makes it drain. Every further one makes it give up what it waits for.
final class StopRequests: Sendable {
    private struct State {
        var count = 0
        var listeners: [UInt64: @Sendable () -> Void] = [:]
        var listenersEver: UInt64 = 0
    }

    private let state = Mutex(State())

    var count: Int { state.withLock(\.count) }

    /// The node was told to stop once more.
    func add() {
        let told = state.withLock { state in
            state.count += 1
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for tell in told { tell() }
    }

    /// Waits for `work`; false if it took longer than `limit`, or the node was told to stop
    /// meanwhile.
    ///
    /// What was not waited for goes on. The time is kept by `loop`; without a limit it waits as
    /// long as it takes.
    func outwait(
        within limit: Interval?, on loop: any EventLoop,
        _ work: @escaping @Sendable () async -> Void
    ) async -> Bool {
        let promise = loop.makePromise(of: Bool.self)
        let listener = listen { promise.succeed(false) }
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

    private func listen(_ listener: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.listenersEver += 1
            state.listeners[state.listenersEver] = listener
            return state.listenersEver
        }
    }

    private func forget(_ listener: UInt64) {
        state.withLock { $0.listeners[listener] = nil }
    }
}
