import Admin
import Cluster
import Ground
import Logging
import NIOCore
import NIOPosix
import Store
import Synchronization

/// The end of a node. Nothing in it waits for ever: not for a client, a disk, a resolver or a loop.
extension NodeService {
    /// How long the end of something is waited for when the time for draining is over.
    static let grace = Interval.seconds(1)

    /// Hands over what `node` keeps before it is stopped, if it is to do so.
    func handOver(_ node: NodeCore, _ hub: PeerHub, _ timeKeeper: any EventLoop) async {
        let limit = configuration.cluster.handOverTimeout
        guard limit > .zero else { return }
        manager?.stopping(
            status: "handing over", within: limit + configuration.drainTimeout + .seconds(10))
        let isTaken = drainOrders.withLock { _ in
            node.readiness.set(.draining)
            return hub.drain()
        }
        await handOver(hub, isTaken, timeKeeper, within: limit)
    }

    /// Waits until what the node keeps is handed over, which was begun; `isTaken` says in the end
    /// whether that was all.
    func handOver(
        _ hub: PeerHub, _ isTaken: EventLoopFuture<Bool>, _ timeKeeper: any EventLoop,
        within limit: Interval?
    ) async {
        logger.info("handing over what is kept")
        let isWhole = Atomic<Bool>(false)
        let isOver = await stops.outwait(
            within: limit, unlessToldMoreThan: stops.count, on: timeKeeper
        ) {
            let isAll = try? await isTaken.get()
            isWhole.store(isAll == true, ordering: .relaxed)
        }
        if isOver && isWhole.load(ordering: .relaxed) {
            logger.info("handed over what is kept")
        } else {
            logger.warning(
                "not all that is kept was handed over",
                metadata: ["offers_left": .stringConvertible(hub.handOver.pending)])
        }
    }

    /// Accepts nothing more, waits for the answers in progress as long as it is allowed to, and
    /// then says to its peers that it goes.
    func drain(
        _ node: NodeCore, _ opened: Opened, _ threads: Threads, until deadline: Instant
    ) async {
        node.isStopping.store(true, ordering: .relaxed)
        node.prefetcher.cancelAll(on: node)
        node.readiness.set(.draining)
        // Nobody would tell the other nodes of them later.
        node.purgeMergedHosts(dueAt: .distantFuture)
        var step = Departure.closing
        while step != .gone {
            switch step {
            case .closing: await closeDoors(of: node, opened, threads, until: deadline)
            case .breakingOff: await breakOff(node, threads)
            case .leaving where opened.cluster != nil:
                await leave(step, threads) {
                    node.desk.handle(.leaveRequested)
                    await node.desk.left()
                }
            case .parting:
                guard let hub = opened.cluster?.hub else { break }
                await leave(step, threads) { try? await hub.leave().get() }
            case .leaving, .gone: break
            }
            step = step.next(isQuiet: node.openConnections == 0)
        }
    }

    /// Tells the others, not for ever, for it may be that none can be reached.
    private func leave(
        _ step: Departure, _ threads: Threads, tell: @escaping @Sendable () async -> Void
    ) async {
        guard let limit = step.timeMax else { return }
        manager?.stopping(status: "leaving the cluster", within: limit + .seconds(10))
        await finish(within: limit, threads, tell)
    }

    private func closeDoors(
        of node: NodeCore, _ opened: Opened, _ threads: Threads, until deadline: Instant
    ) async {
        let open = node.openConnections
        logger.info("draining", metadata: ["connections": .stringConvertible(open)])
        manager?.stopping(
            status: "draining \(open) connections",
            within: deadline - SystemClock.now() + .seconds(10))
        _ = await stops.outwait(
            within: deadline - SystemClock.now(), unlessToldMoreThan: 1,
            on: threads.timeKeeper.any()
        ) {
            for doorway in opened.doorways where doorway.side == .data { await doorway.close() }
            for hall in node.halls { hall.loop.execute { hall.drain() } }
            await node.waitUntilEmpty(on: threads.timeKeeper.any())
        }
        node.waitNoLonger()
    }

    /// Ends the connections of clients that are left: none is to begin a request that nobody proves
    /// this node current for.
    private func breakOff(_ node: NodeCore, _ threads: Threads) async {
        isCut.store(true, ordering: .relaxed)
        logger.warning(
            "connections broken off",
            metadata: [
                "connections": .stringConvertible(node.openConnections),
                "why": stops.count > 1 ? "told to stop again" : "drain-timeout passed",
            ])
        await finish(within: Self.grace, threads) {
            for hall in node.halls { try? await hall.loop.submit { hall.breakOff() }.get() }
        }
    }

    /// Ends everything that `node` lives on, in the order in which one part needs another.
    func close(
        _ node: NodeCore, _ opened: Opened, _ threads: Threads, until deadline: Instant
    ) async {
        let hasStopped = await finish(within: timeLeft(until: deadline), threads) {
            for doorway in opened.doorways { await doorway.close() }
            if let cluster = opened.cluster {
                await cluster.listener.close()
                try? await cluster.hub.stop().get()
            }
            for hall in node.halls { try? await hall.loop.submit { hall.stop() }.get() }
            await node.pressure.stop()
        }
        if !hasStopped { cut("an event loop does not answer; what it does is broken off", [:]) }
        await closeLog(of: node, threads, until: deadline)
        let isWritten = await finish(within: timeLeft(until: deadline), threads) {
            await node.disk?.close()
            // What it has read is told to the loops, which must be there.
            try? await threads.diskReaders.shutdownGracefully()
        }
        if !isWritten {
            cut(
                "the disk does not answer; what waits to be written is lost",
                ["queued_bytes": .stringConvertible(node.disk?.queued ?? 0)])
        }
        // A look-up may take as long as it likes; nobody waits for its answer any more.
        await finish(within: Self.grace, threads) {
            try? await threads.lookups.shutdownGracefully()
        }
        node.close()
        logger.info("stopped")
        let timeKeeper = threads.timeKeeper.any()
        await node.accessLog.finish(on: timeKeeper)
        await log.finish(on: timeKeeper)
        // Threads that are stuck, and what they may still want to tell, end with the process.
        guard hasStopped, isWritten else { return }
        try? await threads.loops.shutdownGracefully()
        try? await threads.timeKeeper.shutdownGracefully()
    }

    /// Has on disk what was invalidated, before the answers that it covers are closed there.
    private func closeLog(of node: NodeCore, _ threads: Threads, until deadline: Instant) async {
        guard let desk = node.deskIfOpen else { return }
        let isKept = Atomic<Bool>(true)
        let isOver = await finish(within: timeLeft(until: deadline), threads) {
            if await !desk.stop() { isKept.store(false, ordering: .relaxed) }
        }
        guard !isOver || !isKept.load(ordering: .relaxed) else { return }
        cut(
            "what was invalidated last is not on disk",
            [
                "next_start": isOver
                    ? "asks about everything once" : "may serve what was invalidated"
            ])
    }

    /// Waits for `work` for so long, unless the node is told to stop once more; false if it has not
    /// ended.
    @discardableResult
    func finish(
        within limit: Interval, _ threads: Threads, _ work: @escaping @Sendable () async -> Void
    ) async -> Bool {
        await stops.outwait(
            within: limit, unlessToldMoreThan: stops.count, on: threads.timeKeeper.any(), work)
    }

    private func timeLeft(until deadline: Instant) -> Interval {
        max(Self.grace, stops.count < 2 ? deadline - SystemClock.now() : .zero)
    }

    private func cut(_ message: Logger.Message, _ metadata: Logger.Metadata) {
        isCut.store(true, ordering: .relaxed)
        logger.error(message, metadata: metadata)
    }
}
