import Cluster
import Ground
import NIOCore

/// Finding the cluster at the start.
extension PeerHub {
    /// Returns when this node has found its cluster and knows who owns what, or has found that it
    /// is not to be in it.
    func join() async {
        try? await joined.futureResult.get()
    }

    /// On the loop.
    func beginJoining() {
        goOnJoining()
        guard let joinWatch else { return }
        let wait = joinWatch.endsAt - SystemClock.now()
        loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            self?.goOnJoining()
        }
    }

    /// Takes part in what is owned as soon as the cluster is found; on the loop.
    func goOnJoining() {
        guard !isStopped, membership.phase == .serving, let watch = joinWatch,
            watch.isOver(membership, now: SystemClock.now())
        else { return }
        joinWatch = nil
        node?.desk.handle(.foundNobody)
        step(.roleChanged(membership.own.member.role.union(.isCaughtUp)))
        rings.whenSettled { [joined] in joined.succeed() }
    }
}
