import Admin
import Cluster
import Front
import Ground
import Logging
import NIOCore
import NIOPosix
import NodeConfiguration
import Peering
import Platform
import ServiceLifecycle
import Store
import Synchronization

/// A node as a service: it opens its ports, applies reloaded settings, waits for the order to stop,
/// drains and ends.
final class NodeService: Service {
    /// The orders to stop so far.
    let stops = StopRequests()
    /// The settings in force and their reloads.
    let settings: LiveConfiguration
    let logger: Logger
    /// The notifier of the service manager; `nil` if the process has none.
    let notifier: ServiceNotifier?
    /// The sockets that the service manager has opened for the node.
    private let sockets: PassedSockets
    /// True once an operation had to be aborted during the stop.
    let hasAborted = Atomic<Bool>(false)
    /// The operators' orders to drain.
    let drainOrders = Mutex(DrainControl())
    /// True once the ports are open.
    private let isOpen = Atomic<Bool>(false)
    /// True if another process runs as this node, so that this one must not serve.
    private let isDuplicate = Atomic<Bool>(false)
    /// The function that stops this service; set before the service runs.
    let requestShutdown = Mutex<(@Sendable () -> Void)?>(nil)

    /// The thread pools of a node.
    struct ThreadPools {
        /// The event loops that serve clients and peers.
        let loops: MultiThreadedEventLoopGroup
        /// A group with one loop that only runs timers, so that they fire whatever the other loops
        /// do.
        let timerGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        /// The threads that resolve host names.
        let lookups: NIOThreadPool
        /// The threads that read the cache's files.
        let diskReaders: NIOThreadPool
    }

    /// Creates a service with the settings that it starts with.
    init(
        _ settings: LiveConfiguration, logger: Logger, notifier: ServiceNotifier?,
        sockets: PassedSockets
    ) {
        self.settings = settings
        self.logger = logger
        self.notifier = notifier
        self.sockets = sockets
    }

    /// The current settings.
    var configuration: Configuration { settings.value }

    /// The way in which the service has ended.
    var ending: RunResult {
        if isDuplicate.load(ordering: .relaxed) { return .failed }
        return hasAborted.load(ordering: .relaxed) ? .aborted : .drained
    }

    /// Stops the service at once, because another process runs as this node.
    func failAsDuplicate() {
        isDuplicate.store(true, ordering: .relaxed)
        requestShutdown.withLock { $0 }?()
    }

    /// Requests a reload of the settings, which takes place as soon as the node is ready; refused
    /// once the node is stopping.
    func requestReload() {
        guard stops.count == 0 else {
            return logger.notice("stopping; settings are not reloaded")
        }
        settings.requests.continuation.yield()
    }

    /// Runs the node until the service is shut down, then drains and closes it.
    ///
    /// - Throws: the error that prevented the start.
    func run() async throws {
        for warning in configuration.warnings { logger.warning("\(warning)") }
        let descriptors = DescriptorLimit.raise()
        let loops = configuration.loopCount
        let budget = DescriptorBudget(configuration, descriptors: descriptors, loops: loops)
        for warning in budget.warnings { logger.warning("\(warning)") }
        let threads = ThreadPools(
            loops: MultiThreadedEventLoopGroup(numberOfThreads: loops),
            lookups: NIOThreadPool(numberOfThreads: 4),
            diskReaders: NIOThreadPool(numberOfThreads: configuration.diskThreads))
        threads.lookups.start()
        threads.diskReaders.start()
        let node = NodeCore(
            configuration, budget, lookups: threads.lookups, diskReaders: threads.diskReaders,
            logger: logger)
        node.pressure.start(
            on: threads.timerGroup.any(), isOn: configuration.memoryPressure
        ) {
            [weak node] in node?.slots.openCount ?? 0
        }
        var opened = Endpoints()
        do {
            try await start(node, on: threads, into: &opened)
        } catch {
            await close(node, opened, threads, until: SystemClock.now())
            throw error
        }
        let hub = opened.cluster?.hub
        let reloading = Task {
            for await _ in settings.requests.stream where stops.count == 0 {
                await settings.reload(node, hub, budget)
            }
        }
        let beating = Task { await sendHeartbeats(node, on: threads.timerGroup.any()) }
        try? await gracefulShutdown()
        reloading.cancel()
        if let hub, !isDuplicate.load(ordering: .relaxed) {
            await handOff(node, hub, threads.timerGroup.any())
        }
        let deadline = SystemClock.now() + configuration.drainTimeout
        await drain(node, opened, threads, until: deadline)
        beating.cancel()
        // The loops that a reload sends settings to must still exist.
        await finish(within: Self.gracePeriod, threads) { await reloading.value }
        await close(node, opened, threads, until: deadline)
    }

    /// The ports that the node has opened.
    struct Endpoints {
        var listeners: [Listener] = []
        /// The port for peers and the membership; `nil` for a node that is in no cluster.
        var cluster: ClusterRuntime?
    }

    // MARK: The start

    /// Opens everything, or returns early if the node is stopped meanwhile.
    ///
    /// `opened` receives what was opened, also if a later step throws.
    private func start(
        _ node: NodeCore, on threads: ThreadPools, into opened: inout Endpoints
    ) async throws {
        let hasDisk = await stops.wait(
            within: nil, stopRequestsMax: 0, on: threads.timerGroup.any()
        ) {
            await node.disk?.start(now: SystemClock.now())
        }
        guard hasDisk, stops.count == 0 else { return }
        let id = startPurgeCoordinator(of: node, on: threads.timerGroup.any())
        await node.taggingRules.start(node.purges)
        do {
            try sockets.checkUse(by: configuration)
            try await node.open(on: threads.loops)
            let timeKeeper = threads.timerGroup.any()
            node.configurationDocument = configuration.document
            node.monitor.certificates = configuration.tlsMaterial.certificates
            node.observeOperatorCommands { [weak self, weak node] wish in
                guard let self, let node else { return }
                switch wish {
                case .drain(let stops): drain(node, timeKeeper, thenStop: stops)
                case .undrain: undrain(node)
                }
            }
            try await openAdminPort(of: node, on: threads.loops, into: &opened.listeners)
            opened.cluster = try await startCluster(of: node, as: id, on: threads)
            guard await joinCluster(node, opened.cluster?.hub, timeKeeper) else { return }
            try await openPorts(of: node, on: threads.loops, into: &opened.listeners)
        } catch {
            logger.critical("cannot start", metadata: ["why": "\(error)"])
            throw error
        }
        becomeReady(node, threads.timerGroup.any())
        let listen = opened.listeners.filter { $0.plane == .data }.map(\.description)
        notifier?.notifyReady(status: "serving on \(listen.joined(separator: ", "))")
    }

    /// Marks the node as ready, or starts the handoff if a drain was ordered before the node was
    /// open.
    private func becomeReady(_ node: NodeCore, _ timeKeeper: any EventLoop) {
        let begun = drainOrders.withLock { orders -> (UInt64, EventLoopFuture<Bool>?)? in
            isOpen.store(true, ordering: .relaxed)
            guard let number = orders.restartHandoff() else {
                node.readiness.set(.ready)
                return nil
            }
            return (number, node.hub?.drain())
        }
        guard let (number, isTaken) = begun else { return }
        Task { await perform(.handOff(number), isTaken, node, timeKeeper) }
    }

    /// Starts a drain, unless one is in progress; with `thenStop`, the node stops once the handoff
    /// is complete, and otherwise continues to run.
    private func drain(_ node: NodeCore, _ timeKeeper: any EventLoop, thenStop: Bool) {
        // Under the lock: the node sees drains and undrains in the order of the commands.
        let begun = drainOrders.withLock { orders -> (DrainControl.Step, EventLoopFuture<Bool>?)? in
            guard let step = orders.drain(thenStop: thenStop) else { return nil }
            guard case .handOff = step else { return (step, nil) }
            node.readiness.set(.draining)
            return (step, node.hub?.drain())
        }
        guard let (step, isTaken) = begun else { return }
        Task { await perform(step, isTaken, node, timeKeeper) }
    }

    /// Performs a step of a drain, and the steps that follow from it.
    ///
    /// - Parameters:
    ///   - step: the step.
    ///   - isTaken: the outcome of the handoff that has been started, true if every entry was
    ///     taken; `nil` without a cluster, or for another step.
    ///   - node: the node.
    ///   - timeKeeper: the loop that runs timers.
    private func perform(
        _ step: DrainControl.Step, _ isTaken: EventLoopFuture<Bool>?, _ node: NodeCore,
        _ timeKeeper: any EventLoop
    ) async {
        switch step {
        case .handOff(let number):
            if let isTaken, let hub = node.hub {
                await handOff(hub, isTaken, timeKeeper, within: nil)
            }
            let next = drainOrders.withLock { $0.handoffCompleted(number) }
            if let next { await perform(next, nil, node, timeKeeper) }
        case .stop(let number):
            // An observer must be able to see that everything is handed off before the admin port
            // closes.
            let pause = timeKeeper.scheduleTask(in: Self.stopDelay) {}
            _ = await stops.wait(within: nil, stopRequestsMax: 0, on: timeKeeper) {
                try? await pause.futureResult.get()
            }
            // If the node was stopped meanwhile, it is stopping already; after an undrain it stays.
            guard stops.count == 0, drainOrders.withLock({ $0.isCurrent(number) }) else { return }
            requestShutdown.withLock { $0 }?()
        }
    }

    /// Time for which a node that has handed off everything still responds to operators before it
    /// stops.
    private static let stopDelay = TimeAmount.seconds(1)

    /// Restores ownership and accepts requests; entries that were handed off also stay with their
    /// receivers.
    ///
    /// Without effect if the node is not draining, or was ordered to stop.
    private func undrain(_ node: NodeCore) {
        let isUndone = drainOrders.withLock { orders in
            guard stops.count == 0, orders.undrain() else { return false }
            node.hub?.cancelDrain()
            node.readiness.set(isOpen.load(ordering: .relaxed) ? .ready : .joining)
            return true
        }
        if isUndone { logger.notice("back on the ring") }
    }

    /// Joins the cluster, if there is one, and becomes an owner; returns false if the node was
    /// stopped meanwhile.
    private func joinCluster(
        _ node: NodeCore, _ hub: PeerHub?, _ timeKeeper: any EventLoop
    ) async -> Bool {
        guard let hub else { return true }
        drainOrders.withLock { _ in
            if node.readiness.value == .starting { node.readiness.set(.joining) }
        }
        let isOver = await stops.wait(within: nil, stopRequestsMax: 0, on: timeKeeper) {
            await hub.join()
        }
        guard isOver, stops.count == 0 else { return false }
        // Without a voter set, no member can prove to this node that it is current.
        if node.purges.hasVoters {
            // A node that was a voter before only needs replies from the other voters.
            _ = await stops.wait(within: Self.fenceWait, stopRequestsMax: 0, on: timeKeeper) {
                await node.purges.waitUntilCurrent()
            }
        }
        guard stops.count == 0 else { return false }
        _ = await stops.wait(within: nil, stopRequestsMax: 0, on: timeKeeper) {
            await hub.becomeOwner()
        }
        return stops.count == 0
    }

    /// Maximum time that a starting node waits for its fence to open before it serves fenced.
    private static let fenceWait = Interval.seconds(5)

    /// Opens the admin port, if it is configured; it responds before the ports for clients are
    /// open.
    private func openAdminPort(
        of node: NodeCore, on group: MultiThreadedEventLoopGroup, into listeners: inout [Listener]
    ) async throws {
        guard let address = configuration.adminListen else { return }
        listeners.append(try await sockets.install(address, .admin, to: node, on: group))
    }

    /// Opens the ports for clients.
    private func openPorts(
        of node: NodeCore, on group: MultiThreadedEventLoopGroup, into listeners: inout [Listener]
    ) async throws {
        for address in configuration.listen {
            listeners.append(try await sockets.install(address, .data, to: node, on: group))
        }
        for address in configuration.plainListen {
            listeners.append(
                try await sockets.install(address, .data, isPlain: true, to: node, on: group))
        }
        logger.info(
            "serving",
            metadata: [
                "loops": .stringConvertible(node.contexts.count),
                "listen": .array(
                    listeners.filter { $0.plane == .data }.map { .string($0.description) }),
                "admin": "\(listeners.first { $0.plane == .admin }?.description ?? "off")",
                "connections_max": .stringConvertible(
                    node.settings.connectionLimits.connectionsMax),
            ])
    }

    /// Sends watchdog notifications as long as every event loop responds; returns at once without a
    /// watchdog.
    private func sendHeartbeats(_ node: NodeCore, on timeKeeper: any EventLoop) async {
        guard let notifier, let interval = notifier.watchdogInterval else { return }
        while !Task.isCancelled {
            for context in node.contexts { try? await context.loop.submit {}.get() }
            notifier.notifyWatchdog()
            let next = timeKeeper.scheduleTask(in: .nanoseconds(interval.nanoseconds)) {}
            try? await next.futureResult.get()
        }
    }
}
