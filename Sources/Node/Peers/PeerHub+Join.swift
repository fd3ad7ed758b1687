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
        try? await joinPromise.futureResult.get()
    }

    /// Owns a part of the ring from now on, and returns when it knows who owns what.
    ///
    /// To be called when the node is proven current, or has waited for that for long enough: until
    /// then it would, as an owner, ask the origin, for others, for what they have.
    func becomeOwner() async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.execute { [self] in
                guard !isStopped, membership.phase == .serving else { return done.resume() }
                handle(.roleChanged(membership.own.member.role.union(.isCaughtUp)))
                ringUpdater.whenSettled { done.resume() }
            }
        }
    }

    /// On the loop.
    func startJoining() {
        advanceJoin()
        let settings = joinWatch.settings
        for limit in [settings.membersTimeMax, settings.timeMax] {
            let wait = max(.zero, joinWatch.startedAt + limit - SystemClock.now())
            loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds)) {
                [weak self] in self?.advanceJoin()
            }
        }
        logMissingSeeds(after: settings.membersTimeMax)
    }

    /// The desk has begun to follow a count; from any thread.
    func voterSetAdopted() {
        loop.execute { [self] in advanceJoin() }
    }

    /// Says under what a cluster may be opened, and that it is found; on the loop.
    func advanceJoin() {
        guard let announcedRule, !isStopped, membership.phase == .serving, let purges = node?.purges
        else { return }
        let isCounting = purges.hasVoters
        let others = membership.discoveryView
        let rule = joinWatch.rule(others)
        if rule != announcedRule { purges.handle(.formationRuleChanged(rule)) }
        self.announcedRule = isCounting && hasJoined ? nil : rule
        let missing = isCounting ? nil : joinWatch.missingSeeds(others)
        missingSeedsState.withLock { $0 = missing }
        guard !hasJoined,
            joinWatch.isComplete(others, hasVoterSet: isCounting, now: SystemClock.now())
        else { return }
        hasJoined = true
        joinPromise.succeed()
    }

    /// Says what is missing, now and then, as long as something is.
    private func logMissingSeeds(after wait: Interval) {
        loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            guard let self, !isStopped, let missingSeeds else { return }
            logger.warning(
                "looking for the cluster",
                metadata: [
                    "missing": .array(missingSeeds.map { .string($0) }),
                    "until_then": "nothing is served without asking its origin",
                    "if_this_node_is_the_cluster": "nuthatch members bootstrap",
                ])
            logMissingSeeds(after: .seconds(60))
        }
    }

    /// This process is not the node that it took itself for.
    func refuseToServe(_ why: MembershipEffect.ServingRefusal) {
        let (message, advice): (Logger.Message, String) =
            switch why {
            case .duplicateIdentity:
                (
                    "another live process has this node's id; this one does not serve",
                    "give each node a directory of its own"
                )
            case .restoredCopy:
                (
                    "the directory is older than what this node has promised to keep",
                    "start it again: it is another member then, and asks about each entry once"
                )
            }
        logger.critical(
            message, metadata: ["node": "\(membership.own.member.id)", "advice": "\(advice)"])
        if why == .restoredCopy { node?.purges.abandonIdentity() }
        stopServing()
        joinPromise.succeed()
    }
}
