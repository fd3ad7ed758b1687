package import Ground
import NIOCore
import Synchronization
package import Tiers

/// A check that returns why a record is not a valid response; `nil` if it is.
package typealias RecordValidation = @Sendable (DiskRecord) -> String?

/// A node's log as its readers use it: which entries exist, where, and which must not be served;
/// thread-safe.
package final class DiskView: Sendable {
    /// The identity of the node whose log it is.
    package let identity: NodeIdentity
    /// The index of the log.
    package let shards: ShardedDiskIndex
    /// The current use of each segment, by its number.
    package let slots: [SegmentSlot]
    let counters: DiskCounters
    private let validation: RecordValidation
    /// The invalidations of the node, shared by memory and disk.
    let marks: InvalidationIndex
    private let accessMin = Atomic<UInt32>(0)
    private let removedRecords = Mutex<[RemovedRecord]>([])

    /// A record that a reader has removed from the index.
    struct RemovedRecord: Sendable {
        let digest: EntryDigest
        let entry: DiskEntry
        /// The sequence number of the segment's generation.
        let sequence: UInt64
        /// The damage; `nil` for a valid record that must no longer be used.
        let why: String?
    }

    init(
        identity: NodeIdentity, segments: Int, shards: ShardedDiskIndex, marks: InvalidationIndex,
        figures: DiskCounters, validation: @escaping RecordValidation
    ) {
        self.validation = validation
        self.marks = marks
        self.identity = identity
        self.shards = shards
        self.counters = figures
        slots = (0..<segments).map { _ in SegmentSlot() }
    }

    /// Throws if a record is not a valid response, even though its checksum is correct.
    func validate(_ record: DiskRecord) throws(DiskFormatError) {
        guard let why = validation(record) else { return }
        counters.add(.invalidRecords)
        throw .invalidRecord(why)
    }

    /// The invalidation version for a request that begins now.
    package var version: InvalidationVersion { marks.version }

    /// The second (since 1970) before which a last access is too old for the entry to be served.
    package var leastAccess: UInt32 { accessMin.load(ordering: .relaxed) }

    /// Sets ``leastAccess``, from which on entries are found.
    func setLeastAccess(_ second: UInt32) {
        accessMin.store(second, ordering: .relaxed)
    }

    /// Returns the effect of the marks on a record.
    func effect(on record: DiskRecord) -> InvalidationMark.Effect? {
        marks.effect(on: record.key, tags: record.tags, version: record.invalidationVersion)
    }

    /// Returns true if the index has a record that was accessed within the age limit; marks are not
    /// applied.
    package func contains(_ digest: EntryDigest) -> Bool { find(digest) != nil }

    /// Removes an unusable record from the index, if it is still the entry's, counts it as lost,
    /// and reports it to the writer.
    func removeUnreadable(
        _ digest: EntryDigest, _ entry: DiskEntry, _ use: SegmentSlot.Generation, why: String
    ) {
        guard shards.remove(digest, ifAt: entry.location) else { return }
        counters.add(.lostRecords)
        removedRecords.withLock {
            $0.append(RemovedRecord(digest: digest, entry: entry, sequence: use.sequence, why: why))
        }
    }

    /// Removes an entry that must no longer be used from the index, ahead of the writer.
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

    /// Removes and returns the list of records that readers have removed from the index.
    func takeRemoved() -> [RemovedRecord] { removedRecords.withLock { $0.takeAll() } }
}

/// A record whose head has been read and checked, and whose body can be read.
package struct DiskRecordHandle: Sendable {
    /// The decoded head of the record.
    package internal(set) var record: DiskRecord
    /// True if a mark requires revalidation before the response is served.
    package let isStale: Bool
    /// Bytes from the record's start to its body; a newer version's head may be longer than ours.
    var metaBytes: Int
    /// The index entry of the record, which locates it.
    var entry: DiskEntry
    /// The use of the segment in which the record was found.
    var generation: SegmentSlot.Generation
    /// Bytes read together with the head, from the record's start.
    var block: [UInt8] = []
}

extension DiskView {
    // MARK: Finding

    /// Returns an entry and the current use of its segment; `nil` if there is none, or if its last
    /// access is too old.
    func find(_ digest: EntryDigest) -> (DiskEntry, SegmentSlot.Generation)? {
        // Once a segment's generation has ended, its entries are elsewhere or removed.
        while let entry = shards.find(digest) {
            guard entry.lastAccess >= leastAccess else { return nil }
            if let use = slots[Int(entry.location.segment)].current { return (entry, use) }
            guard shards.find(digest)?.location != entry.location else { return nil }
        }
        return nil
    }

    /// Returns true if the record is still in place.
    package func isCurrent(_ reading: DiskRecordHandle) -> Bool {
        shards.find(reading.record.name.digest)?.location == reading.entry.location
            && isCurrent(reading.entry, reading.generation)
    }

    /// Returns true if the segment of an entry was not reclaimed since the generation was taken.
    func isCurrent(_ entry: DiskEntry, _ use: SegmentSlot.Generation) -> Bool {
        slots[Int(entry.location.segment)].isCurrent(use)
    }

    // MARK: Checking

    /// Decodes and checks a record's head; `isVerified` skips the validation for a checksum known
    /// to be valid.
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

    /// Throws if chunk `number` of a record does not have its checksum.
    func verifyChecksum(
        _ chunk: Span<UInt8>, _ number: Int, _ record: DiskRecord, _ entry: DiskEntry,
        _ use: SegmentSlot.Generation
    ) throws(DiskFormatError) {
        let seed = DiskFormat.chunkSeed(salt: use.salt, offset: entry.offset, number: number)
        guard XXH64.hash(chunk, seed: seed) == record.chunkSums[number] else {
            throw .checksumMismatch
        }
    }

    /// Returns the handle of a record; `nil` if it is purged.
    func handle(
        _ record: DiskRecord, _ metaBytes: Int, _ entry: DiskEntry, _ use: SegmentSlot.Generation
    ) -> DiskRecordHandle? {
        let effect = effect(on: record)
        guard effect != .purged else { return nil }
        return DiskRecordHandle(
            record: record, isStale: effect == .stale, metaBytes: metaBytes, entry: entry,
            generation: use)
    }

    // MARK: Dividing

    /// Returns the range of chunk `number` in `count` bytes that begin with a chunk.
    static func chunk(_ number: Int, of count: Int) -> Range<Int> {
        let start = number * DiskFormat.chunkBytes
        return start..<min(start + DiskFormat.chunkBytes, count)
    }

    /// Copies a body into buffers, divided as in memory.
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

    /// Copies bytes into a buffer of this capacity.
    static func buffer(_ bytes: Span<UInt8>, capacity: Int) -> ByteBuffer {
        var buffer = ByteBufferAllocator().buffer(capacity: capacity)
        unsafe bytes.withUnsafeBytes { raw in
            _ = unsafe buffer.writeBytes(raw)
        }
        return buffer
    }
}

extension DiskRecordHandle {
    /// Returns true if the other record holds the same response, possibly at another location.
    package func isSameResponse(as other: DiskRecordHandle) -> Bool {
        record.isSameResponse(as: other.record)
    }
}

extension DiskEntry {
    /// The offset of the record in its segment, in bytes.
    var offset: UInt64 { UInt64(location.offsetUnits) * UInt64(Self.unitBytes) }
    /// The size of the record in bytes.
    var bytes: Int { Int(lengthUnits) * Self.unitBytes }
}

extension DiskRecord {
    /// Returns true if the other one is a copy of this record at another location.
    func isSameResponse(as other: DiskRecord) -> Bool {
        name == other.name && invalidationVersion == other.invalidationVersion
            && times == other.times
            && bodyBytes == other.bodyBytes && head == other.head
    }
}
