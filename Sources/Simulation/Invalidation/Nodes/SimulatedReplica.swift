import Cluster
import Ground
import Serving
import Tiers

/// The replication of one node: its state machine, its log on disk, and the checks of both.
struct SimulatedReplica: Sendable {
    /// A call of the state machine.
    typealias Call = (
        inout InvalidationReplication, Instant, inout SplitMix64, inout [InvalidationEffect]
    ) -> Void

    /// An invalidation that the state machine has applied.
    struct AppliedInvalidation {
        var marks: [InvalidationMark]
        /// The number of the purge in the oracle, if it is known.
        var purge: Int?
        /// True if it replaces records that are no longer available.
        var isFloor = false
    }

    /// The fence duration of all nodes.
    static let fence = Interval.seconds(2)
    /// The time after which a silent voter is removed.
    static let forgetAfter = Interval.seconds(6)

    let index: Int
    let clock: SimulatedClock
    private let mutation: InvalidationMutation?
    var storage = SimulatedStorage()
    /// The state machine; `nil` while the process is down.
    private(set) var replication: InvalidationReplication?
    private(set) var process = ProcessID(high: 0, low: 0)
    /// The number of the run; events of earlier runs are ignored.
    private(set) var run = 0
    /// The boot epoch of the process.
    private(set) var epoch: UInt64 = 0
    /// The purges whose marks this run has, applied or restored from disk.
    var applied: Set<Int> = []
    /// The positions up to which everything stored was made stale.
    private(set) var validated = PositionVector()
    /// The scheduled tick, in simulated time; `.distantFuture` for none.
    private var plannedTick = Instant.distantFuture
    /// The writes that are not synced.
    private var batch: [LogWrite] = []
    private var checker = ReplicationChecker()
    /// The state of the fence if a timer set it.
    private var isTimerFenceOpen = false
    /// The time since which the node is fenced; used by a deliberate fault only.
    private var fencedSince: Instant?

    init(_ index: Int, clock: SimulatedClock, mutation: InvalidationMutation?) {
        self.index = index
        self.clock = clock
        self.mutation = mutation
    }

    /// The invalidation version of a request that begins now.
    var invalidationVersion: InvalidationVersion { version(replication?.appliedCount ?? 0) }

    /// Returns the invalidation version of a count of invalidations applied by this run.
    private func version(_ count: UInt64) -> InvalidationVersion {
        InvalidationVersion(epoch: epoch, count: count)
    }

    // MARK: Processes

    /// Creates the state machine of a process from the storage; its
    /// ``InvalidationReplication/started(now:using:effects:)`` must follow.
    mutating func start(_ world: inout SimulatedWorld) {
        let isReused = mutation == .numberReused && run > 0
        if !isReused { process = ProcessID(using: &world.dice) }
        let id = world.members[index].id
        world.members[index] = SimulatedMember(id: id, process: process, wasStarted: true)
        run += 1
        epoch = storage.epoch + 1
        if mutation != .versionBeforeBootEpoch { storage.epoch += 1 }
        plannedTick = .distantFuture
        batch = []
        applied = storage.purges
        validated = PositionVector(storage.floors + storage.retired)
        checker = ReplicationChecker()
        (isTimerFenceOpen, fencedSince) = (false, nil)
        var start = InvalidationReplication.InitialState(
            node: id, process: process, firstRound: world.dice.next())
        start.settings = settings(world.scenario)
        start.persistedLog = PersistedLog(
            records: storage.records, floors: storage.floors, retired: storage.retired)
        start.persistentState = storage.persistentState
        start.mayBootstrap = epoch == 1 && storage.persistentState == nil
        replication = InvalidationReplication(start, now: clock.reading(at: world.now))
        world.log("start \(index) as \(process), epoch \(epoch)")
        world.trace(4, index)
    }

    /// Returns the settings of the state machine, with short times and the deliberate fault.
    private func settings(_ scenario: InvalidationScenario) -> InvalidationReplication.Settings {
        var settings = InvalidationReplication.Settings()
        settings.fence.duration = Self.fence
        settings.fence.removeAfter = Self.forgetAfter
        settings.fence.proposalTimeout = .milliseconds(300)
        settings.fence.proposalDelay = .milliseconds(scenario.seed.isMultiple(of: 4) ? 1_500 : 20)
        settings.log.ageMin = .seconds(8)
        settings.log.recordsMin = 40
        settings.log.delays.repairTimeout = .milliseconds(200)
        settings.fence.mutations = mutation?.fenceMutations ?? []
        return settings
    }

    /// Ends the process; any part of the unsynced writes is lost.
    mutating func crash(_ world: inout SimulatedWorld) {
        world.log("crash \(index), \(batch.count) unsynced")
        world.trace(5, index)
        if batch.contains(where: \.isRecord) { world.cover(.crashBetweenApplyAndSync) }
        for write in batch.prefix(Int.random(in: 0...batch.count, using: &world.dice)) {
            persist(write, &world)
        }
        var kept: [SimulatedEntry] = []
        for entry in storage.entries {
            let isSynced = world.now - entry.writtenAt >= .milliseconds(200)
            if isSynced || Bool.random(using: &world.dice) { kept.append(entry) }
        }
        storage.entries = kept
        replication = nil
        batch = []
    }

    // MARK: Events

    /// Performs a call with its effects, and returns the records applied; none while the process is
    /// down.
    ///
    /// A broken invariant ends the run of `world`.
    mutating func run(_ world: inout SimulatedWorld, _ call: Call) -> [AppliedInvalidation] {
        guard var exchange = replication else { return [] }
        // Moved out, so that the mutation does not copy it.
        replication = nil
        var effects: [InvalidationEffect] = []
        call(&exchange, clock.reading(at: world.now), &world.dice, &effects)
        let next = clock.instant(of: exchange.nextTick)
        replication = exchange
        let applied = effects.compactMap { perform($0, &world) }
        world.fail(checker.violation(of: self, against: world.oracle, now: world.now), index)
        planTick(max(next, world.now), &world)
        return applied
    }

    /// Schedules a tick at or shortly after `next`, unless one is scheduled before.
    private mutating func planTick(_ next: Instant, _ world: inout SimulatedWorld) {
        guard next < plannedTick else { return }
        plannedTick = next
        let late = Interval(nanoseconds: Int64.random(in: 1...1_000_000, using: &world.dice))
        world.schedule(.tick(index, run: run), at: next + late)
    }

    /// Returns true if the planned tick is due, and removes it.
    ///
    /// A later tick finds that an earlier one has done all work due.
    mutating func takeTick(at now: Instant) -> Bool {
        guard plannedTick <= now else { return false }
        plannedTick = .distantFuture
        return true
    }

    /// Performs an effect; returns the invalidation that it applies, if any.
    private mutating func perform(
        _ effect: InvalidationEffect, _ world: inout SimulatedWorld
    ) -> AppliedInvalidation? {
        switch effect {
        case .apply(let record, let count):
            // The number of a record is known once it was issued, which follows for a local one.
            let purge = world.oracle.purgeNumbers[record.id]
            if let purge { applied.insert(purge) }
            return AppliedInvalidation(marks: marks(of: record, version(count)), purge: purge)
        case .applyLocally(let purge, let count):
            return AppliedInvalidation(marks: purge.marks(at: version(count)))
        case .applyFloors(let floors, let count):
            validated.merge(floors)
            world.report.floorsApplied += 1
            world.log("node \(index) applies floors at \(version(count))")
            return AppliedInvalidation(
                marks: Purge.everythingSoft.marks(at: version(count)), isFloor: true)
        case .write(let writes):
            if !batch.isEmpty { world.fail("two batches at once", index) }
            batch = writes
            let slow = !world.isQuiescent && world.chance(oneIn: 30)
            let delay = slow ? world.milliseconds(20...500) : world.milliseconds(1...4)
            world.schedule(.sync(index, run: run), after: delay)
        case .send(let message, let ids):
            for id in ids {
                world.send(.invalidation(message), from: index, to: world.index(of: id))
                if case .push(let records) = message, let last = records.last {
                    replication?.recordPushed(upTo: last.id.number, to: id)
                }
            }
        case .reportConflict(let found): world.fail("node \(index) finds \(found)")
        case .publishWindow(let window): checker.window = window
        case .ownRecordsSynced, .receiptsSettled: break
        }
        return nil
    }

    /// Returns the marks that a record leaves when applied at a version; none for a record that is
    /// not a purge.
    private func marks(
        of record: InvalidationRecord, _ version: InvalidationVersion
    ) -> [InvalidationMark] {
        let invalidation = record.invalidation
        if case .unrecognized = invalidation.action, mutation == .unknownPurgeSkipped { return [] }
        return invalidation.purge?.marks(at: version) ?? []
    }

    // MARK: The log on disk

    /// Completes the write of the pending batch; returns false if there is none.
    mutating func persistBatch(_ world: inout SimulatedWorld) -> Bool {
        guard !batch.isEmpty else { return false }
        for write in batch { persist(write, &world) }
        batch = []
        return true
    }

    /// Checks that the disk supports the positions claimed as synced, at a start and after a batch.
    mutating func checkClaims(_ world: inout SimulatedWorld) {
        world.fail(checker.unsyncedClaim(in: self), index)
    }

    /// Applies a write to the simulated disk.
    ///
    /// Writes are applied in order; an earlier write of a batch is kept if later ones are lost.
    private mutating func persist(_ write: LogWrite, _ world: inout SimulatedWorld) {
        switch write {
        case .record(let record, let count):
            let named = storage.add(record)
            storage.marks += marks(of: record, version(count))
            if let purge = world.oracle.purgeNumbers[record.id] { storage.purges.insert(purge) }
            world.oracle.recordSynced(
                record, named, at: world.members[index].id, isOwn: record.id.stream == process,
                now: world.now)
        case .floor(let position, let count):
            storage.floors.append(position)
            let named = storage.names(behind: position)
            world.oracle.recordSynced(position, named, at: world.members[index].id, now: world.now)
            storage.add(.everythingSoft, at: version(count))
        case .localPurge(let purge, let count): storage.add(purge, at: version(count))
        case .metadata(let note):
            storage.apply(note, dropsMarks: mutation == .marksDroppedWithRecords)
        }
    }

    // MARK: The fence

    /// Returns the fence's decision on an entry validated at `validatedAt`.
    func fencedUse(_ validatedAt: Instant, at now: Instant) -> FenceDecision {
        guard let replication else { return .revalidate(staleUntil: nil) }
        let now = clock.reading(at: now)
        var window = replication.window
        let isTrusting =
            mutation == .fenceAsTimer && isTimerFenceOpen
            || mutation == .catchUpFromOneMember && isCaughtUpWithOne(replication, at: now)
        if isTrusting { window.currentUntil = .distantFuture }
        return FenceDecision.decide(
            now: now, window: window, validatedAt: validatedAt, fence: Self.fence,
            staleIfError: nil)
    }

    /// Returns true if any other voter has responded within the last fence.
    private func isCaughtUpWithOne(
        _ replication: InvalidationReplication, at reading: Instant
    ) -> Bool {
        replication.memberStatuses(at: reading).contains { line in
            line.id != replication.node && line.isVoter
                && (line.contactAge.map { $0 < Self.fence } ?? false)
        }
    }

    /// Returns true if the fence forbids the use of the entry.
    func isFenced(_ entry: SimulatedEntry, at now: Instant) -> Bool {
        if case .revalidate = fencedUse(entry.validatedAt, at: now) { true } else { false }
    }

    /// Returns true if the node counts as current, also if only by a deliberate fault.
    func isCurrent(at now: Instant) -> Bool {
        fencedUse(.zero - Self.fence, at: now) == .unrestricted
    }

    /// Returns true if the fence is open, without regard to deliberate faults.
    func hasOpenWindow(at now: Instant) -> Bool {
        replication?.window.isCurrent(at: clock.reading(at: now)) ?? false
    }

    /// Updates the state of the deliberate faults after a tick.
    ///
    /// - Returns: True if the node removes the members that it does not reach.
    mutating func updateFaults(at now: Instant) -> Bool {
        isTimerFenceOpen = hasOpenWindow(at: now)
        guard mutation == .removalWhileFenced else { return false }
        let since = fencedSince
        fencedSince = isTimerFenceOpen ? nil : since ?? now
        return since.map { !isTimerFenceOpen && now - $0 > .seconds(3) } ?? false
    }
}

extension Purge {
    /// Returns the marks that the purge leaves when applied at `version`.
    func marks(at version: InvalidationVersion) -> [InvalidationMark] {
        targets.map { InvalidationMark($0, isSoft: mode == .soft, version: version) }
    }
}

extension InvalidationReplication {
    /// Issues an invalidation and returns the id of its record; `nil` if it was refused.
    mutating func issueRecord(
        _ invalidation: Invalidation, now: Instant, using dice: inout SplitMix64,
        effects: inout [InvalidationEffect]
    ) -> RecordID? {
        let issuance = try? issue(invalidation, now: now, using: &dice, effects: &effects)
        if case .issued(let name) = issuance { return name }
        return nil
    }
}

extension LogWrite {
    fileprivate var isRecord: Bool {
        if case .record = self { true } else { false }
    }
}
