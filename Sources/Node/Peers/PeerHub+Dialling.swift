import Cluster
import Ground
import NIOCore
import NIOPosix
import Origin

/// Looking up names and dialling, on the loop.
extension PeerHub {
    /// Looks up all seeds, and again after a while.
    func lookUpSeeds() {
        lookup?.cancel()
        guard !isStopped else { return }
        let interval = hasJoined ? Self.lookupInterval : Self.joiningLookupInterval
        lookup = loop.scheduleTask(in: .nanoseconds(interval.nanoseconds)) {
            [weak self] in self?.lookUpSeeds()
        }
        guard !seeds.isEmpty else { return }
        let found = seeds.map { seed in
            addresses(of: seed).map { addresses -> [PeerAddress]? in
                addresses.map { PeerAddress($0, port: seed.port) }
            }.flatMapErrorThrowing { [self] error in
                noAddress(of: seed, error)
                return nil
            }
        }
        EventLoopFuture.whenAllSucceed(found, on: loop).assumeIsolated().whenSuccess {
            [self, seeds] addresses in
            lastAddresses = lastAddresses.filter { seeds.contains($0.key) }
            for case (let seed, let found?) in zip(seeds, addresses) { lastAddresses[seed] = found }
            // Of a name that cannot be looked up what it stood for before still holds.
            let all = seeds.flatMap { lastAddresses[$0] ?? [] }
            joinWatch.lookedUp(all, isWhole: !addresses.contains(nil))
            if all.isEmpty { goOnJoining() } else { step(.seedsResolved(all)) }
        }
    }

    private func addresses(of address: PeerAddress) -> EventLoopFuture<[IPAddress]> {
        if let literal = IPAddress(address.host[...]) {
            return loop.makeSucceededFuture([literal])
        }
        return resolver.addresses(of: address.host, on: loop)
    }

    private func noAddress(of address: PeerAddress, _ error: any Error) {
        let why = "its name has no address: \(error)"
        joinWatch.failed(address, why: why)
        complain(of: "\(address)", why)
    }

    /// Connects to one of the addresses that `address` stands for.
    func dial(_ address: PeerAddress) {
        addresses(of: address).assumeIsolated().whenComplete { [self] result in
            switch result {
            case .success(let found): dial(address, at: found[...])
            case .failure(let error):
                noAddress(of: address, error)
                step(.dialFailed(address))
            }
        }
    }

    private func dial(_ address: PeerAddress, at rest: ArraySlice<IPAddress>) {
        guard let first = rest.first, !isStopped,
            let socket = try? SocketAddress(
                ipAddress: first.description, port: Int(address.port))
        else { return step(.dialFailed(address)) }
        guard let place = dialPlaces.take() else {
            complain(of: "\(address)", "there are as many connections as may be")
            return step(.dialFailed(address))
        }
        let id = nextConnection()
        ClientBootstrap(group: loops.next())
            .connectTimeout(.nanoseconds(PeerConnection.openingTime.nanoseconds))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { [self] channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = PeerConnection(
                        id, with: self, in: place, dialled: address, remote: "\(address)")
                    try channel.pipeline.syncOperations.addHandler(connection)
                }
            }
            .connect(to: socket)
            .hop(to: loop).assumeIsolated()
            .whenFailure { [self] error in
                guard rest.count == 1 else { return dial(address, at: rest.dropFirst()) }
                let why = ErrorWords.of(error)
                joinWatch.failed(address, why: why)
                complain(of: "\(address)", why)
                step(.dialFailed(address))
            }
    }
}
