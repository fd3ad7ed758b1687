package import NIOCore
import Synchronization

/// The slots of open connections on each plane; thread-safe.
package final class ConnectionSlots: Sendable {
    private let state: Mutex<(data: Slots, admin: Slots)>

    /// The connections of one plane.
    private struct Slots {
        var limits: ConnectionLimiter.Limits
        var limiter = ConnectionLimiter()
        /// The promise of ``waitUntilEmpty(on:)``; `nil` if there is no waiter.
        var emptied: EventLoopPromise<Void>?
    }

    /// Creates slots without connections; `limits` are those of the data plane.
    init(_ limits: ConnectionLimiter.Limits) {
        state = Mutex((Slots(limits: limits), Slots(limits: NodeSettings.adminConnectionLimits)))
    }

    /// Applies new limits to further connections on the data plane.
    func adopt(_ limits: ConnectionLimiter.Limits) {
        state.withLock { $0.data.limits = limits }
    }

    /// Decides whether to accept a connection; an admitted one counts until ``release(_:_:)``.
    func admit(
        _ key: ConnectionLimiter.ClientKey, _ plane: Plane
    ) -> ConnectionLimiter.AdmissionDecision {
        withSlots(of: plane) { $0.limiter.admit(key, $0.limits) }
    }

    /// Moves one connection from the count of `old` to that of `new`; returns false, with nothing
    /// changed, if the client of `new` has reached its own limit.
    func transfer(
        _ old: ConnectionLimiter.ClientKey, to new: ConnectionLimiter.ClientKey,
        _ plane: Plane
    ) -> Bool {
        withSlots(of: plane) { $0.limiter.transfer(old, to: new, $0.limits) }
    }

    /// Releases the slot of a closed connection; the last one on its plane ends
    /// ``waitUntilEmpty(on:)``.
    func release(_ key: ConnectionLimiter.ClientKey, _ plane: Plane) {
        let emptied = withSlots(of: plane) { slots in
            slots.limiter.remove(key)
            return slots.limiter.openCount == 0 ? slots.emptied.take() : nil
        }
        emptied?.succeed()
    }

    /// The number of open client connections.
    package var openCount: Int { state.withLock { $0.data.limiter.openCount } }

    /// Returns when no client connection is open, or after ``stopWaiting()``; for one caller at a
    /// time.
    package func waitUntilEmpty(on loop: any EventLoop) async {
        let promise = loop.makePromise(of: Void.self)
        let isEmpty = withSlots(of: .data) { slots in
            slots.emptied = promise
            return slots.limiter.openCount == 0
        }
        if isEmpty { stopWaiting() }
        try? await promise.futureResult.get()
    }

    /// Ends ``waitUntilEmpty(on:)``, whatever is still open.
    package func stopWaiting() {
        withSlots(of: .data) { $0.emptied.take() }?.succeed()
    }

    /// Runs `body` on the slots of a plane; internal requests have no connection.
    private func withSlots<T>(of plane: Plane, _ body: (inout Slots) -> T) -> T {
        state.withLock { plane == .admin ? body(&$0.admin) : body(&$0.data) }
    }
}
