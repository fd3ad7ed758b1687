import Cluster
import Ground
import NIOCore
import NIOPosix
import Origin

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
