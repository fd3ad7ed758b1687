import NIOCore
import Synchronization

/// What one waits for, and others tell him of, on any thread.
final class Announcement: Sendable {
    private let promise = Mutex<EventLoopPromise<Void>?>(nil)

    /// Waits on `loop` until it is made; `check` is called once by then, for what may have come
    /// about already.
    func next(on loop: any EventLoop, unless check: () -> Bool = { false }) async {
        let next = loop.makePromise(of: Void.self)
        promise.withLock { $0 = next }
        if check() { make() }
        try? await next.futureResult.get()
    }

    /// Whoever waits waits no longer.
    func make() {
        promise.withLock { $0.take() }?.succeed()
    }
}
