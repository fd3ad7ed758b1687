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
    let manager: ServiceManager?
    private let current: Mutex<Configuration>
    private let hangups: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)
    /// Something under way was broken off.
    let isCut = Atomic<Bool>(false)
    let drainOrders = Mutex(DrainOrders())
    /// Its ports are open.
    private let isOpen = Atomic<Bool>(false)
    /// It found that it must not serve.
    private let isRefused = Atomic<Bool>(false)
    /// Has the process stop this service; set before it runs.
    let stopItself = Mutex<(@Sendable () -> Void)?>(nil)

    /// The pools of threads that a node lives on.
    struct Threads {
        let loops: MultiThreadedEventLoopGroup
        /// One loop on which nothing happens but the keeping of time, whatever the others do.
        let timeKeeper = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        /// For looking up names.
        let lookups: NIOThreadPool
        let diskReaders: NIOThreadPool
    }

    init(
        _ configuration: Configuration, from sources: ConfigurationSources, log: NodeLog,
        logger: Logger, manager: ServiceManager?
    ) {
        self.sources = sources
        self.log = log
        self.logger = logger
        self.manager = manager
        current = Mutex(configuration)
        // Of many signals in a row one is enough: the file is read after the last.
        hangups = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The settings that hold now.
    var configuration: Configuration {
        get { current.withLock { $0 } }
        set { current.withLock { $0 = newValue } }
    }

    /// How it has ended.
    var ending: Ending {
        if isRefused.load(ordering: .relaxed) { return .failed }
        return isCut.load(ordering: .relaxed) ? .brokenOff : .drained
    }

    /// Ends at once: another process is this node.
    func mustNotServe() {
        isRefused.store(true, ordering: .relaxed)
        stopItself.withLock { $0 }?()
    }

    /// Settings are to be read again, as soon as the node is ready.
    func hungUp() {
        guard stops.count == 0 else {
            return logger.notice("stopping; settings are not read again")
        }
        hangups.continuation.yield()
    }

    func run() async throws {
        for warning in configuration.warnings { logger.warning("\(warning)") }
        let descriptors = DescriptorLimit.raise()
        let loops = configuration.loops ?? min(System.coreCount, Hall.countMax)
        let budget = DescriptorBudget(configuration, descriptors: descriptors, loops: loops)
        for warning in budget.warnings { logger.warning("\(warning)") }
        let threads = Threads(
            loops: MultiThreadedEventLoopGroup(numberOfThreads: loops),
            lookups: NIOThreadPool(numberOfThreads: 4),
            diskReaders: NIOThreadPool(numberOfThreads: configuration.diskThreads))
        threads.lookups.start()
        threads.diskReaders.start()
        let node = NodeCore(
            configuration, budget, lookups: threads.lookups, diskReaders: threads.diskReaders,
            logger: logger)
        node.pressure.start(on: threads.timeKeeper.any(), isOn: configuration.yieldsToPressure) {
            [weak node] in node?.openConnections ?? 0
        }
        var opened = Opened()
        do {
            try await start(node, on: threads, into: &opened)
        } catch {
            await close(node, opened, threads, until: SystemClock.now())
            throw error
        }
        let hub = opened.cluster?.hub
        let reloading = Task { [hangups] in
            for await _ in hangups.stream where stops.count == 0 {
                await reload(node, hub, budget)
            }
        }
        let beating = Task { await beat(node, on: threads.timeKeeper.any()) }
        try? await gracefulShutdown()
        reloading.cancel()
        if let hub, !isRefused.load(ordering: .relaxed) {
            await handOver(node, hub, threads.timeKeeper.any())
        }
        let deadline = SystemClock.now() + configuration.drainTimeout
        await drain(node, opened, threads, until: deadline)
        beating.cancel()
        // What it is about to tell the loops must find them.
        await finish(within: Self.grace, threads) { await reloading.value }
        await close(node, opened, threads, until: deadline)
    }

    /// What others reach the node by.
    struct Opened {
        var doorways: [Doorway] = []
        /// Nil for a node that stays alone.
        var cluster: ClusterPart?
    }

    // MARK: The start

    /// Opens everything, unless it is told to stop before; what was opened before something fails
    /// is in `opened` all the same.
    private func start(
        _ node: NodeCore, on threads: Threads, into opened: inout Opened
    ) async throws {
        let hasDisk = await stops.outwait(
            within: nil, unlessToldMoreThan: 0, on: threads.timeKeeper.any()
        ) {
            await node.disk?.start(now: SystemClock.now())
        }
        guard hasDisk, stops.count == 0 else { return }
        let id = openDesk(of: node, on: threads.timeKeeper.any())
        await node.originals.start(node.desk)
        do {
            try await node.open(on: threads.loops)
            let timeKeeper = threads.timeKeeper.any()
            node.shownConfiguration = configuration.document
            node.tell { [weak self, weak node] wish in
                guard let self, let node else { return }
                switch wish {
                case .drain(let stops): drain(node, timeKeeper, thenStop: stops)
                case .undrain: undrain(node)
                }
            }
            try await openAdminPort(of: node, on: threads.loops, into: &opened.doorways)
            opened.cluster = try await openCluster(of: node, as: id, on: threads)
            guard await hasFoundCluster(node, opened.cluster?.hub, timeKeeper) else { return }
            try await openPorts(of: node, on: threads.loops, into: &opened.doorways)
        } catch {
            logger.critical("cannot start", metadata: ["why": "\(error)"])
            throw error
        }
        serve(node, threads.timeKeeper.any())
        let listen = opened.doorways.filter { $0.side == .data }.map(\.description)
        manager?.ready(status: "serving on \(listen.joined(separator: ", "))")
    }

    /// Everything is open: it is ready, unless it was told to drain before it had anybody to hand
    /// over to.
    private func serve(_ node: NodeCore, _ timeKeeper: any EventLoop) {
        let begun = drainOrders.withLock { orders -> (UInt64, EventLoopFuture<Bool>?)? in
            isOpen.store(true, ordering: .relaxed)
            guard let number = orders.beginAnew() else {
                node.readiness.set(.ready)
                return nil
            }
            return (number, node.hub?.drain())
        }
        guard let (number, isTaken) = begun else { return }
        Task { await carryOut(.handOver(number), isTaken, node, timeKeeper) }
    }

    /// Hands over what the node keeps, however long that takes; then it stops, or goes on to run.
    private func drain(_ node: NodeCore, _ timeKeeper: any EventLoop, thenStop: Bool) {
        // What is begun and what is undone reach the node in the order of what was said.
        let begun = drainOrders.withLock { orders -> (DrainOrders.Step, EventLoopFuture<Bool>?)? in
            guard let step = orders.drain(thenStop: thenStop) else { return nil }
            guard case .handOver = step else { return (step, nil) }
            node.readiness.set(.draining)
            return (step, node.hub?.drain())
        }
        guard let (step, isTaken) = begun else { return }
        Task { await carryOut(step, isTaken, node, timeKeeper) }
    }

    private func carryOut(
        _ step: DrainOrders.Step, _ isTaken: EventLoopFuture<Bool>?, _ node: NodeCore,
        _ timeKeeper: any EventLoop
    ) async {
        switch step {
        case .handOver(let number):
            if let isTaken, let hub = node.hub {
                await handOver(hub, isTaken, timeKeeper, within: nil)
            }
            let next = drainOrders.withLock { $0.handedOver(number) }
            if let next { await carryOut(next, nil, node, timeKeeper) }
        case .stop(let number):
            // Who looks on is to see that all is handed over, before nobody answers any more.
            let pause = timeKeeper.scheduleTask(in: Self.afterglow) {}
            _ = await stops.outwait(within: nil, unlessToldMoreThan: 0, on: timeKeeper) {
                try? await pause.futureResult.get()
            }
            // Told to stop meanwhile, it does so already; put back on the ring, it stays.
            guard stops.count == 0, drainOrders.withLock({ $0.holds(number) }) else { return }
            stopItself.withLock { $0 }?()
        }
    }

    /// For how long a node that has handed over everything answers operators before it stops.
    private static let afterglow = TimeAmount.seconds(1)

    /// Owns again, and wants requests; what was handed over stays where it is, too.
    private func undrain(_ node: NodeCore) {
        let isUndone = drainOrders.withLock { orders in
            guard stops.count == 0, orders.undrain() else { return false }
            node.hub?.undrain()
            node.readiness.set(isOpen.load(ordering: .relaxed) ? .ready : .joining)
            return true
        }
        if isUndone { logger.notice("back on the ring") }
    }

    /// False if the node was told to stop before, or is not to serve.
    private func hasFoundCluster(
        _ node: NodeCore, _ hub: PeerHub?, _ timeKeeper: any EventLoop
    ) async -> Bool {
        guard let hub else { return true }
        drainOrders.withLock { _ in
            if node.readiness.value == .starting { node.readiness.set(.joining) }
        }
        let isOver = await stops.outwait(within: nil, unlessToldMoreThan: 0, on: timeKeeper) {
            await hub.join()
        }
        guard isOver, stops.count == 0 else { return false }
        // Nobody proves anything to one that follows no count.
        if node.desk.isCounting {
            // One that was counted before needs no more than its members' answers.
            _ = await stops.outwait(within: Self.fenceWait, unlessToldMoreThan: 0, on: timeKeeper) {
                await node.desk.opened()
            }
        }
        guard stops.count == 0 else { return false }
        _ = await stops.outwait(within: nil, unlessToldMoreThan: 0, on: timeKeeper) {
            await hub.takePart()
        }
        return stops.count == 0
    }

    /// For how long a node that starts waits until it is proven to know every purge, before it
    /// serves as one that may not.
    private static let fenceWait = Interval.seconds(5)

    /// Operators are answered before clients are.
    private func openAdminPort(
        of node: NodeCore, on group: MultiThreadedEventLoopGroup, into doorways: inout [Doorway]
    ) async throws {
        guard let address = configuration.adminListen else { return }
        doorways.append(try await Doorway.open(address, .admin, to: node, on: group))
    }

    private func openPorts(
        of node: NodeCore, on group: MultiThreadedEventLoopGroup, into doorways: inout [Doorway]
    ) async throws {
        for address in configuration.listen {
            doorways.append(try await Doorway.open(address, .data, to: node, on: group))
        }
        for address in configuration.tls.plainListen {
            doorways.append(
                try await Doorway.open(address, .data, isPlain: true, to: node, on: group))
        }
        logger.info(
            "serving",
            metadata: [
                "loops": .stringConvertible(node.halls.count),
                "listen": .array(
                    doorways.filter { $0.side == .data }.map { .string($0.description) }),
                "admin": "\(doorways.first { $0.side == .admin }?.description ?? "off")",
                "connections_max": .stringConvertible(node.settings.places.places),
            ])
    }

    /// Says that the node lives, as long as every loop answers.
    private func beat(_ node: NodeCore, on timeKeeper: any EventLoop) async {
        guard let manager, let interval = manager.beatInterval else { return }
        while !Task.isCancelled {
            for hall in node.halls { try? await hall.loop.submit {}.get() }
            manager.beat()
            let next = timeKeeper.scheduleTask(in: .nanoseconds(interval.nanoseconds)) {}
            try? await next.futureResult.get()
        }
    }
}
