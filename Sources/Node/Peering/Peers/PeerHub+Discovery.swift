import Cluster
import Ground
import Logging
import NIOCore
import NIOPosix
import Origin
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

/// Looking up names and dialling, on the loop.
extension PeerHub {
    /// Looks up all seeds, and again after a while.
    func resolveSeeds() {
        resolveTask?.cancel()
        guard !isStopped else { return }
        let interval = hasJoined ? Self.resolveInterval : Self.joiningResolveInterval
        resolveTask = loop.scheduleTask(in: .nanoseconds(interval.nanoseconds)) {
            [weak self] in self?.resolveSeeds()
        }
        guard !seeds.isEmpty else { return }
        let found = seeds.map { seed in
            addresses(of: seed).map { addresses -> [PeerAddress]? in
                addresses.map { PeerAddress($0, port: seed.port) }
            }.flatMapErrorThrowing { [self] error in
                resolutionFailed(of: seed, error)
                return nil
            }
        }
        EventLoopFuture.whenAllSucceed(found, on: loop).assumeIsolated().whenSuccess {
            [self, seeds] addresses in
            resolvedSeeds = resolvedSeeds.filter { seeds.contains($0.key) }
            for case (let seed, let found?) in zip(seeds, addresses) { resolvedSeeds[seed] = found }
            // Of a name that cannot be looked up what it stood for before still holds.
            let all = seeds.flatMap { resolvedSeeds[$0] ?? [] }
            joinWatch.seedsResolved(all, isComplete: !addresses.contains(nil))
            if all.isEmpty { advanceJoin() } else { handle(.seedsResolved(all)) }
        }
    }

    private func addresses(of address: PeerAddress) -> EventLoopFuture<[IPAddress]> {
        if let literal = IPAddress(address.host[...]) {
            return loop.makeSucceededFuture([literal])
        }
        return resolver.addresses(of: address.host, on: loop)
    }

    private func resolutionFailed(of address: PeerAddress, _ error: any Error) {
        let why = "its name has no address: \(error)"
        joinWatch.addressFailed(address, reason: why)
        logConnectionFailure(of: "\(address)", why)
    }

    /// Connects to one of the addresses that `address` stands for.
    func dial(_ address: PeerAddress) {
        addresses(of: address).assumeIsolated().whenComplete { [self] result in
            switch result {
            case .success(let found): dial(address, at: found[...])
            case .failure(let error):
                resolutionFailed(of: address, error)
                handle(.dialFailed(address))
            }
        }
    }

    private func dial(_ address: PeerAddress, at rest: ArraySlice<IPAddress>) {
        guard let first = rest.first, !isStopped,
            let socket = try? SocketAddress(
                ipAddress: first.description, port: Int(address.port))
        else { return handle(.dialFailed(address)) }
        guard let place = dialLimiter.acquire() else {
            logConnectionFailure(of: "\(address)", "there are as many connections as may be")
            return handle(.dialFailed(address))
        }
        let id = nextConnectionID()
        ClientBootstrap(group: loops.next())
            .connectTimeout(.nanoseconds(PeerConnection.handshakeTimeout.nanoseconds))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { [self] channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = PeerConnection(
                        id, hub: self, permit: place, dialled: address, remote: "\(address)")
                    try channel.pipeline.syncOperations.addHandler(connection)
                }
            }
            .connect(to: socket)
            .hop(to: loop).assumeIsolated()
            .whenFailure { [self] error in
                guard rest.count == 1 else { return dial(address, at: rest.dropFirst()) }
                let why = ErrorDescription.text(error)
                joinWatch.addressFailed(address, reason: why)
                logConnectionFailure(of: "\(address)", why)
                handle(.dialFailed(address))
            }
    }
}
