import Admin
import Cluster
import Ground
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Store
import Synchronization

/// A node as a service: opens its ports, takes over changed settings, waits to be told to stop,
/// drains, and ends.
final class NodeService: Service {
    let stops = StopRequests()
    let sources: ConfigurationSources
    let log: NodeLog
    let logger: Logger
    /// Nil if nobody wants to be told how the service is doing.
    let notifier: ServiceNotifier?
    private let current: Mutex<Configuration>
    private let reloadRequests:
        (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)
    /// Something under way was broken off.
    let isAborted = Atomic<Bool>(false)
    let drainOrders = Mutex(DrainControl())
    /// Its ports are open.
    private let isOpen = Atomic<Bool>(false)
    /// It found that it must not serve.
    private let isDuplicate = Atomic<Bool>(false)
    /// Has the process stop this service; set before it runs.
    let requestShutdown = Mutex<(@Sendable () -> Void)?>(nil)

    /// The pools of threads that a node lives on.
    struct ThreadPools {
        let loops: MultiThreadedEventLoopGroup
        /// One loop on which nothing happens but the keeping of time, whatever the others do.
        let timerGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        /// For looking up names.
        let lookups: NIOThreadPool
        let diskReaders: NIOThreadPool
    }

    init(
        _ configuration: Configuration, from sources: ConfigurationSources, log: NodeLog,
        logger: Logger, manager: ServiceNotifier?
    ) {
        self.sources = sources
        self.log = log
        self.logger = logger
        self.notifier = manager
        current = Mutex(configuration)
        // Of many signals in a row one is enough: the file is read after the last.
        reloadRequests = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The settings that hold now.
    var configuration: Configuration {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }

    /// How it has ended.
    var ending: RunResult {
        if isDuplicate.load(ordering: .relaxed) { return .failed }
        return isAborted.load(ordering: .relaxed) ? .aborted : .drained
    }

    /// Ends at once: another process is this node.
    func failAsDuplicate() {
        isDuplicate.store(true, ordering: .relaxed)
        requestShutdown.withLock { $0 }?()
    }

    /// Settings are to be read again, as soon as the node is ready.
    func requestReload() {
        guard stops.count == 0 else {
            return logger.notice("stopping; settings are not read again")
        }
        reloadRequests.continuation.yield()
    }

    func run() async throws {
        for warning in configuration.warnings { logger.warning("\(warning)") }
        let descriptors = DescriptorLimit.raise()
        let loops = configuration.loops ?? min(System.coreCount, EventLoopContext.countMax)
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
            on: threads.timerGroup.any(), isOn: configuration.respondsToMemoryPressure
        ) {
            [weak node] in node?.openConnections ?? 0
        }
        var opened = Endpoints()
        do {
            try await start(node, on: threads, into: &opened)
        } catch {
            await close(node, opened, threads, until: SystemClock.now())
            throw error
        }
        let hub = opened.cluster?.hub
        let reloading = Task { [reloadRequests] in
            for await _ in reloadRequests.stream where stops.count == 0 {
                await reload(node, hub, budget)
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
        // What it is about to tell the loops must find them.
        await finish(within: Self.gracePeriod, threads) { await reloading.value }
        await close(node, opened, threads, until: deadline)
    }

    /// What others reach the node by.
    struct Endpoints {
        var listeners: [Listener] = []
        /// Nil for a node that stays alone.
        var cluster: ClusterRuntime?
    }

    // MARK: The start

    /// Opens everything, unless it is told to stop before; what was opened before something fails
    /// is in `opened` all the same.
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
        await node.originals.start(node.purges)
        do {
            try await node.open(on: threads.loops)
            let timeKeeper = threads.timerGroup.any()
            node.configurationDocument = configuration.document
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

    /// Everything is open: it is ready, unless it was told to drain before it had anybody to hand
    /// over to.
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

    /// Hands over what the node keeps, however long that takes; then it stops, or goes on to run.
    private func drain(_ node: NodeCore, _ timeKeeper: any EventLoop, thenStop: Bool) {
        // What is begun and what is undone reach the node in the order of what was said.
        let begun = drainOrders.withLock { orders -> (DrainControl.Step, EventLoopFuture<Bool>?)? in
            guard let step = orders.drain(thenStop: thenStop) else { return nil }
            guard case .handOff = step else { return (step, nil) }
            node.readiness.set(.draining)
            return (step, node.hub?.drain())
        }
        guard let (step, isTaken) = begun else { return }
        Task { await perform(step, isTaken, node, timeKeeper) }
    }

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
            // Who looks on is to see that all is handed over, before nobody answers any more.
            let pause = timeKeeper.scheduleTask(in: Self.stopDelay) {}
            _ = await stops.wait(within: nil, stopRequestsMax: 0, on: timeKeeper) {
                try? await pause.futureResult.get()
            }
            // Told to stop meanwhile, it does so already; put back on the ring, it stays.
            guard stops.count == 0, drainOrders.withLock({ $0.isCurrent(number) }) else { return }
            requestShutdown.withLock { $0 }?()
        }
    }

    /// For how long a node that has handed over everything answers operators before it stops.
    private static let stopDelay = TimeAmount.seconds(1)

    /// Owns again, and wants requests; what was handed over stays where it is, too.
    private func undrain(_ node: NodeCore) {
        let isUndone = drainOrders.withLock { orders in
            guard stops.count == 0, orders.undrain() else { return false }
            node.hub?.cancelDrain()
            node.readiness.set(isOpen.load(ordering: .relaxed) ? .ready : .joining)
            return true
        }
        if isUndone { logger.notice("back on the ring") }
    }

    /// False if the node was told to stop before, or is not to serve.
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
        // Nobody proves anything to one that follows no count.
        if node.purges.hasVoters {
            // One that was counted before needs no more than its members' answers.
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

    /// For how long a node that starts waits until it is proven to know every purge, before it
    /// serves as one that may not.
    private static let fenceWait = Interval.seconds(5)

    /// Operators are answered before clients are.
    private func openAdminPort(
        of node: NodeCore, on group: MultiThreadedEventLoopGroup, into doorways: inout [Listener]
    ) async throws {
        guard let address = configuration.adminListen else { return }
        doorways.append(try await Listener.install(address, .admin, to: node, on: group))
    }

    private func openPorts(
        of node: NodeCore, on group: MultiThreadedEventLoopGroup, into doorways: inout [Listener]
    ) async throws {
        for address in configuration.listen {
            doorways.append(try await Listener.install(address, .data, to: node, on: group))
        }
        for address in configuration.tls.plainListen {
            doorways.append(
                try await Listener.install(address, .data, isPlain: true, to: node, on: group))
        }
        logger.info(
            "serving",
            metadata: [
                "loops": .stringConvertible(node.contexts.count),
                "listen": .array(
                    doorways.filter { $0.plane == .data }.map { .string($0.description) }),
                "admin": "\(doorways.first { $0.plane == .admin }?.description ?? "off")",
                "connections_max": .stringConvertible(
                    node.settings.connectionLimits.connectionsMax),
            ])
    }

    /// Says that the node lives, as long as every loop answers.
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
