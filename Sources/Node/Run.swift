import Admin
import Cluster
import Logging
import NIOCore
import NIOPosix
import Store
import ServiceLifecycle
import UnixSignals

/// Runs a node until SIGTERM or SIGINT, then drains it.
///
/// - Throws: what kept a port from being opened.
package func run(_ configuration: Configuration) async throws {
    let log = NodeLog()
    var logger = Logger(label: "nuthatch", factory: { _ in log })
    logger.logLevel = configuration.logLevel
    let node = NodeService(configuration, log: log, logger: logger)
    let group = ServiceGroup(
        configuration: .init(
            services: [.init(service: node)],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger))
    try await group.run()
}

/// A node as a service: opens its ports, waits to be told to stop, drains, and ends.
struct NodeService: Service {
    private let configuration: Configuration
    private let log: NodeLog
    private let logger: Logger

    init(_ configuration: Configuration, log: NodeLog, logger: Logger) {
        self.configuration = configuration
        self.log = log
        self.logger = logger
    }

    func run() async throws {
        let descriptors = DescriptorLimit.raise()
        let loops = configuration.loops ?? min(System.coreCount, Hall.countMax)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: loops)
        let lookups = NIOThreadPool(numberOfThreads: 4)
        lookups.start()
        let diskReaders = NIOThreadPool(numberOfThreads: configuration.diskThreads)
        diskReaders.start()
        let node = NodeCore(
            configuration, loops: loops, descriptors: descriptors, lookups: lookups,
            diskReaders: diskReaders, logger: logger)
        node.pressure.start(on: group.next(), isOn: configuration.yieldsToPressure)
        await node.disk?.start(now: SystemClock.now())
        var doorways: [Doorway] = []
        do {
            try await node.open(on: group)
            try await openPorts(of: node, on: group, into: &doorways)
            node.readiness.set(.ready)
            try await gracefulShutdown()
        } catch is CancellationError {
        } catch {
            await close(node, doorways, group, lookups, diskReaders)
            throw error
        }
        await drain(node, doorways)
        await close(node, doorways, group, lookups, diskReaders)
    }

    /// Those opened before one fails are in `doorways` all the same.
    private func openPorts(
        of node: NodeCore, on group: MultiThreadedEventLoopGroup, into doorways: inout [Doorway]
    ) async throws {
        var random = SystemRandomNumberGenerator()
        let process = ProcessID(using: &random)
        for address in configuration.listen {
            doorways.append(try await Doorway.open(address, .data, to: node, on: group))
        }
        if let address = configuration.adminListen {
            doorways.append(try await Doorway.open(address, .admin, to: node, on: group))
        }
        logger.info(
            "serving",
            metadata: [
                "process": "\(process)", "loops": "\(node.halls.count)",
                "listen": "\(doorways.filter { $0.side == .data }.map(\.description))",
                "admin": "\(doorways.first { $0.side == .admin }?.description ?? "off")",
                "connections_max": "\(node.settings.connectionsMax)",
            ])
    }

    /// Accepts nothing more, and waits for the answers in progress as long as it is allowed to.
    private func drain(_ node: NodeCore, _ doorways: [Doorway]) async {
        node.readiness.set(.draining)
        logger.info("draining", metadata: ["connections": "\(node.openConnections)"])
        for doorway in doorways where doorway.side == .data { await doorway.close() }
        for hall in node.halls { hall.loop.execute { hall.drain() } }
        await node.waitUntilEmpty(within: configuration.drainTimeout)
        if node.openConnections > 0 {
            logger.warning(
                "drain-timeout passed; breaking off",
                metadata: ["connections": "\(node.openConnections)"])
        }
    }

    private func close(
        _ node: NodeCore, _ doorways: [Doorway], _ group: MultiThreadedEventLoopGroup,
        _ lookups: NIOThreadPool, _ diskReaders: NIOThreadPool
    ) async {
        for doorway in doorways { await doorway.close() }
        for hall in node.halls {
            try? await hall.loop.submit { hall.stop() }.get()
        }
        await node.pressure.stop()
        await node.disk?.close(now: SystemClock.now())
        // What it has read is told to the loops, which must be there.
        try? await diskReaders.shutdownGracefully()
        node.close()
        logger.info("stopped")
        await node.accessLog?.finish(on: group.next())
        await log.finish(on: group.next())
        try? await group.shutdownGracefully()
        try? await lookups.shutdownGracefully()
    }
}
