import Cluster
import Ground
import Serving
import Tiers

/// Starts and ends of processes, and what their exchanges want done.
extension InvalidationWorld {
    mutating func start(_ index: Int) {
        guard !nodes[index].isUp else { return }
        takeAwayUnseenCopies(before: index)
        var node = nodes[index]
        let disk = node.storage
        let isReused = plan.mutation == .numberReused && node.run > 0
        let process = isReused ? node.process : ProcessID(using: &dice)
        node.process = process
        node.run += 1
        node.pausedUntil = .zero
        node.plannedTick = .distantFuture
        node.epoch = disk.epoch + 1
        if plan.mutation != .stampBeforeBootEpoch { node.storage.epoch += 1 }
        node.batch = []
        node.markList = disk.marks
        node.marks = MarkTable(disk.marks)
        node.young = YoungMarks()
        node.validateBefore = disk.validateBefore
        node.memory = Array(repeating: nil, count: keys.count)
        node.index = node.memory
        node.isScanned = false
        node.reinserting = node.memory
        node.fills.removeAll()
        node.current = Array(repeating: nil, count: keys.count)
        node.applied = disk.purges
        node.validated = KnownPositions(disk.floors + disk.retired)
        node.witness = ExchangeWitness()
        node.isSeen = Array(repeating: false, count: nodes.count)
        node.unseenSince = Array(repeating: nil, count: nodes.count)
        (node.isDraining, node.hasLeft, node.flag) = (false, false, false)
        (node.departure, node.fencedSince) = (nil, nil)
        node.epochs = [:]
        node.introductions = []
        node.wasStarted = true
        var start = InvalidationExchange.Start(
            node: node.id, process: process, firstRound: dice.next())
        start.settings = settings
        start.kept = KeptLog(
            records: disk.records, floors: disk.floors, retired: disk.retired)
        start.memory = disk.memory
        start.mayOpen = disk.epoch == 0 && disk.memory == nil
        node.exchange = InvalidationExchange(start, now: node.clock.reading(at: now))
        nodes[index] = node
        note("start \(index) as \(process), epoch \(node.epoch)")
        trace.note(4, process: index, at: now)
        if disk.epoch > 0, isMajorityAway(without: index) { reach(.restartOfOldDisk) }
        run(index) { $0.started(now: $1, using: &$2, effects: &$3) }
        fail(nodes[index].witness.unsynced(in: nodes[index]), index)
        for other in nodes.indices where other != index && nodes[other].isUp {
            timeline.plan(.reconnect(index, other), at: now + milliseconds(0...60))
        }
        beginJoining(index)
        let run = nodes[index].run
        let scan = milliseconds(2...80)
        timeline.plan(.scanned(index, run: run), at: now + scan)
        let pace = milliseconds(300...1_300)
        timeline.plan(.housekeeping(index, run: run), at: now + pace)
    }

    private var settings: InvalidationExchange.Settings {
        var settings = InvalidationExchange.Settings()
        settings.fence.fence = Self.fence
        settings.fence.forgetAfter = Self.forgetAfter
        settings.fence.attemptPatience = .milliseconds(300)
        settings.fence.proposalDelay = .milliseconds(plan.seed.isMultiple(of: 4) ? 1_500 : 20)
        settings.log.ageMin = .seconds(8)
        settings.log.recordsMin = 40
        settings.log.delays.askPatience = .milliseconds(200)
        settings.fence.flaws = plan.mutation?.flaws ?? []
        return settings
    }

    private func isMajorityAway(without index: Int) -> Bool {
        guard let set = truth.line.last else { return false }
        let away = nodes.indices.filter { $0 != index && !nodes[$0].isUp }.map { nodes[$0].id }
        return set.isMajority(away)
    }

    /// The process ends; of what was not synced any part is lost.
    mutating func crash(_ index: Int) {
        guard nodes[index].isUp else { return }
        note("crash \(index), \(nodes[index].batch.count) unsynced")
        trace.note(5, process: index, at: now)
        let batch = nodes[index].batch
        if batch.contains(where: { $0.isRecord }) { reach(.crashBetweenApplyAndSync) }
        for write in batch.prefix(Int.random(in: 0...batch.count, using: &dice)) {
            persist(write, index)
        }
        var kept: [SimulatedEntry] = []
        for entry in nodes[index].storage.entries {
            let isSynced = now - entry.writtenAt >= .milliseconds(200)
            if isSynced || Bool.random(using: &dice) { kept.append(entry) }
        }
        nodes[index].storage.entries = kept
        nodes[index].exchange = nil
        nodes[index].batch = []
        for other in nodes.indices where other != index { disconnect(index, other) }
    }

    // MARK: The exchange

    mutating func tell(_ index: Int, _ event: ExchangeEvent) {
        run(index) { $0.handle(event, now: $1, using: &$2, effects: &$3) }
    }

    mutating func run(
        _ index: Int,
        _ event: (inout InvalidationExchange, Instant, inout Dice, inout [InvalidationEffect]) ->
            Void
    ) {
        guard var exchange = nodes[index].exchange else { return }
        // The only copy: nothing is copied when it changes.
        nodes[index].exchange = nil
        var effects: [InvalidationEffect] = []
        event(&exchange, clock(index), &dice, &effects)
        let next = nodes[index].clock.instant(of: exchange.nextTick)
        nodes[index].exchange = exchange
        for effect in effects { perform(effect, index) }
        fail(nodes[index].witness.fault(of: nodes[index], against: truth, now: now), index)
        planTick(index, max(next, now))
    }

    private mutating func planTick(_ index: Int, _ next: Instant) {
        guard next < nodes[index].plannedTick else { return }
        nodes[index].plannedTick = next
        let late = Interval(nanoseconds: Int64.random(in: 1...1_000_000, using: &dice))
        timeline.plan(.tick(index, run: nodes[index].run), at: next + late)
    }

    mutating func tick(_ index: Int) {
        // It was planned before an earlier one was, which has brought all there was to do.
        guard nodes[index].plannedTick <= now else { return }
        nodes[index].plannedTick = .distantFuture
        tell(index, .ticked)
        let isCurrent = nodes[index].exchange?.window.isCurrent(at: clock(index)) ?? false
        nodes[index].flag = isCurrent
        forgetFenced(index, isCurrent)
    }

    private mutating func perform(_ effect: InvalidationEffect, _ index: Int) {
        switch effect {
        case .apply(let record, let count): apply(record, count, index)
        case .applyLocally(let purge, let count):
            mark(purge.marks(at: Stamp(epoch: nodes[index].epoch, count: count)), index)
        case .applyFloors(let floors, let count):
            nodes[index].validated.take(floors)
            let stamp = Stamp(epoch: nodes[index].epoch, count: count)
            mark(Purge.everythingSoft.marks(at: stamp), index)
            nodes[index].validateBefore = stamp
            floorsApplied += 1
            note("node \(index) applies floors at \(stamp)")
        case .write(let batch):
            if !nodes[index].batch.isEmpty { fail("two batches at once", index) }
            nodes[index].batch = batch
            planSync(index)
        case .send(let message, let ids):
            for id in ids {
                send(.said(message), from: index, to: self.index(of: id))
                if case .push(let records) = message, let last = records.last {
                    nodes[index].exchange?.pushed(upTo: last.name.number, to: id)
                }
            }
        case .contradiction(let found): fail("node \(index) finds \(found)")
        case .window(let window): nodes[index].witness.window = window
        case .issued, .settled: break
        }
    }

    // MARK: The log's disk

    private mutating func planSync(_ index: Int) {
        let slow = !isCalm && throwsOne(in: 30)
        let delay = slow ? milliseconds(20...500) : milliseconds(1...4)
        timeline.plan(.sync(index, run: nodes[index].run), at: now + delay)
    }

    mutating func synced(_ index: Int) {
        let batch = nodes[index].batch
        guard !batch.isEmpty else { return }
        for write in batch { persist(write, index) }
        nodes[index].batch = []
        tell(index, .synced)
        fail(nodes[index].witness.unsynced(in: nodes[index]), index)
        guard plan.mutation == .markDroppedAtConfirmation else { return }
        nodes[index].storage.marks = []
        nodes[index].markList = []
        nodes[index].marks = MarkTable()
    }

    /// Has the disk hold what a write says: one after the other, and what the first of a batch
    /// says whatever becomes of the others.
    private mutating func persist(_ write: LogWrite, _ index: Int) {
        switch write {
        case .record(let record, let count):
            let named = nodes[index].storage.add(record)
            let stamp = Stamp(epoch: nodes[index].epoch, count: count)
            nodes[index].storage.marks += marks(of: record, stamp)
            if let purge = truth.numbers[record.name] { nodes[index].storage.purges.insert(purge) }
            let isOwn = record.name.stream == nodes[index].process
            truth.synced(record, named, at: nodes[index].id, isOwn: isOwn, now: now)
        case .floor(let position, let count):
            nodes[index].storage.floors.append(position)
            let named = nodes[index].storage.names(behind: position)
            truth.synced(position, named, at: nodes[index].id, now: now)
            persist(.everythingSoft, count, index)
        case .local(let purge, let count): persist(purge, count, index)
        case .note(let note): persist(note, index)
        }
    }

    private mutating func persist(_ purge: Purge, _ count: UInt64, _ index: Int) {
        let stamp = Stamp(epoch: nodes[index].epoch, count: count)
        nodes[index].storage.marks += purge.marks(at: stamp)
        guard purge == .everythingSoft else { return }
        nodes[index].storage.validateBefore = max(nodes[index].storage.validateBefore, stamp)
    }

    /// Records go, and what they have invalidated stays.
    private mutating func persist(_ note: LogNote, _ index: Int) {
        let withMarks = plan.mutation == .marksGoneWithRecords
        switch note {
        case .memory(let memory): nodes[index].storage.memory = memory
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

    private func marks(of record: InvalidationRecord, _ stamp: Stamp) -> [Mark] {
        let invalidation = record.invalidation
        if case .foreign = invalidation.action, plan.mutation == .unknownPurgeSkipped {
            return []
        }
        return invalidation.purge?.marks(at: stamp) ?? []
    }

    private mutating func apply(_ record: InvalidationRecord, _ count: UInt64, _ index: Int) {
        let stamp = Stamp(epoch: nodes[index].epoch, count: count)
        let marks = marks(of: record, stamp)
        guard let purge = truth.numbers[record.name] else {
            // Its number is known when it has been issued; what is issued here comes next.
            return mark(marks, index)
        }
        appliedPurge(purge, index)
        mark(marks, index)
    }

    mutating func appliedPurge(_ purge: Int, _ index: Int) {
        nodes[index].applied.insert(purge)
        noteInFlight(truth.purges[purge].covers, index)
        trace.note(6, process: index, at: now)
    }

    private mutating func mark(_ marks: [Mark], _ index: Int) {
        for mark in marks {
            let slot = nodes[index].marks.apply(mark)
            nodes[index].markList.append(mark)
            if case .url(let name) = mark.target, let slot {
                nodes[index].young.add(name, slot, mark.stamp)
            }
        }
        for key in keys.indices {
            guard let entry = nodes[index].memory[key], effect(on: entry, index) == .dead else {
                continue
            }
            nodes[index].memory[key] = nil
        }
    }

    /// A purge has been applied: what of it is on its way here is counted.
    private mutating func noteInFlight(_ covers: [Bool], _ index: Int) {
        let node = nodes[index]
        for fill in node.fills.values where covers[fill.key] {
            if fill.origin != nil {
                reach(fill.held == nil ? .duringFetch : .duringRevalidation)
            }
            for question in fill.questions.values {
                switch question.path {
                case .get:
                    reach(.duringGet)
                    if owners(of: fill.key, seenBy: index).first != index {
                        reach(.duringHotCopy)
                    }
                case .probe: reach(.duringProbe)
                case .offer: reach(.duringOffer)
                case .drain: reach(.duringDrain)
                case .fetch, .revalidation: break
                }
            }
        }
        for key in keys.indices where covers[key] {
            if node.fills.values.contains(where: { $0.key == key && $0.lookup.step == .disk }) {
                reach(.duringPromotion)
            }
            if node.reinserting[key] != nil { reach(.duringReinsertion) }
            let isKept = node.storage.entries.contains { $0.key == key }
            if !node.isScanned, isKept { reach(.duringRecovery) }
        }
    }

    // MARK: What is done wrong on purpose

    /// The survivors of a split forget the other side, which does the same.
    private mutating func forgetFenced(_ index: Int, _ isCurrent: Bool) {
        guard plan.mutation == .forgettingWhileFenced else { return }
        let since = nodes[index].fencedSince
        nodes[index].fencedSince = isCurrent ? nil : since ?? now
        guard let since, !isCurrent, now - since > .seconds(3),
            let members = nodes[index].exchange?.standing?.set.members
        else { return }
        forget(members.filter { !isReached($0, by: index) }, at: index)
    }
}

extension Purge {
    /// What it leaves where entries are kept, applied at `stamp`.
    func marks(at stamp: Stamp) -> [Mark] {
        targets.map { Mark($0, isSoft: mode == .soft, stamp: stamp) }
    }
}

extension LogWrite {
    fileprivate var isRecord: Bool {
        if case .record = self { true } else { false }
    }
}
