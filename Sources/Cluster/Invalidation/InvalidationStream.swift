import Ground

/// What this node has of one stream.
///
/// Invariants: what is synced was applied; every record above ``floor`` that was applied is on the
/// shelf; ``repair`` is there exactly while ``wanted`` is above what was applied without a gap.
struct InvalidationStream: Sendable {
    /// An effort to get what is missing.
    struct Repair: Sendable {
        /// When somebody is asked, or asked again.
        var dueAt: Instant
        /// Who was asked last.
        var lastSource: NodeID?
        /// The last answer brought something: the same one goes on.
        var isProgressing = false
    }

    let process: ProcessID
    private(set) var applied = NumberRangeSet()
    private(set) var synced = NumberRangeSet()
    private(set) var records = RecordTable()
    /// Records up to here are not held any more, or never were.
    private(set) var floor: UInt64 = 0
    /// The greatest number that somebody says to have.
    private(set) var repairTarget: UInt64 = 0
    var repair: Repair?
    /// More is synced than the members were told.
    var isConfirmDue = false
    /// When the last record came.
    private(set) var changedAt: Instant

    init(_ process: ProcessID, at now: Instant) {
        self.process = process
        changedAt = now
    }

    /// Counts as synced up to `number`, of which nothing is held.
    mutating func start(after number: UInt64, at now: Instant) {
        guard number > 0 else { return }
        raiseFloor(to: number, at: now)
        setFloor(number)
        markSynced(1...number)
    }

    /// What this node says to have: synced, without a gap.
    var syncedPosition: StreamPosition { StreamPosition(process: process, count: synced.prefix) }
    /// The greatest number that was applied, whatever is missing below it.
    var appliedPosition: StreamPosition { StreamPosition(process: process, count: applied.last) }
    /// Something that was applied is not synced yet.
    var isUnsynced: Bool { applied != synced }

    /// The first record that may be dropped.
    var droppable: RecordTable.Slot? {
        guard let first = records.first, first.number <= synced.prefix else { return nil }
        return first
    }

    func record(_ number: UInt64) -> InvalidationRecord? {
        guard let content = records.content(number) else { return nil }
        return InvalidationRecord(
            RecordID(stream: process, number: number), content: content)
    }

    /// Keeps a record that is new here.
    mutating func insert(_ record: InvalidationRecord, count: UInt64, at now: Instant) {
        applied.insert(record.id.number)
        if record.id.number > floor { records.insert(record, count: count, at: now) }
        changedAt = now
        endRepairIfDone()
    }

    mutating func markSynced(_ range: ClosedRange<UInt64>) {
        let before = synced.prefix
        synced.insert(range)
        if synced.prefix > before { isConfirmDue = true }
    }

    /// Everything up to `number` counts as applied.
    mutating func raiseFloor(to number: UInt64, at now: Instant) {
        if number > 0 { applied.insert(1...number) }
        changedAt = now
        endRepairIfDone()
    }

    /// Nothing up to `number` is held; to be called when nothing of it is on the shelf.
    mutating func setFloor(_ number: UInt64) {
        floor = max(floor, number)
    }

    mutating func removeFirst() -> (number: UInt64, content: [UInt8])? {
        guard let taken = records.removeFirst() else { return nil }
        floor = max(floor, taken.number)
        return taken
    }

    /// Somebody has everything up to `number`; what is missing is asked for at `dueAt`, unless that
    /// is under way.
    mutating func requestRepair(_ number: UInt64, at dueAt: Instant) {
        repairTarget = max(repairTarget, number)
        guard repairTarget > applied.prefix else { return }
        if let repair {
            if repair.lastSource == nil { self.repair?.dueAt = min(repair.dueAt, dueAt) }
        } else {
            repair = Repair(dueAt: dueAt)
        }
    }

    /// Nobody has more than `number`.
    mutating func limitRepair(_ number: UInt64) {
        repairTarget = number
        endRepairIfDone()
    }

    private mutating func endRepairIfDone() {
        if applied.prefix >= repairTarget { repair = nil }
    }
}
