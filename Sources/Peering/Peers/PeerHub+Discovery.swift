import Cluster
import Ground
import Logging
import NIOCore
import NIOPosix
import Origin
import Platform
import Synchronization

/// The search for the cluster at the start.
extension PeerHub {
    /// Returns when this node has found its cluster, when the join timeout has passed, or when it
    /// must not serve.
    package func join() async {
        try? await joinPromise.futureResult.get()
    }

    /// Makes this node an owner, and returns when the ring with it is computed.
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

    /// Notes that the node has a voter set; thread-safe.
    func voterSetAdopted() {
        loop.execute { [self] in advanceJoin() }
    }

    /// Passes changes of the formation rule to the coordinator, and completes the join when the
    /// cluster is found; on the loop.
    func advanceJoin() {
        guard let announcedRule, !isStopped, membership.phase == .serving, let purges = host.purges
        else { return }
        let isCounting = purges.hasVoters
        let others = membership.discoveryView
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

    /// Logs the missing members periodically, as long as the search lasts.
    private func logMissingSeeds(after wait: Interval) {
        loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in
            guard let self, !isStopped, let missingSeeds else { return }
            logger.warning(
                "looking for the cluster",
                metadata: [
                    "missing": .array(missingSeeds.map { .string($0) }),
                    "until_then": "every response is revalidated at its origin",
                    "if_this_node_is_the_cluster": "nuthatch members bootstrap",
                ])
            logMissingSeeds(after: .seconds(60))
        }
    }

    /// Ends this process as a member, because it is not the node that it started as.
    func refuseToServe(_ why: MembershipEffect.ServingRefusal) {
        let (message, advice): (Logger.Message, String) =
            switch why {
            case .duplicateIdentity:
                (
                    "another live process has this node's id; this process does not serve",
                    "give each node its own directory"
                )
            case .restoredCopy:
                (
                    "the data directory is older than the state this node has confirmed",
                    "restart it: it joins as a new member and revalidates each entry once"
                )
            }
        logger.critical(
            message, metadata: ["node": "\(membership.own.member.id)", "advice": "\(advice)"])
        if why == .restoredCopy { host.purges?.abandonIdentity() }
        onMustNotServe()
        joinPromise.succeed()
    }
}

/// Name look-ups and dials, on the loop.
extension PeerHub {
    /// Resolves all seeds, and schedules the next resolution.
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
            // For a name that cannot be resolved, its former addresses remain.
            let all = seeds.flatMap { resolvedSeeds[$0] ?? [] }
            joinWatch.seedsResolved(all, isComplete: !addresses.contains(nil))
            if all.isEmpty { advanceJoin() } else { handle(.seedsResolved(all)) }
        }
    }

    /// Returns the addresses of a literal or a name.
    private func addresses(of address: PeerAddress) -> EventLoopFuture<[IPAddress]> {
        if let literal = IPAddress(address.host[...]) {
            return loop.makeSucceededFuture([literal])
        }
        return resolver.addresses(of: address.host, on: loop)
    }

    /// Records and logs a failed look-up.
    private func resolutionFailed(of address: PeerAddress, _ error: any Error) {
        let why = "its name has no address: \(error)"
        joinWatch.addressFailed(address, reason: why)
        logConnectionFailure(of: "\(address)", why)
    }

    /// Connects to one of the addresses of `address`, one after the other.
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

    /// Connects to the first of `rest` that accepts.
    private func dial(_ address: PeerAddress, at rest: ArraySlice<IPAddress>) {
        guard let first = rest.first, !isStopped,
            let socket = try? SocketAddress(
                ipAddress: first.description, port: Int(address.port))
        else { return handle(.dialFailed(address)) }
        guard let place = dialLimiter.acquire() else {
            logConnectionFailure(of: "\(address)", "the maximum number of connections is open")
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
