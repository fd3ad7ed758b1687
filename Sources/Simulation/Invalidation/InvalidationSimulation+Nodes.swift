import Cluster
import Ground
import Serving
import Tiers

/// Starts and crashes of processes, and the effects of their replication.
extension InvalidationSimulation {
    /// Starts a process from the node's storage.
    mutating func start(_ index: Int) {
        guard !nodes[index].isUp else { return }
        discardUndetectedCopies(before: index)
        var node = nodes[index]
        let disk = node.storage
        let isReused = scenario.mutation == .numberReused && node.run > 0
        let process = isReused ? node.process : ProcessID(using: &dice)
        node.process = process
        node.run += 1
        node.pausedUntil = .zero
        node.plannedTick = .distantFuture
        node.epoch = disk.epoch + 1
        if scenario.mutation != .versionBeforeBootEpoch { node.storage.epoch += 1 }
        node.batch = []
        node.markList = disk.marks
        node.marks = MarkTable(disk.marks)
        node.unconfirmedMarks = UnconfirmedMarks()
        node.validateBefore = disk.validateBefore
        node.memory = Array(repeating: nil, count: keys.count)
        node.index = node.memory
        node.isScanned = false
        node.reinserting = node.memory
        node.fetches.removeAll()
        node.joinableFetches = Array(repeating: nil, count: keys.count)
        node.applied = disk.purges
        node.validated = PositionVector(disk.floors + disk.retired)
        node.checker = ReplicationChecker()
        node.visibleNodes = Array(repeating: false, count: nodes.count)
        node.unseenSince = Array(repeating: nil, count: nodes.count)
        (node.isDraining, node.hasLeft, node.isTimerFenceOpen) = (false, false, false)
        (node.shutdown, node.fencedSince) = (nil, nil)
        node.epochs = [:]
        node.roundContacts = []
        node.wasStarted = true
        var start = InvalidationReplication.InitialState(
            node: node.id, process: process, firstRound: dice.next())
        start.settings = settings
        start.persistedLog = PersistedLog(
            records: disk.records, floors: disk.floors, retired: disk.retired)
        start.persistentState = disk.persistentState
        start.mayBootstrap = disk.epoch == 0 && disk.persistentState == nil
        node.replication = InvalidationReplication(start, now: node.clock.reading(at: now))
        nodes[index] = node
        log("start \(index) as \(process), epoch \(node.epoch)")
        trace.add(4, process: index, at: now)
        if disk.epoch > 0, isMajorityAway(without: index) { cover(.restartOfOldDisk) }
        run(index) { $0.started(now: $1, using: &$2, effects: &$3) }
        fail(nodes[index].checker.unsyncedClaim(in: nodes[index]), index)
        for other in nodes.indices where other != index && nodes[other].isUp {
            eventQueue.schedule(.reconnect(index, other), at: now + milliseconds(0...60))
        }
        beginJoining(index)
        let run = nodes[index].run
        let scan = milliseconds(2...80)
        eventQueue.schedule(.scanned(index, run: run), at: now + scan)
        let pace = milliseconds(300...1_300)
        eventQueue.schedule(.housekeeping(index, run: run), at: now + pace)
    }

    private var settings: InvalidationReplication.Settings {
        var settings = InvalidationReplication.Settings()
        settings.fence.duration = Self.fence
        settings.fence.removeAfter = Self.forgetAfter
        settings.fence.proposalTimeout = .milliseconds(300)
        settings.fence.proposalDelay = .milliseconds(scenario.seed.isMultiple(of: 4) ? 1_500 : 20)
        settings.log.ageMin = .seconds(8)
        settings.log.recordsMin = 40
        settings.log.delays.repairTimeout = .milliseconds(200)
        settings.fence.mutations = scenario.mutation?.fenceMutations ?? []
        return settings
    }

    private func isMajorityAway(without index: Int) -> Bool {
        guard let set = oracle.decidedSets.last else { return false }
        let away = nodes.indices.filter { $0 != index && !nodes[$0].isUp }.map { nodes[$0].id }
        return set.isMajority(away)
    }

    /// Ends the process; any part of the unsynced writes is lost.
    mutating func crash(_ index: Int) {
        guard nodes[index].isUp else { return }
        log("crash \(index), \(nodes[index].batch.count) unsynced")
        trace.add(5, process: index, at: now)
        let batch = nodes[index].batch
        if batch.contains(where: { $0.isRecord }) { cover(.crashBetweenApplyAndSync) }
        for write in batch.prefix(Int.random(in: 0...batch.count, using: &dice)) {
            persist(write, index)
        }
        var kept: [SimulatedEntry] = []
        for entry in nodes[index].storage.entries {
            let isSynced = now - entry.writtenAt >= .milliseconds(200)
            if isSynced || Bool.random(using: &dice) { kept.append(entry) }
        }
        nodes[index].storage.entries = kept
        nodes[index].replication = nil
        nodes[index].batch = []
        for other in nodes.indices where other != index { disconnect(index, other) }
    }

    // MARK: Replication

    /// Delivers an event to the node's replication.
    mutating func deliver(_ index: Int, _ event: ReplicationEvent) {
        run(index) { $0.handle(event, now: $1, using: &$2, effects: &$3) }
    }

    /// Applies `event` to the node's replication, performs the effects and checks the invariants.
    mutating func run(
        _ index: Int,
        _ event: (
            inout InvalidationReplication, Instant, inout SplitMix64, inout [InvalidationEffect]
        ) ->
            Void
    ) {
        guard var exchange = nodes[index].replication else { return }
        // Moved out, so that the mutation does not copy it.
        nodes[index].replication = nil
        var effects: [InvalidationEffect] = []
        event(&exchange, clock(index), &dice, &effects)
        let next = nodes[index].clock.instant(of: exchange.nextTick)
        nodes[index].replication = exchange
        for effect in effects { perform(effect, index) }
        fail(nodes[index].checker.violation(of: nodes[index], against: oracle, now: now), index)
        planTick(index, max(next, now))
    }

    private mutating func planTick(_ index: Int, _ next: Instant) {
        guard next < nodes[index].plannedTick else { return }
        nodes[index].plannedTick = next
        let late = Interval(nanoseconds: Int64.random(in: 1...1_000_000, using: &dice))
        eventQueue.schedule(.tick(index, run: nodes[index].run), at: next + late)
    }

    /// Delivers the tick that is due.
    mutating func tick(_ index: Int) {
        // An earlier tick was scheduled after this one and has done all work due.
        guard nodes[index].plannedTick <= now else { return }
        nodes[index].plannedTick = .distantFuture
        deliver(index, .ticked)
        let isCurrent = nodes[index].replication?.window.isCurrent(at: clock(index)) ?? false
        nodes[index].isTimerFenceOpen = isCurrent
        removeWhileFenced(index, isCurrent)
    }

    private mutating func perform(_ effect: InvalidationEffect, _ index: Int) {
        switch effect {
        case .apply(let record, let count): apply(record, count, index)
        case .applyLocally(let purge, let count):
            mark(
                purge.marks(at: InvalidationVersion(epoch: nodes[index].epoch, count: count)), index
            )
        case .applyFloors(let floors, let count):
            nodes[index].validated.merge(floors)
            let version = InvalidationVersion(epoch: nodes[index].epoch, count: count)
            mark(Purge.everythingSoft.marks(at: version), index)
            nodes[index].validateBefore = version
            floorsApplied += 1
            log("node \(index) applies floors at \(version)")
        case .write(let batch):
            if !nodes[index].batch.isEmpty { fail("two batches at once", index) }
            nodes[index].batch = batch
            planSync(index)
        case .send(let message, let ids):
            for id in ids {
                send(.invalidation(message), from: index, to: self.index(of: id))
                if case .push(let records) = message, let last = records.last {
                    nodes[index].replication?.recordPushed(upTo: last.id.number, to: id)
                }
            }
        case .reportConflict(let found): fail("node \(index) finds \(found)")
        case .publishWindow(let window): nodes[index].checker.window = window
        case .ownRecordsSynced, .receiptsSettled: break
        }
    }

    // MARK: The log on disk

    private mutating func planSync(_ index: Int) {
        let slow = !isQuiescent && chance(oneIn: 30)
        let delay = slow ? milliseconds(20...500) : milliseconds(1...4)
        eventQueue.schedule(.sync(index, run: nodes[index].run), at: now + delay)
    }

    /// Completes the write of the pending batch.
    mutating func synced(_ index: Int) {
        let batch = nodes[index].batch
        guard !batch.isEmpty else { return }
        for write in batch { persist(write, index) }
        nodes[index].batch = []
        deliver(index, .synced)
        fail(nodes[index].checker.unsyncedClaim(in: nodes[index]), index)
        guard scenario.mutation == .markDroppedAtConfirmation else { return }
        nodes[index].storage.marks = []
        nodes[index].markList = []
        nodes[index].marks = MarkTable()
    }

    /// Applies a write to the simulated disk.
    ///
    /// Writes are applied in order; an earlier write of a batch is kept if later ones are lost.
    private mutating func persist(_ write: LogWrite, _ index: Int) {
        switch write {
        case .record(let record, let count):
            let named = nodes[index].storage.add(record)
            let version = InvalidationVersion(epoch: nodes[index].epoch, count: count)
            nodes[index].storage.marks += marks(of: record, version)
            if let purge = oracle.purgeNumbers[record.id] {
                nodes[index].storage.purges.insert(purge)
            }
            let isOwn = record.id.stream == nodes[index].process
            oracle.recordSynced(record, named, at: nodes[index].id, isOwn: isOwn, now: now)
        case .floor(let position, let count):
            nodes[index].storage.floors.append(position)
            let named = nodes[index].storage.names(behind: position)
            oracle.recordSynced(position, named, at: nodes[index].id, now: now)
            persist(.everythingSoft, count, index)
        case .localPurge(let purge, let count): persist(purge, count, index)
        case .metadata(let note): persist(note, index)
        }
    }

    private mutating func persist(_ purge: Purge, _ count: UInt64, _ index: Int) {
        let version = InvalidationVersion(epoch: nodes[index].epoch, count: count)
        nodes[index].storage.marks += purge.marks(at: version)
        guard purge == .everythingSoft else { return }
        nodes[index].storage.validateBefore = max(nodes[index].storage.validateBefore, version)
    }

    /// Applies a metadata update: records are dropped, and their marks remain.
    private mutating func persist(_ note: LogMetadataUpdate, _ index: Int) {
        let withMarks = scenario.mutation == .marksDroppedWithRecords
        switch note {
        case .consensusState(let memory): nodes[index].storage.persistentState = memory
        case .dropped(let position):
            nodes[index].storage.drop(position, withMarks: withMarks)
            nodes[index].storage.floors.append(position)
        case .retired(let position):
            let all = StreamPosition(process: position.process, count: .max)
            nodes[index].storage.drop(all, withMarks: withMarks)
            nodes[index].storage.floors.removeAll { $0.process == position.process }
            nodes[index].storage.retired.append(position)
        case .forgotten(let process):
            nodes[index].storage.retired.removeAll { $0.process == process }
        }
    }

    private func marks(of record: InvalidationRecord, _ version: InvalidationVersion)
        -> [InvalidationMark]
    {
        let invalidation = record.invalidation
        if case .unrecognized = invalidation.action, scenario.mutation == .unknownPurgeSkipped {
            return []
        }
        return invalidation.purge?.marks(at: version) ?? []
    }

    private mutating func apply(_ record: InvalidationRecord, _ count: UInt64, _ index: Int) {
        let version = InvalidationVersion(epoch: nodes[index].epoch, count: count)
        let marks = marks(of: record, version)
        guard let purge = oracle.purgeNumbers[record.id] else {
            // The number of a record is known once it was issued, which follows for a local one.
            return mark(marks, index)
        }
        recordApplied(purge, index)
        mark(marks, index)
    }

    /// Records that the node has applied a purge, by its number in the oracle.
    mutating func recordApplied(_ purge: Int, _ index: Int) {
        nodes[index].applied.insert(purge)
        coverInFlight(oracle.purges[purge].covers, index)
        trace.add(6, process: index, at: now)
    }

    private mutating func mark(_ marks: [InvalidationMark], _ index: Int) {
        for mark in marks {
            let slot = nodes[index].marks.apply(mark)
            nodes[index].markList.append(mark)
            if case .url(let name) = mark.target, let slot {
                nodes[index].unconfirmedMarks.insert(name, slot, mark.version)
            }
        }
        for key in keys.indices {
            guard let entry = nodes[index].memory[key], effect(on: entry, index) == .purged else {
                continue
            }
            nodes[index].memory[key] = nil
        }
    }

    /// Records the coverage of a purge that was applied during transfers.
    private mutating func coverInFlight(_ covers: [Bool], _ index: Int) {
        let node = nodes[index]
        for fetch in node.fetches.values where covers[fetch.key] {
            if fetch.origin != nil {
                cover(fetch.storedEntry == nil ? .duringFetch : .duringRevalidation)
            }
            for question in fetch.requests.values {
                switch question.path {
                case .get:
                    cover(.duringGet)
                    if owners(of: fetch.key, seenBy: index).first != index {
                        cover(.duringHotCopy)
                    }
                case .probe: cover(.duringProbe)
                case .offer: cover(.duringOffer)
                case .drain: cover(.duringDrain)
                case .fetch, .revalidation: break
                }
            }
        }
        for key in keys.indices where covers[key] {
            if node.fetches.values.contains(where: { $0.key == key && $0.lookup.step == .disk }) {
                cover(.duringPromotion)
            }
            if node.reinserting[key] != nil { cover(.duringReinsertion) }
            let isKept = node.storage.entries.contains { $0.key == key }
            if !node.isScanned, isKept { cover(.duringRecovery) }
        }
    }

    // MARK: Deliberate faults

    /// Has the survivors of a split remove the other side, which does the same.
    private mutating func removeWhileFenced(_ index: Int, _ isCurrent: Bool) {
        guard scenario.mutation == .removalWhileFenced else { return }
        let since = nodes[index].fencedSince
        nodes[index].fencedSince = isCurrent ? nil : since ?? now
        guard let since, !isCurrent, now - since > .seconds(3),
            let members = nodes[index].replication?.voterConfiguration?.set.members
        else { return }
        forget(members.filter { !isConnected($0, by: index) }, at: index)
    }
}

extension Purge {
    /// Returns the marks that the purge leaves when applied at `version`.
    func marks(at version: InvalidationVersion) -> [InvalidationMark] {
        targets.map { InvalidationMark($0, isSoft: mode == .soft, version: version) }
    }
}

extension LogWrite {
    fileprivate var isRecord: Bool {
        if case .record = self { true } else { false }
    }
}
