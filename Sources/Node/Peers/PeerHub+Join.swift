import Cluster
import Ground
import Logging
import NIOCore
import Synchronization

/// Finding the cluster at the start.
extension PeerHub {
    /// Returns when this node has found its cluster, or has looked for it long enough, or has found
    /// that it is not to be in it.
    func join() async {
        try? await joined.futureResult.get()
    }

    /// Owns a part of the ring from now on, and returns when it knows who owns what.
    ///
    /// To be called when the node is proven current, or has waited for that for long enough: until
    /// then it would, as an owner, ask the origin, for others, for what they have.
    func takePart() async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.execute { [self] in
                guard !isStopped, membership.phase == .serving else { return done.resume() }
                step(.roleChanged(membership.own.member.role.union(.isCaughtUp)))
                rings.whenSettled { done.resume() }
            }
        }
    }

    /// On the loop.
    func beginJoining() {
        goOnJoining()
        let settings = joinWatch.settings
        for limit in [settings.membersTimeMax, settings.timeMax] {
            let wait = max(.zero, joinWatch.startedAt + limit - SystemClock.now())
            loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds)) {
                [weak self] in self?.goOnJoining()
            }
        }
        reportSearch(after: settings.membersTimeMax)
    }

    /// The desk has begun to follow a count; from any thread.
    func followsCount() {
        loop.execute { [self] in goOnJoining() }
    }

    /// Says under what a cluster may be opened, and that it is found; on the loop.
    func goOnJoining() {
        guard let toldRule, !isStopped, membership.phase == .serving, let desk = node?.desk
        else { return }
        let isCounting = desk.isCounting
        let others = membership.joinView
        let rule = joinWatch.rule(others)
        if rule != toldRule { desk.handle(.mayForm(rule)) }
        self.toldRule = isCounting && hasJoined ? nil : rule
        let missing = isCounting ? nil : joinWatch.missing(others)
        searching.withLock { $0 = missing }
        guard !hasJoined,
            joinWatch.isOver(others, isCounting: isCounting, now: SystemClock.now())
        else { return }
        hasJoined = true
        joined.succeed()
    }

    /// Says what is missing, now and then, as long as something is.
    private func reportSearch(after wait: Interval) {
        loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            guard let self, !isStopped, let missing else { return }
            logger.warning(
                "looking for the cluster",
                metadata: [
                    "missing": .array(missing.map { .string($0) }),
                    "until_then": "nothing is served without asking its origin",
                    "if_this_node_is_the_cluster": "nuthatch members bootstrap",
                ])
            reportSearch(after: .seconds(60))
        }
    }

    /// This process is not the node that it took itself for.
    func refuseToServe(_ why: MembershipEffect.Refusal) {
        let (message, advice): (Logger.Message, String) =
            switch why {
            case .twin:
                (
                    "another live process has this node's id; this one does not serve",
                    "give each node a directory of its own"
                )
            case .copy:
                (
                    "the directory is older than what this node has promised to keep",
                    "start it again: it is another member then, and asks about each entry once"
                )
            }
        logger.critical(
            message, metadata: ["node": "\(membership.own.member.id)", "advice": "\(advice)"])
        if why == .copy { node?.desk.abandonMember() }
        refuse()
        joined.succeed()
    }
}
