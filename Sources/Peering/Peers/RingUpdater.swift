package import Cluster
import Ground
import NIOPosix
import Synchronization

/// Maintainer of the ring of owners, which it computes on a separate thread.
package final class RingUpdater: Sendable {
    private let state: Mutex<State>
    /// The largest weight that counts for any member.
    package let weightMax: UInt16

    /// The state under the lock.
    private struct State {
        /// The current ring.
        var ring: Ring
        /// The members of the next ring to compute; `nil` for none.
        var pendingMembers: [RingMember]?
        /// The members of the ring that is being computed; `nil` for none.
        var computingMembers: [RingMember]?
        /// The observer of the ring; `nil` for none.
        var listener: (@Sendable (Ring) -> Void)?
        /// The callbacks for when no computation is outstanding.
        var waiters: [@Sendable () -> Void] = []
    }

    /// Creates an updater with the ring of this node alone, which is empty unless the node is an
    /// owner.
    init(_ own: MemberRecord, weightMax: UInt16) {
        self.weightMax = weightMax
        let members = RingMember.owners(among: [own], weightMax: weightMax)
        state = Mutex(State(ring: Ring(members: members)))
    }

    /// The current ring; thread-safe.
    package var ring: Ring { state.withLock { $0.ring } }

    /// Sets the observer, which is called with each new ring, on any thread; it must not read
    /// ``ring``.
    func setListener(_ listener: @escaping @Sendable (Ring) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// Removes the observer and calls all waiting callbacks.
    func stop() {
        let waiting = state.withLock { state in
            state.listener = nil
            return state.waiters.takeAll()
        }
        for body in waiting { body() }
    }

    /// Calls `body`, on any thread, once the ring is that of the latest members; at once if it is.
    func whenSettled(_ body: @escaping @Sendable () -> Void) {
        let isSettled = state.withLock { state in
            let isSettled = state.pendingMembers == nil && state.computingMembers == nil
            if !isSettled { state.waiters.append(body) }
            return isSettled
        }
        if isSettled { body() }
    }

    /// Sets the members; the ring follows as soon as it is computed, unless its owners are the
    /// same.
    func update(_ records: [MemberRecord]) {
        let members = RingMember.owners(among: records, weightMax: weightMax)
        let begins = state.withLock { state in
            let known = state.pendingMembers ?? state.computingMembers ?? state.ring.members
            guard members != known else { return false }
            state.pendingMembers = members
            guard state.computingMembers == nil else { return false }
            state.computingMembers = members
            return true
        }
        guard begins else { return }
        NIOThreadPool.singleton.submit { [self] work in
            guard work == .active else { return }
            compute()
        }
    }

    /// Computes rings until none is outstanding.
    private func compute() {
        while true {
            let task = state.withLock { state -> (from: Ring, to: [RingMember])? in
                state.computingMembers = state.pendingMembers.take()
                guard let wanted = state.computingMembers else { return nil }
                return (state.ring, wanted)
            }
            guard let task else { return computationFinished() }
            let ring = task.from.changed(to: task.to)
            // Under the lock: after ``stop()`` no ring is reported, so that the observer's loops
            // may end.
            state.withLock { state in
                state.ring = ring
                state.listener?(ring)
            }
        }
    }

    /// Calls the waiting callbacks, unless a new computation has begun.
    private func computationFinished() {
        let waiting = state.withLock { state in
            // A computation that began meanwhile calls them later.
            guard state.computingMembers == nil else { return [] as [@Sendable () -> Void] }
            return state.waiters.takeAll()
        }
        for body in waiting { body() }
    }
}
