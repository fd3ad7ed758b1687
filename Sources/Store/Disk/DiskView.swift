package import Ground
import Synchronization
package import Tiers

/// Says why no answer can be made of a record; nil if one can.
package typealias RecordValidation = @Sendable (DiskRecord) -> String?

/// A node's log as its readers see it: what can be found, where, and what must not be served.
package final class DiskView: Sendable {
    package let identity: NodeIdentity
    package let shards: ShardedDiskIndex
    package let slots: [SegmentSlot]
    let counters: DiskCounters
    private let validation: RecordValidation
    /// What was invalidated, in memory as on disk.
    let marks: InvalidationIndex
    private let accessMin = Atomic<UInt32>(0)
    private let removedRecords = Mutex<[RemovedRecord]>([])

    /// A record that a reader has taken out of the index.
    struct RemovedRecord: Sendable {
        let digest: EntryDigest
        let entry: DiskEntry
        /// The use that its segment was put to.
        let sequence: UInt64
        /// Nil of one that is good, and was only not to be used any more.
        let why: String?
    }

    init(
        identity: NodeIdentity, segments: Int, shards: ShardedDiskIndex, marks: InvalidationIndex,
        figures: DiskCounters, fault: @escaping RecordValidation
    ) {
        self.validation = fault
        self.marks = marks
        self.identity = identity
        self.shards = shards
        self.counters = figures
        slots = (0..<segments).map { _ in SegmentSlot() }
    }

    /// Throws if no answer can be made of a record, whatever its checksum says.
    func validate(_ record: DiskRecord) throws(DiskFormatError) {
        guard let why = validation(record) else { return }
        counters.add(.invalidRecords)
        throw .invalidRecord(why)
    }

    /// What a request that begins now is stamped with.
    package var version: InvalidationVersion { marks.version }

    /// What was last asked for before this second is not served any more.
    package var leastAccess: UInt32 { accessMin.load(ordering: .relaxed) }

    func setLeastAccess(_ second: UInt32) {
        accessMin.store(second, ordering: .relaxed)
    }

    /// What the marks make of a record.
    func effect(on record: DiskRecord) -> InvalidationMark.Effect? {
        marks.effect(on: record.key, tags: record.tags, version: record.invalidationVersion)
    }

    /// True if there is a record that may be served, as far as the index knows.
    package func contains(_ digest: EntryDigest) -> Bool { find(digest) != nil }

    /// Takes a record out of the index that cannot be used, if it is still the entry's.
    func removeUnreadable(
        _ digest: EntryDigest, _ entry: DiskEntry, _ use: SegmentSlot.Generation, why: String
    ) {
        guard shards.remove(digest, ifAt: entry.location) else { return }
        counters.add(.lostRecords)
        removedRecords.withLock {
            $0.append(RemovedRecord(digest: digest, entry: entry, sequence: use.sequence, why: why))
        }
    }

    /// Takes an entry out of the index that must not be used any more, ahead of the writer.
    func forget(_ digest: EntryDigest) {
        // The writer may be moving it.
        while let (entry, use) = find(digest) {
            guard shards.remove(digest, ifAt: entry.location) else { continue }
            removedRecords.withLock {
                $0.append(
                    RemovedRecord(digest: digest, entry: entry, sequence: use.sequence, why: nil))
            }
            return
        }
    }

    /// What readers have taken out since the last time this was asked.
    func takeRemoved() -> [RemovedRecord] { removedRecords.withLock { $0.takeAll() } }
}
