import Cluster
import Ground
import NIOCore
import Platform
import Synchronization

/// The search for the cluster at the start.
extension PeerHub {
    /// Returns when this node has found its cluster, when the join timeout has passed, when the
    /// node must not serve, or when the hub is stopped.
    package func join() async {
        try? await joinPromise.futureResult.get()
    }

    /// Makes this node an owner, and returns when the ring with it is computed; returns at once,
    /// without a change, if the hub is stopped or the node leaves or must not serve.
    ///
    /// It must be called when the node is current or has waited for that long enough. As an owner
    /// it would otherwise ask the origin, on behalf of others, about entries that they have.
    package func becomeOwner() async {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.execute { [self] in
                guard !isStopped, membership.phase == .serving else { return done.resume() }
                handle(.roleChanged(membership.own.member.role.union(.isCaughtUp)))
                ringUpdater.whenSettled { done.resume() }
            }
        }
    }

    /// Starts the search; on the loop.
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

    /// Continues the search now that the node has a voter set; thread-safe.
    func voterSetAdopted() {
        loop.execute { [self] in advanceJoin() }
    }

    /// Passes changes of the formation rule to the coordinator, and completes the join when the
    /// cluster is found; on the loop.
    func advanceJoin() {
        guard let announcedRule, !isStopped, membership.phase == .serving, let purges = host.purges
        else { return }
        let isCounting = purges.hasVoters
        let others = DiscoveryView(membership)
        let rule = joinWatch.formationRule(others)
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

    /// Logs the missing seeds after `wait` and then every minute, as long as the search lasts.
    private func logMissingSeeds(after wait: Interval) {
        loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            guard let self, !isStopped, let missingSeeds else { return }
            log.clusterNotFound(missing: missingSeeds)
            logMissingSeeds(after: .seconds(60))
        }
    }

    /// Ends this process as a member, because it is not the node that it started as: logs the
    /// reason, ends the search, and has the process stop serving.
    ///
    /// A node on a restored copy of its directory becomes another member at its next start.
    func refuseToServe(_ why: MembershipEffect.ServingRefusal) {
        log.servingRefused(why, own: ownID)
        if why == .restoredCopy { host.purges?.abandonIdentity() }
        onMustNotServe()
        joinPromise.succeed()
    }

    /// Passes the addresses of the seeds to the search and the membership; `isComplete` is true if
    /// all names were resolved.
    func seedsResolved(_ addresses: [PeerAddress], isComplete: Bool) {
        joinWatch.seedsResolved(addresses, isComplete: isComplete)
        if addresses.isEmpty { advanceJoin() } else { handle(.seedsResolved(addresses)) }
    }

    /// Records and logs a failed look-up.
    func resolutionFailed(of address: PeerAddress, _ error: any Error) {
        addressFailed(address, why: "its name has no address: \(error)")
    }

    /// Records and logs why an address was not reached, or a name was not resolved.
    func addressFailed(_ address: PeerAddress, why: String) {
        joinWatch.addressFailed(address, reason: why)
        log.connectionFailed("\(address)", why)
    }
}
