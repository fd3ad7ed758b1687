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
import Store
import Synchronization

/// The shutdown of a node. Every step is limited in time, whatever clients, disk, resolver or loops
/// do.
extension NodeService {
    /// Time that each part of the shutdown has when the time for draining is over.
    static let gracePeriod = Interval.seconds(1)

    /// Hands off the entries of `node` before it stops, and waits for at most the configured time;
    /// does nothing if that is zero.
    func handOff(_ node: NodeCore, _ hub: PeerHub, _ timeKeeper: any EventLoop) async {
        let limit = configuration.handOverTimeout
        guard limit > .zero else { return }
        notifier?.notifyStopping(
            status: "handing off", within: limit + configuration.drainTimeout + .seconds(10))
        let isTaken = drainOrders.withLock { _ in
            node.readiness.set(.draining)
            return hub.drain()
        }
        await handOff(hub, isTaken, timeKeeper, within: limit)
    }

    /// Waits for the end of a handoff that has been started.
    ///
    /// - Parameters:
    ///   - hub: the membership that hands off.
    ///   - isTaken: the outcome of the handoff, true if every entry was taken.
    ///   - timeKeeper: the loop that runs timers.
    ///   - limit: the maximum wait; `nil` for no limit.
    func handOff(
        _ hub: PeerHub, _ isTaken: EventLoopFuture<Bool>, _ timeKeeper: any EventLoop,
        within limit: Interval?
    ) async {
        logger.info("handoff started")
        let isWhole = Atomic<Bool>(false)
        let isOver = await stops.wait(
            within: limit, stopRequestsMax: stops.count, on: timeKeeper
        ) {
            let isAll = try? await isTaken.get()
            isWhole.store(isAll == true, ordering: .relaxed)
        }
        if isOver && isWhole.load(ordering: .relaxed) {
            logger.info("handoff complete")
        } else {
            logger.warning(
                "handoff incomplete",
                metadata: ["offers_left": .stringConvertible(hub.handoffSender.pendingOffers)])
        }
    }

    /// Stops accepting connections and prefetches, waits until `deadline` for the responses in
    /// progress, aborts the rest, and then leaves the cluster.
    func drain(
        _ node: NodeCore, _ opened: Endpoints, _ threads: ThreadPools, until deadline: Instant
    ) async {
        node.isStopping.store(true, ordering: .relaxed)
        node.prefetcher.cancelAll(on: node)
        node.readiness.set(.draining)
        // The other nodes would never learn of these hosts.
        node.purgesIfOpen?.purgeMergedHosts(dueAt: .distantFuture)
        var step = ShutdownStep.finishingRequests
        while step != .stopped {
            switch step {
            case .finishingRequests:
                await closeListeners(of: node, opened, threads, until: deadline)
            case .abortingResponses: await abortConnections(node, threads)
            case .leavingVoterSet where opened.cluster != nil:
                await leave(step, threads) {
                    node.purges.handle(.leaveRequested)
                    await node.purges.waitUntilLeft()
                }
            case .announcingLeave:
                guard let hub = opened.cluster?.hub else { break }
                await leave(step, threads) { try? await hub.leave().get() }
            case .leavingVoterSet, .stopped: break
            }
            step = step.next(isIdle: node.slots.openCount == 0)
        }
    }

    /// Runs `announce` for at most the time of `step`, because no other member may be reachable.
    private func leave(
        _ step: ShutdownStep, _ threads: ThreadPools, announce: @escaping @Sendable () async -> Void
    ) async {
        guard let limit = step.timeMax else { return }
        notifier?.notifyStopping(status: "leaving the cluster", within: limit + .seconds(10))
        await finish(within: limit, threads, announce)
    }

    /// Closes the ports for clients and waits until their connections are closed, at most until
    /// `deadline` or a second order to stop.
    private func closeListeners(
        of node: NodeCore, _ opened: Endpoints, _ threads: ThreadPools, until deadline: Instant
    ) async {
        let open = node.slots.openCount
        logger.info("draining", metadata: ["connections": .stringConvertible(open)])
        notifier?.notifyStopping(
            status: "draining \(open) connections",
            within: deadline - SystemClock.now() + .seconds(10))
        _ = await stops.wait(
            within: deadline - SystemClock.now(), stopRequestsMax: 1,
            on: threads.timerGroup.any()
        ) {
            for doorway in opened.listeners where doorway.plane == .data { await doorway.close() }
            for context in node.contexts { context.loop.execute { context.drain() } }
            await node.slots.waitUntilEmpty(on: threads.timerGroup.any())
        }
        node.slots.stopWaiting()
    }

    /// Closes the remaining client connections: once this node leaves the voter set, none may begin
    /// a request.
    private func abortConnections(_ node: NodeCore, _ threads: ThreadPools) async {
        hasAborted.store(true, ordering: .relaxed)
        logger.warning(
            "connections aborted",
            metadata: [
                "connections": .stringConvertible(node.slots.openCount),
                "why": stops.count > 1 ? "second stop signal" : "drain-timeout passed",
            ])
        await finish(within: Self.gracePeriod, threads) {
            for context in node.contexts {
                try? await context.loop.submit { context.abortConnections() }.get()
            }
        }
    }

    /// Closes everything that `node` uses, in the order of the dependencies.
    func close(
        _ node: NodeCore, _ opened: Endpoints, _ threads: ThreadPools, until deadline: Instant
    ) async {
        let hasStopped = await finish(within: timeLeft(until: deadline), threads) {
            for doorway in opened.listeners { await doorway.close() }
            if let cluster = opened.cluster {
                await cluster.listener.close()
                try? await cluster.hub.stop().get()
            }
            for context in node.contexts { try? await context.loop.submit { context.stop() }.get() }
            await node.pressure.stop()
        }
        if !hasStopped {
            recordAbort("an event loop does not respond; its work is aborted", [:])
        }
        await closeInvalidationLog(of: node, threads, until: deadline)
        let isWritten = await finish(within: timeLeft(until: deadline), threads) {
            await node.disk?.close()
            // Reads in progress deliver their results to the loops, which must still exist.
            try? await threads.diskReaders.shutdownGracefully()
        }
        if !isWritten {
            recordAbort(
                "the disk does not respond; queued writes are lost",
                ["queued_bytes": .stringConvertible(node.disk?.pendingBytes ?? 0)])
        }
        // A look-up may take any time; nothing waits for its result any more.
        await finish(within: Self.gracePeriod, threads) {
            try? await threads.lookups.shutdownGracefully()
        }
        node.close()
        logger.info("stopped")
        let timeKeeper = threads.timerGroup.any()
        await node.accessLog.finish(on: timeKeeper)
        await settings.log.finish(on: timeKeeper)
        // Threads that are stuck, and the callbacks that they may still make, end with the process.
        guard hasStopped, isWritten else { return }
        try? await threads.loops.shutdownGracefully()
        try? await threads.timerGroup.shutdownGracefully()
    }

    /// Writes the last invalidations to the disk before the disk tier, whose entries they cover, is
    /// closed.
    private func closeInvalidationLog(
        of node: NodeCore, _ threads: ThreadPools, until deadline: Instant
    ) async {
        guard let purges = node.purgesIfOpen else { return }
        let isKept = Atomic<Bool>(true)
        let isOver = await finish(within: timeLeft(until: deadline), threads) {
            if await !purges.stop() { isKept.store(false, ordering: .relaxed) }
        }
        guard !isOver || !isKept.load(ordering: .relaxed) else { return }
        recordAbort(
            "the latest invalidations are not on disk",
            [
                "next_start": isOver
                    ? "revalidates every entry once" : "may serve invalidated entries"
            ])
    }

    /// Waits for `work` for at most `limit`, or until the node is ordered to stop once more;
    /// returns false if `work` has not ended.
    @discardableResult
    func finish(
        within limit: Interval, _ threads: ThreadPools, _ work: @escaping @Sendable () async -> Void
    ) async -> Bool {
        await stops.wait(
            within: limit, stopRequestsMax: stops.count, on: threads.timerGroup.any(), work)
    }

    /// Returns the time for a step of the shutdown: until `deadline`, but at least ``gracePeriod``,
    /// and no more than that after a second order to stop.
    private func timeLeft(until deadline: Instant) -> Interval {
        max(Self.gracePeriod, stops.count < 2 ? deadline - SystemClock.now() : .zero)
    }

    /// Logs an error and records that the shutdown was not clean.
    private func recordAbort(_ message: Logger.Message, _ metadata: Logger.Metadata) {
        hasAborted.store(true, ordering: .relaxed)
        logger.error(message, metadata: metadata)
    }
}
