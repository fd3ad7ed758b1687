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

/// The streams that this node knows of, in the order of their processes; each is changed where it
/// lies, for it may be big.
struct StreamTable: Sendable {
    private(set) var streams: [InvalidationStream] = []

    var indices: Range<Int> { streams.indices }
    var count: Int { streams.count }

    subscript(place: Int) -> InvalidationStream {
        get { streams[place] }
        _modify { yield &streams[place] }
    }

    func index(of process: ProcessID) -> Int? {
        let place = streams.partitionPoint { $0.process < process }
        return place < streams.count && streams[place].process == process ? place : nil
    }

    /// The place of an empty stream of `process`, which must not be known.
    mutating func add(_ process: ProcessID, at now: Instant) -> Int {
        let place = streams.partitionPoint { $0.process < process }
        streams.insert(InvalidationStream(process, at: now), at: place)
        return place
    }

    mutating func remove(_ place: Int) {
        streams.remove(at: place)
    }
}

extension ProcessID: Comparable {
    /// By the number of 128 bits.
    package static func < (left: ProcessID, right: ProcessID) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }
}

/// Streams of dead processes that every counted member has and nobody holds: process and last
/// number alone, so that neither gossip nor a node that comes back brings them in again.
///
/// Bounded; the one that was retired first goes. As long as more of these are kept than streams may
/// be known at once, a node that comes back lacks one that is kept if it lacks any.
struct RetiredStreams: Sendable {
    private var counts = SortedTable<ProcessID, UInt64>()
    /// In the order of retirement.
    private var order: [ProcessID] = []
    let countMax: Int

    init(countMax: Int) {
        self.countMax = countMax
    }

    /// The last number; nil if it was not retired.
    subscript(process: ProcessID) -> UInt64? { counts[process] }

    var positions: [StreamPosition] {
        zip(counts.keys, counts.values).map { StreamPosition(process: $0, count: $1) }
    }

    /// Adds one; gives the one that had to go for it.
    mutating func add(_ position: StreamPosition) -> ProcessID? {
        if counts[position.process] == nil { order.append(position.process) }
        counts[position.process] = max(position.count, counts[position.process] ?? 0)
        guard counts.count > countMax else { return nil }
        let gone = order.removeFirst()
        counts[gone] = nil
        return gone
    }

    /// It goes on after all; its last number if it was retired.
    mutating func revive(_ process: ProcessID) -> UInt64? {
        guard let count = counts[process] else { return nil }
        counts[process] = nil
        order.removeAll { $0 == process }
        return count
    }
}

/// A set of numbers from 1, kept as its runs: whole streams cost one run, and each gap one more.
struct NumberRangeSet: Hashable, Sendable {
    /// Ascending; between two there is at least one number that is missing.
    private(set) var runs: [ClosedRange<UInt64>] = []

    /// The last number before the first gap; 0 if 1 is missing.
    var prefix: UInt64 {
        guard let first = runs.first, first.lowerBound == 1 else { return 0 }
        return first.upperBound
    }

    /// The greatest; 0 if there is none.
    var last: UInt64 { runs.last?.upperBound ?? 0 }

    func contains(_ number: UInt64) -> Bool {
        let place = runs.partitionPoint { $0.upperBound < number }
        return place < runs.count && runs[place].contains(number)
    }

    mutating func insert(_ number: UInt64) {
        insert(number...number)
    }

    /// Adds all of `range`, which begins at 1 or later.
    mutating func insert(_ range: ClosedRange<UInt64>) {
        precondition(range.lowerBound > 0, "number 0")
        // Those that touch the range, or overlap it, become one with it.
        let first = runs.partitionPoint { $0.upperBound < range.lowerBound - 1 }
        let end = runs.partitionPoint { $0.lowerBound - 1 <= range.upperBound }
        guard first < end else {
            runs.insert(range, at: first)
            return
        }
        let lower = min(runs[first].lowerBound, range.lowerBound)
        let upper = max(runs[end - 1].upperBound, range.upperBound)
        runs[first] = lower...upper
        runs.removeSubrange((first + 1)..<end)
    }

    /// The first `countMax` ranges of numbers up to `limit` that are missing.
    func gaps(upTo limit: UInt64, countMax: Int) -> [ClosedRange<UInt64>] {
        var gaps: [ClosedRange<UInt64>] = []
        var next: UInt64 = 1
        for run in runs {
            guard gaps.count < countMax, next <= limit else { return gaps }
            if next < run.lowerBound { gaps.append(next...min(run.lowerBound - 1, limit)) }
            guard run.upperBound < .max else { return gaps }
            next = run.upperBound + 1
        }
        if gaps.count < countMax, next <= limit { gaps.append(next...limit) }
        return gaps
    }
}
