import Cluster
import Ground
import NIOCore
import NIOPosix
import Origin
import Platform

/// The dials of other nodes, and the repeated look-up of the configured ones.
///
/// Confined to the hub's loop.
final class PeerDialer: @unchecked Sendable {
    private let loop: any EventLoop
    /// The loops of the connections.
    private let loops: MultiThreadedEventLoopGroup
    private let resolver: any NameResolver
    /// The configured addresses of other nodes.
    private var seeds: [PeerAddress]
    /// The addresses from the last successful resolution of each seed.
    private var resolvedSeeds: [PeerAddress: [PeerAddress]] = [:]
    /// The timer of the next resolution of seeds.
    private var timer: Scheduled<Void>?
    /// The limit of connections that this node dials.
    private let limiter = PeerConnectionLimiter(count: Ring.membersMax)

    /// The interval at which the names of seeds are resolved.
    private static let resolveInterval = Interval.seconds(10)
    /// The interval at which names are resolved during the search for the cluster.
    private static let joiningResolveInterval = Interval.seconds(1)

    /// Creates a dialler; `loop` is the hub's loop, and `loops` are those of the connections.
    init(
        seeds: [PeerAddress], resolver: any NameResolver, on loop: any EventLoop,
        loops: MultiThreadedEventLoopGroup
    ) {
        self.seeds = seeds
        self.resolver = resolver
        self.loop = loop
        self.loops = loops
    }

    /// Replaces the configured addresses, and resolves them.
    func setSeeds(_ seeds: [PeerAddress], for hub: PeerHub) {
        self.seeds = seeds
        resolveSeeds(for: hub)
    }

    /// Ends the resolution of seeds.
    func stop() {
        timer?.cancel()
    }

    /// Resolves all seeds, reports their addresses to `hub`, and schedules the next resolution;
    /// does nothing once the hub is stopped.
    func resolveSeeds(for hub: PeerHub) {
        timer?.cancel()
        guard !hub.isStopped else { return }
        let interval = hub.hasJoined ? Self.resolveInterval : Self.joiningResolveInterval
        timer = loop.scheduleTask(in: .nanoseconds(interval.nanoseconds)) { [self, weak hub] in
            if let hub { resolveSeeds(for: hub) }
        }
        guard !seeds.isEmpty else { return }
        let found = seeds.map { seed in
            addresses(of: seed).map { addresses -> [PeerAddress]? in
                addresses.map { PeerAddress($0, port: seed.port) }
            }.flatMapErrorThrowing { error in
                hub.resolutionFailed(of: seed, error)
                return nil
            }
        }
        EventLoopFuture.whenAllSucceed(found, on: loop).assumeIsolated().whenSuccess {
            [self, seeds] addresses in
            resolvedSeeds = resolvedSeeds.filter { seeds.contains($0.key) }
            for case (let seed, let found?) in zip(seeds, addresses) { resolvedSeeds[seed] = found }
            // For a name that cannot be resolved, its former addresses remain.
            let all = seeds.flatMap { resolvedSeeds[$0] ?? [] }
            hub.seedsResolved(all, isComplete: !addresses.contains(nil))
        }
    }

    /// Returns the addresses of a literal or a name; the future fails if a name is not resolved.
    private func addresses(of address: PeerAddress) -> EventLoopFuture<[IPAddress]> {
        if let literal = IPAddress(address.host[...]) {
            return loop.makeSucceededFuture([literal])
        }
        return resolver.addresses(of: address.host, on: loop)
    }

    /// Tries the addresses of `address` one after the other until one accepts; else reports to
    /// `hub` that the dial has failed.
    func dial(_ address: PeerAddress, for hub: PeerHub) {
        addresses(of: address).assumeIsolated().whenComplete { [self] result in
            switch result {
            case .success(let found): dial(address, at: found[...], for: hub)
            case .failure(let error):
                hub.resolutionFailed(of: address, error)
                hub.handle(.dialFailed(address))
            }
        }
    }

    /// Connects to the first of `rest` that accepts; reports to `hub` that the dial has failed if
    /// none does, the limit of connections is reached, or the hub is stopped.
    private func dial(_ address: PeerAddress, at rest: ArraySlice<IPAddress>, for hub: PeerHub) {
        guard let first = rest.first, !hub.isStopped,
            let socket = try? SocketAddress(
                ipAddress: first.description, port: Int(address.port))
        else { return hub.handle(.dialFailed(address)) }
        guard let place = limiter.acquire() else {
            hub.log.connectionFailed("\(address)", "the maximum number of connections is open")
            return hub.handle(.dialFailed(address))
        }
        let id = hub.nextConnectionID()
        ClientBootstrap(group: loops.next())
            .connectTimeout(.nanoseconds(PeerConnection.handshakeTimeout.nanoseconds))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let connection = PeerConnection(
                        id, hub: hub, permit: place, dialled: address, remote: "\(address)")
                    try channel.pipeline.syncOperations.addHandler(connection)
                }
            }
            .connect(to: socket)
            .hop(to: loop).assumeIsolated()
            .whenFailure { [self] error in
                guard rest.count == 1 else {
                    return dial(address, at: rest.dropFirst(), for: hub)
                }
                hub.addressFailed(address, why: ErrorDescription.text(error))
                hub.handle(.dialFailed(address))
            }
    }
}
