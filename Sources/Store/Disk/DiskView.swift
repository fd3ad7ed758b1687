package import Ground
import NIOCore
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

/// A record whose head has been read and checked, and from which the body can be read.
package struct DiskRecordHandle: Sendable {
    package internal(set) var record: DiskRecord
    /// A mark wants the origin to be asked before it is served.
    package let isStale: Bool
    /// From the record's beginning to its body; a newer program's may be longer than ours.
    var metaBytes: Int
    var entry: DiskEntry
    var generation: SegmentSlot.Generation
    /// What was read of the record together with its head.
    var block: [UInt8] = []
}

extension DiskView {
    // MARK: Finding

    func find(_ digest: EntryDigest) -> (DiskEntry, SegmentSlot.Generation)? {
        // Where a segment's use has ended, its entries are elsewhere or gone.
        while let entry = shards.find(digest) {
            guard entry.lastAccess >= leastAccess else { return nil }
            if let use = slots[Int(entry.location.segment)].current { return (entry, use) }
            guard shards.find(digest)?.location != entry.location else { return nil }
        }
        return nil
    }

    /// True if the record that was read is where it was.
    package func isCurrent(_ reading: DiskRecordHandle) -> Bool {
        shards.find(reading.record.name.digest)?.location == reading.entry.location
            && isCurrent(reading.entry, reading.generation)
    }

    func isCurrent(_ entry: DiskEntry, _ use: SegmentSlot.Generation) -> Bool {
        slots[Int(entry.location.segment)].isCurrent(use)
    }

    // MARK: Checking

    /// `isKnown` if an answer can be made of what has this checksum.
    func record(
        in bytes: Span<UInt8>, _ entry: DiskEntry, _ use: SegmentSlot.Generation,
        isVerified: Bool = false
    ) throws(DiskFormatError) -> (DiskRecord, metaBytes: Int) {
        guard let extent = DiskRecord.extent(bytes, space: entry.bytes) else { throw .badMagic }
        guard extent.metaBytes <= bytes.count else { throw .truncated }
        let record = try DiskRecord(
            meta: bytes.extracting(0..<extent.metaBytes), salt: use.salt, offset: entry.offset)
        if !isVerified { try validate(record) }
        return (record, extent.metaBytes)
    }

    func verifyChecksum(
        _ chunk: Span<UInt8>, _ number: Int, _ record: DiskRecord, _ entry: DiskEntry,
        _ use: SegmentSlot.Generation
    ) throws(DiskFormatError) {
        let seed = DiskFormat.chunkSeed(salt: use.salt, offset: entry.offset, number: number)
        guard XXH64.hash(chunk, seed: seed) == record.chunkSums[number] else {
            throw .checksumMismatch
        }
    }

    /// Nil if it is dead.
    func handle(
        _ record: DiskRecord, _ metaBytes: Int, _ entry: DiskEntry, _ use: SegmentSlot.Generation
    ) -> DiskRecordHandle? {
        let effect = effect(on: record)
        guard effect != .purged else { return nil }
        return DiskRecordHandle(
            record: record, isStale: effect == .stale, metaBytes: metaBytes, entry: entry,
            generation: use)
    }

    // MARK: Cutting

    /// Where chunk `number` lies in `count` bytes that begin with a chunk.
    static func chunk(_ number: Int, of count: Int) -> Range<Int> {
        let start = number * DiskFormat.chunkBytes
        return start..<min(start + DiskFormat.chunkBytes, count)
    }

    /// Copies, laid out as memory wants them.
    static func buffers(_ body: Span<UInt8>) -> [ByteBuffer] {
        var buffers: [ByteBuffer] = []
        var position = 0
        while position + BodyLayout.chunkBytes <= body.count {
            let end = position + BodyLayout.chunkBytes
            buffers.append(
                buffer(body.extracting(position..<end), capacity: BodyLayout.chunkBytes))
            position = end
        }
        for capacity in BodyLayout.tail(body.count - position) {
            let end = min(body.count, position + capacity)
            buffers.append(buffer(body.extracting(position..<end), capacity: capacity))
            position = end
        }
        return buffers
    }

    static func buffer(_ bytes: Span<UInt8>, capacity: Int) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: capacity)
        unsafe bytes.withUnsafeBytes { raw in
            _ = unsafe buffer.writeBytes(raw)
        }
        return buffer
    }
}

extension DiskRecordHandle {
    /// True if the other one is of the same answer, be it at another place.
    package func isSameResponse(as other: DiskRecordHandle) -> Bool {
        record.isSameResponse(as: other.record)
    }
}

extension DiskEntry {
    /// Where the record begins in its segment, in bytes.
    var offset: UInt64 { UInt64(location.offsetUnits) * UInt64(Self.unitBytes) }
    /// What the record takes, in bytes.
    var bytes: Int { Int(lengthUnits) * Self.unitBytes }
}

extension DiskRecord {
    /// True if the other one is a copy of this record at another place.
    func isSameResponse(as other: DiskRecord) -> Bool {
        name == other.name && invalidationVersion == other.invalidationVersion
            && times == other.times
            && bodyBytes == other.bodyBytes && head == other.head
    }
}
