import Cluster
import Ground
import Origin
import Store
import Telemetry
import Tiers

/// What is counted and measured of a node.
extension NodeCore {
    /// The counters of all loops, with the gauges as they are now; nothing of single members.
    func snapshot() -> Snapshot { snapshot(members: []) }

    /// The same with what is measured of each member.
    func snapshotOfAll() -> Snapshot { snapshot(members: memberFigures()) }

    private func snapshot(members: [MemberFigures]) -> Snapshot {
        setMemoryFigures()
        counters.set(.fillsInFlight, to: fills.count)
        counters.set(.waiters, to: waiterCount)
        counters.set(.connectionsOpen, to: openConnections)
        setFigures(of: exchange.figures)
        let log = desk.figures
        counters.set(.invalidationsApplied, to: Int(log.applied))
        counters.set(.invalidationRecords, to: log.held)
        counters.set(.invalidationNames, to: marks.count)
        counters.set(.receiptsPending, to: desk.receiptsPending)
        counters.set(.membersCounted, to: log.counted)
        counters.set(.fenced, to: fence.isOpen(at: SystemClock.now()) ? 0 : 1)
        counters.set(.joining, to: hub?.missing == nil ? 0 : 1)
        if let disk { setFigures(of: disk) }
        if let view = hub?.view { setFigures(of: view) }
        let halls = halls
        return Snapshot(
            loops: halls.map(\.counters), node: counters, sites: siteLedger.figures(),
            outcomes: halls.map(\.outcomes), members: members)
    }

    /// None for a node that is in no cluster; at most as many as are known, and as are counted.
    private func memberFigures() -> [MemberFigures] {
        guard let hub else { return [] }
        let records = hub.view.records
        let met = Set(records.map(\.member.id))
        // Whoever has left is waited for by nobody.
        let others = records.dropFirst().filter { $0.state != .left }.map(\.member.id)
        let unmet = desk.table(at: SystemClock.now()).filter {
            $0.isCounted && !met.contains($0.id)
        }
        let ids = others + unmet.map(\.id)
        let lags = desk.lags(of: ids)
        return ids.map { MemberFigures(name: "\($0)", lagRecords: lags[$0] ?? 0) }
    }

    private func setMemoryFigures() {
        let account = store.account
        counters.set(.memoryUsedBytes, to: account.usedBytes)
        counters.set(.memoryLimitBytes, to: store.configuredBytes)
        counters.set(.memoryHeldLimitBytes, to: account.limitBytes)
        counters.set(.memoryBodyBytes, to: max(0, account.indexedBytes - account.overheadBytes))
        counters.set(.memoryOverheadBytes, to: account.overheadBytes)
        counters.set(.memoryFillingBytes, to: account.fillingBytes)
        counters.set(.memoryPinnedBytes, to: account.pinnedBytes)
        counters.set(.memoryEntries, to: store.count)
        for (metric, reason) in Self.evictionFigures {
            counters.set(metric, to: Int(store.evictions[reason]))
        }
    }

    private static let evictionFigures: [(Metric, EvictionFigures.Reason)] = [
        (.evictionsForRoom, .room), (.evictionsForPlace, .place), (.evictionsForShare, .share),
        (.evictionsForLimit, .limit), (.evictionsForPressure, .pressure),
        (.evictionsPurged, .purged),
    ]
}

extension NodeCore {
    private func setFigures(of origins: OriginFigures) {
        counters.set(.originConnections, to: origins.connections)
        counters.set(.originConnectionsIdle, to: origins.idle)
        counters.set(.originWaiting, to: origins.waiting)
        counters.set(.originCircuitsOpen, to: origins.circuitsOpen)
        counters.set(.originCircuitOpenings, to: Int(origins.circuitOpenings))
        counters.set(.originOverruns, to: Int(origins.overruns))
        counters.set(.originNames, to: origins.names)
    }

    private func setFigures(of view: MemberView) {
        let states = view.records.map(\.state)
        counters.set(.membersAlive, to: states.count { $0 == .alive })
        counters.set(.membersSuspected, to: states.count { $0 == .suspected })
        counters.set(.membersDead, to: states.count { $0 == .dead })
        counters.set(.peerConnections, to: view.connections.count)
    }

    private func setFigures(of disk: DiskTier) {
        counters.set(.diskUp, to: disk.isUp ? 1 : 0)
        counters.set(.diskLimitBytes, to: Int(disk.settings.limitBytes))
        counters.set(.diskUsedBytes, to: Int(disk.allocatedBytes))
        counters.set(.diskEntries, to: disk.view?.shards.count ?? 0)
        let segments = disk.segments
        counters.set(.diskSegmentsFree, to: segments.free)
        counters.set(.diskSegmentsOpen, to: segments.open)
        counters.set(.diskSegmentsClosed, to: segments.closed)
        counters.set(.diskIndexBytes, to: disk.view?.shards.residentBytes ?? 0)
        counters.set(.diskQueuedBytes, to: disk.queued)
        for (metric, figure) in Self.diskFigures {
            counters.set(metric, to: disk.figures[figure])
        }
        let touches = touchFigures
        counters.set(.touchesMerged, to: Int(touches.merged))
        counters.set(.touchesDropped, to: Int(touches.dropped) + disk.figures[.touchesDropped])
    }

    private static let diskFigures: [(Metric, DiskFigures.Figure)] = [
        (.diskRecordsAdmitted, .admittedRecords), (.diskRecordsReinserted, .reinsertedRecords),
        (.diskRecordsCrowdedOut, .crowdedOutRecords), (.diskRecordsDropped, .droppedRecords),
        (.diskRecordsLost, .lostRecords), (.headsRefusedOnDisk, .refusedRecords),
        (.diskAdmittedBytes, .admittedBytes), (.diskWrittenBytes, .writtenBytes),
        (.diskEvictions, .evictedEntries), (.diskExpirations, .expiredEntries),
        (.diskReclaims, .reclaims), (.diskReadsAtOnce, .readsAtOnce),
        (.diskReadsByThread, .readsByThread), (.diskReadBytes, .readBytes),
        (.diskFailures, .failures), (.touchesApplied, .touchesApplied),
        (.journalSyncs, .journalSyncs),
    ]
}
