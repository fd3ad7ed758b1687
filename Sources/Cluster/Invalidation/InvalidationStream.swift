import Ground

/// The part of one stream that this node has.
///
/// Invariants: What is synced was applied. Every applied record above ``floor`` is in ``records``.
/// ``repair`` is set only while ``repairTarget`` is above what was applied without a gap.
struct InvalidationStream: Sendable {
    /// The state of requests for missing records.
    struct Repair: Sendable {
        /// When the next request is due.
        var dueAt: Instant
        /// The member that was sent the last request.
        var lastSource: NodeID?
        /// True if the last response brought records, so that the same member is sent the next
        /// request.
        var isProgressing = false
    }

    let process: ProcessID
    private(set) var applied = NumberRangeSet()
    private(set) var synced = NumberRangeSet()
    private(set) var records = RecordTable()
    /// The number up to which records are not held.
    private(set) var floor: UInt64 = 0
    /// The greatest number that some member reports to have.
    private(set) var repairTarget: UInt64 = 0
    var repair: Repair?
    /// True if more is synced than was confirmed to all members.
    var isConfirmDue = false
    /// When the stream last changed.
    private(set) var changedAt: Instant

    init(_ process: ProcessID, at now: Instant) {
        self.process = process
        changedAt = now
    }

    /// Treats everything up to `number` as synced, with no records held.
    mutating func start(after number: UInt64, at now: Instant) {
        guard number > 0 else { return }
        raiseFloor(to: number, at: now)
        setFloor(number)
        markSynced(1...number)
    }

    /// The position synced here without a gap, which this node reports.
    var syncedPosition: StreamPosition { StreamPosition(process: process, count: synced.prefix) }
    /// The position applied here without a gap.
    var contiguousPosition: StreamPosition {
        StreamPosition(process: process, count: applied.prefix)
    }
    /// The greatest number applied here, with or without gaps.
    var appliedPosition: StreamPosition { StreamPosition(process: process, count: applied.last) }
    /// True if something that was applied is not synced yet.
    var isUnsynced: Bool { applied != synced }

    /// Returns true if the stream is synced, and its process is none of `members`.
    func isRetirable(_ members: Set<ProcessID>) -> Bool {
        !isUnsynced && !members.contains(process)
    }

    /// The first record if it may be dropped: it and all before it are synced.
    var droppable: RecordTable.Slot? {
        guard let first = records.first, first.number <= synced.prefix else { return nil }
        return first
    }

    /// Returns the record; `nil` if it is not held, even if it was applied.
    func record(_ number: UInt64) -> InvalidationRecord? {
        guard let content = records.content(number) else { return nil }
        return InvalidationRecord(
            RecordID(stream: process, number: number), content: content)
    }

    /// Counts a record that is new here as applied, and keeps it unless it is at or below the
    /// floor.
    mutating func insert(_ record: InvalidationRecord, at now: Instant) {
        applied.insert(record.id.number)
        if record.id.number > floor { records.insert(record, at: now) }
        changedAt = now
        endRepairIfDone()
    }

    /// Records that these numbers are synced; a confirmation is due if the synced position rises.
    mutating func markSynced(_ range: ClosedRange<UInt64>) {
        let before = synced.prefix
        synced.insert(range)
        if synced.prefix > before { isConfirmDue = true }
    }

    /// Treats everything up to `number` as applied; held records and ``floor`` stay.
    mutating func raiseFloor(to number: UInt64, at now: Instant) {
        if number > 0 { applied.insert(1...number) }
        changedAt = now
        endRepairIfDone()
    }

    /// Sets the number up to which no records are held; these must be removed before.
    mutating func setFloor(_ number: UInt64) {
        floor = max(floor, number)
    }

    /// Removes the first held record and raises the floor to it; `nil` if none is held.
    mutating func removeFirst() -> (number: UInt64, content: [UInt8])? {
        guard let taken = records.removeFirst() else { return nil }
        floor = max(floor, taken.number)
        return taken
    }

    /// Records that some member has everything up to `number`; missing records are requested at
    /// `dueAt` unless requests are under way.
    mutating func requestRepair(_ number: UInt64, at dueAt: Instant) {
        repairTarget = max(repairTarget, number)
        guard repairTarget > applied.prefix else { return }
        if let repair {
            if repair.lastSource == nil { self.repair?.dueAt = min(repair.dueAt, dueAt) }
        } else {
            repair = Repair(dueAt: dueAt)
        }
    }

    /// Records that no member has more than `number`; nothing beyond it is requested any more.
    mutating func limitRepair(_ number: UInt64) {
        repairTarget = number
        endRepairIfDone()
    }

    /// Stops the requests once nothing is missing up to ``repairTarget``.
    private mutating func endRepairIfDone() {
        if applied.prefix >= repairTarget { repair = nil }
    }
}

extension ProcessID: Comparable {
    /// Orders process ids as 128-bit numbers.
    package static func < (left: ProcessID, right: ProcessID) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }
}

/// A set of numbers from 1, stored as ranges: one for a stream without gaps, one more for each gap.
struct NumberRangeSet: Hashable, Sendable {
    /// The ranges, ascending, with at least one missing number between them.
    private(set) var ranges: [ClosedRange<UInt64>] = []

    /// The last number before the first gap; 0 if 1 is missing.
    var prefix: UInt64 {
        guard let first = ranges.first, first.lowerBound == 1 else { return 0 }
        return first.upperBound
    }

    /// The greatest number; 0 if the set is empty.
    var last: UInt64 { ranges.last?.upperBound ?? 0 }

    func contains(_ number: UInt64) -> Bool {
        let place = ranges.partitionPoint { $0.upperBound < number }
        return place < ranges.count && ranges[place].contains(number)
    }

    mutating func insert(_ number: UInt64) {
        insert(number...number)
    }

    /// Adds all of `range`, which must begin at 1 or later.
    mutating func insert(_ range: ClosedRange<UInt64>) {
        precondition(range.lowerBound > 0, "number 0")
        // Ranges that touch or overlap the new one are merged with it.
        let first = ranges.partitionPoint { $0.upperBound < range.lowerBound - 1 }
        let end = ranges.partitionPoint { $0.lowerBound - 1 <= range.upperBound }
        guard first < end else {
            ranges.insert(range, at: first)
            return
        }
        let lower = min(ranges[first].lowerBound, range.lowerBound)
        let upper = max(ranges[end - 1].upperBound, range.upperBound)
        ranges[first] = lower...upper
        ranges.removeSubrange((first + 1)..<end)
    }

    /// Returns the first `countMax` missing ranges of numbers up to `limit`.
    func gaps(upTo limit: UInt64, countMax: Int) -> [ClosedRange<UInt64>] {
        var gaps: [ClosedRange<UInt64>] = []
        var next: UInt64 = 1
        for range in ranges {
            guard gaps.count < countMax, next <= limit else { return gaps }
            if next < range.lowerBound { gaps.append(next...min(range.lowerBound - 1, limit)) }
            guard range.upperBound < .max else { return gaps }
            next = range.upperBound + 1
        }
        if gaps.count < countMax, next <= limit { gaps.append(next...limit) }
        return gaps
    }
}
