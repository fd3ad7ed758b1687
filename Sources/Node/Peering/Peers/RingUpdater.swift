import Cluster
import Ground
import NIOPosix
import Synchronization

/// Keeps the ring of the members that own something, computed on a thread of its own.
final class RingUpdater: Sendable {
    private let state: Mutex<State>
    /// What any member's weight counts for at most.
    let weightMax: UInt16

    private struct State {
        var ring: Ring
        /// For whom a ring is to be computed; nil if there is nothing to do.
        var pendingMembers: [RingMember]?
        /// For whom one is being computed; nil if none is.
        var computingMembers: [RingMember]?
        var listener: (@Sendable (Ring) -> Void)?
        /// To be called when nothing is to be computed any more.
        var waiters: [@Sendable () -> Void] = []
    }

    /// That of one node.
    init(_ own: MemberRecord, weightMax: UInt16) {
        self.weightMax = weightMax
        let members = RingMember.owners(among: [own], weightMax: weightMax)
        state = Mutex(State(ring: Ring(members: members)))
    }

    /// The ring that holds now.
    var ring: Ring { state.withLock { $0.ring } }

    /// Has `listener` be told of each ring that comes to hold, on any thread; it must not ask for
    /// the ring.
    func setListener(_ listener: @escaping @Sendable (Ring) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// Nothing is told any more; who waits for a ring waits no longer.
    func stop() {
        let waiting = state.withLock { state in
            state.listener = nil
            return state.waiters.takeAll()
        }
        for body in waiting { body() }
    }

    /// Calls `body`, on any thread, once the ring is that of the members last told of.
    func whenSettled(_ body: @escaping @Sendable () -> Void) {
        let isSettled = state.withLock { state in
            let isSettled = state.pendingMembers == nil && state.computingMembers == nil
            if !isSettled { state.waiters.append(body) }
            return isSettled
        }
        if isSettled { body() }
    }

    /// The members have become these; the ring follows as soon as it is computed.
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

    /// Until nothing is wanted any more.
    private func compute() {
        while true {
            let task = state.withLock { state -> (from: Ring, to: [RingMember])? in
                state.computingMembers = state.pendingMembers.take()
                guard let wanted = state.computingMembers else { return nil }
                return (state.ring, wanted)
            }
            guard let task else { return computationFinished() }
            let ring = task.from.changed(to: task.to)
            // Whoever has stopped it is sure that nothing more is told, and may end its loops.
            state.withLock { state in
                state.ring = ring
                state.listener?(ring)
            }
        }
    }

    private func computationFinished() {
        let waiting = state.withLock { state in
            // Somebody may have begun anew meanwhile, and will tell them.
            guard state.computingMembers == nil else { return [] as [@Sendable () -> Void] }
            return state.waiters.takeAll()
        }
        for body in waiting { body() }
    }
}
