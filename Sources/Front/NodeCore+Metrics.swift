import Cluster
import Ground
import Logging
import Origin
import Peering
import Platform
import Store
import Telemetry
import Tiers
import Wire

/// The metrics of a node.
extension NodeCore {
    /// Updates all gauges, and returns them with the counters of all loops, without metrics per
    /// member.
    func snapshot() -> MetricsSnapshot { snapshot(members: []) }

    /// Updates all gauges, and returns them with the counters of all loops and metrics per member.
    func snapshotWithMembers() -> MetricsSnapshot { snapshot(members: memberFigures()) }

    /// Updates all gauges, and returns them with the counters of all loops and `members`.
    private func snapshot(members: [MemberSnapshot]) -> MetricsSnapshot {
        counters.setGauges(of: store)
        counters.set(.fetchesInFlight, to: fetches.count)
        counters.set(.waiters, to: waiterCount)
        counters.set(.connectionsOpen, to: slots.openCount)
        counters.setGauges(of: originCoordinator.statistics)
        let log = purges.statistics
        counters.set(.invalidationsApplied, to: Int(log.applied))
        counters.set(.invalidationRecords, to: log.held)
        counters.set(.invalidationNames, to: marks.count)
        counters.set(.receiptsPending, to: purges.receiptsPending)
        counters.set(.voters, to: log.counted)
        counters.set(.fenced, to: fence.isOpen(at: SystemClock.now()) ? 0 : 1)
        counters.set(.joining, to: hub?.missingSeeds == nil ? 0 : 1)
        let touches = touchCounts
        counters.set(.touchesMerged, to: Int(touches.merged))
        let droppedOnDisk = disk?.counters[.touchesDropped] ?? 0
        counters.set(.touchesDropped, to: Int(touches.dropped) + droppedOnDisk)
        if let disk { counters.setGauges(of: disk) }
        if let view = hub?.view { counters.setGauges(of: view) }
        let contexts = contexts
        return MetricsSnapshot(
            loops: contexts.map(\.counters), node: counters, sites: siteCounters.snapshots(),
            outcomes: contexts.map(\.outcomes), members: members)
    }

    /// Returns the metrics per member; empty for a node that is in no cluster, and otherwise at
    /// most one for each known member or voter.
    private func memberFigures() -> [MemberSnapshot] {
        guard let hub else { return [] }
        let records = hub.view.records
        let met = Set(records.map(\.member.id))
        // Nothing waits for a member that has left.
        let others = records.dropFirst().filter { $0.state != .left }.map(\.member.id)
        let unmet = purges.voterTable(at: SystemClock.now()).filter {
            $0.isVoter && !met.contains($0.id)
        }
        let ids = others + unmet.map(\.id)
        let lags = purges.lags(of: ids)
        return ids.map { MemberSnapshot(name: "\($0)", lagRecords: lags[$0] ?? 0) }
    }
}

extension NodeCounters {
    /// Sets the gauges of the memory tier.
    func setGauges(of store: MemoryStore) {
        let account = store.account
        set(.memoryUsedBytes, to: account.usedBytes)
        set(.memoryLimitBytes, to: store.configuredBytes)
        set(.memoryEffectiveLimitBytes, to: account.limitBytes)
        set(.memoryBodyBytes, to: max(0, account.indexedBytes - account.overheadBytes))
        set(.memoryOverheadBytes, to: account.overheadBytes)
        set(.memoryFetchBytes, to: account.fetchBytes)
        set(.memoryPinnedBytes, to: account.pinnedBytes)
        set(.memoryEntries, to: store.count)
        for (metric, reason) in Self.evictionFigures {
            set(metric, to: Int(store.evictions[reason]))
        }
    }

    /// The metric of each reason for an eviction.
    private static let evictionFigures: [(Metric, EvictionCounters.Reason)] = [
        (.evictionsForCapacity, .byteLimit), (.evictionsForEntryLimit, .entryLimit),
        (.evictionsForShare, .share),
        (.evictionsForLoweredLimit, .limitLowered), (.evictionsForPressure, .pressure),
        (.evictionsPurged, .purged),
    ]

    /// Sets the gauges of the origin clients.
    func setGauges(of origins: OriginStatistics) {
        set(.originConnections, to: origins.connections)
        set(.originConnectionsIdle, to: origins.idle)
        set(.originFetchesQueued, to: origins.waiting)
        set(.originCircuitsOpen, to: origins.circuitsOpen)
        set(.originCircuitOpenings, to: Int(origins.circuitOpenings))
        set(.originOverruns, to: Int(origins.overruns))
        set(.originNamesCached, to: origins.cachedNames)
    }

    /// Sets the gauges of the membership.
    func setGauges(of view: MemberView) {
        let states = view.records.map(\.state)
        set(.membersAlive, to: states.count { $0 == .alive })
        set(.membersSuspected, to: states.count { $0 == .suspected })
        set(.membersDead, to: states.count { $0 == .dead })
        set(.peerConnections, to: view.connections.count)
    }

    /// Sets the gauges of the disk tier.
    func setGauges(of disk: DiskStore) {
        set(.diskUp, to: disk.isAvailable ? 1 : 0)
        set(.diskLimitBytes, to: Int(disk.settings.limitBytes))
        set(.diskUsedBytes, to: Int(disk.allocatedBytes))
        set(.diskEntries, to: disk.view?.shards.count ?? 0)
        let segments = disk.segments
        set(.diskSegmentsFree, to: segments.free)
        set(.diskSegmentsOpen, to: segments.open)
        set(.diskSegmentsClosed, to: segments.closed)
        set(.diskIndexBytes, to: disk.view?.shards.allocatedBytes ?? 0)
        set(.diskQueuedBytes, to: disk.pendingBytes)
        for (metric, figure) in Self.diskFigures {
            set(metric, to: disk.counters[figure])
        }
    }

    /// The metric of each counter of the disk tier.
    private static let diskFigures: [(Metric, DiskCounters.DiskCounter)] = [
        (.diskRecordsAdmitted, .admittedRecords), (.diskRecordsReinserted, .reinsertedRecords),
        (.diskRecordsQueueFull, .queueOverflowRecords), (.diskRecordsDropped, .droppedRecords),
        (.diskRecordsLost, .lostRecords), (.headsRefusedOnDisk, .invalidRecords),
        (.diskAdmittedBytes, .admittedBytes), (.diskWrittenBytes, .writtenBytes),
        (.diskEvictions, .evictedEntries), (.diskExpirations, .expiredEntries),
        (.diskReclaims, .reclaims), (.diskReadsFromPageCache, .nonblockingReads),
        (.diskReadsByThread, .threadReads), (.diskReadBytes, .readBytes),
        (.diskFailures, .failures), (.touchesApplied, .touchesApplied),
        (.journalSyncs, .journalSyncs),
    ]
}

extension OriginEvent {
    /// Logs the event.
    func log(to logger: Logger) {
        switch self {
        case .circuitChanged(let origin, .opened(let failures, let pause)):
            logger.warning(
                "circuit breaker opened after repeated failures",
                metadata: [
                    "origin": "\(origin)", "failures": "\(failures)",
                    "seconds": "\(pause.seconds)",
                ])
        case .circuitChanged(let origin, .closed):
            logger.info(
                "circuit breaker closed: the origin responds again",
                metadata: ["origin": "\(origin)"])
        case .tlsFailed(let origin, let failure):
            logger.warning(
                "TLS connection to an origin failed",
                metadata: ["origin": "\(origin)", "why": "\(failure.message)"])
        case .tlsSucceeded(let origin):
            logger.info(
                "TLS connections to an origin succeed again", metadata: ["origin": "\(origin)"])
        case .responseOverran(let origin):
            logger.warning(
                "origin sends more bytes than Content-Length; closing its connections",
                metadata: ["origin": "\(origin)"])
        case .lookupFailed(let host, let reason):
            logger.warning(
                "name resolution failed; using the last known addresses",
                metadata: ["host": "\(host)", "why": "\(reason)"])
        }
    }
}
