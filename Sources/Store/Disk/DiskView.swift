package import Ground
import Synchronization
package import Tiers

/// A node's log as its readers see it: what can be found, where, and what must not be served.
package final class DiskView: Sendable {
    package let identity: NodeIdentity
    package let shards: DiskShards
    package let slots: [SegmentSlot]
    let figures: DiskFigures
    private let applied = Atomic<UInt64>(0)
    private let accessMin = Atomic<UInt32>(0)
    private let broadMarks = Mutex(MarkTable())
    private let hasBroadMarks = Atomic<Bool>(false)
    private let lostRecords = Mutex<[Lost]>([])

    /// A record that a reader has taken out of the index.
    struct Lost: Sendable {
        let digest: EntryDigest
        let entry: DiskEntry
        /// The use that its segment was put to.
        let sequence: UInt64
        let why: String
    }

    init(identity: NodeIdentity, segments: Int, shards: DiskShards, figures: DiskFigures) {
        self.identity = identity
        self.shards = shards
        self.figures = figures
        slots = (0..<segments).map { _ in SegmentSlot() }
    }

    /// What a request that begins now is stamped with.
    package var stamp: Stamp {
        Stamp(epoch: identity.bootEpoch, count: applied.load(ordering: .acquiring))
    }

    /// Invalidations up to `count` are applied.
    func apply(_ count: UInt64) {
        applied.store(count, ordering: .releasing)
    }

    /// What was last asked for before this second is not served any more.
    package var leastAccess: UInt32 { accessMin.load(ordering: .relaxed) }

    func setLeastAccess(_ second: UInt32) {
        accessMin.store(second, ordering: .relaxed)
    }

    /// The marks that cover more than one entry are these, from now on.
    func setBroadMarks(_ marks: [DiskMark]) {
        broadMarks.withLock { $0 = MarkTable(marks) }
        hasBroadMarks.store(!marks.isEmpty, ordering: .releasing)
    }

    /// These marks, which cover more than one entry, have come on top.
    func addBroadMarks(_ marks: [DiskMark]) {
        guard !marks.isEmpty else { return }
        broadMarks.withLock { table in
            for mark in marks { table.apply(mark) }
        }
        hasBroadMarks.store(true, ordering: .releasing)
    }

    /// What the marks make of a record; marks of one entry have taken that out of the index.
    func effect(on record: DiskRecord) -> DiskMark.Effect? {
        guard hasBroadMarks.load(ordering: .acquiring) else { return nil }
        return broadMarks.withLock {
            $0.effect(on: record.name, key: record.key, tags: record.tags, stamp: record.stamp)
        }
    }

    /// True if there is a record that may be served, as far as the index knows.
    package func holds(_ digest: EntryDigest) -> Bool { find(digest) != nil }

    /// Takes a record out of the index that cannot be used, if it is still the entry's.
    func lose(
        _ digest: EntryDigest, _ entry: DiskEntry, _ use: SegmentSlot.Use, why: String
    ) {
        guard shards.remove(digest, ifAt: entry.location) else { return }
        figures.add(.lostRecords)
        lostRecords.withLock {
            $0.append(Lost(digest: digest, entry: entry, sequence: use.sequence, why: why))
        }
    }

    /// What readers have taken out since the last time this was asked.
    func takeLost() -> [Lost] {
        lostRecords.withLock { lost in
            defer { lost = [] }
            return lost
        }
    }
}
