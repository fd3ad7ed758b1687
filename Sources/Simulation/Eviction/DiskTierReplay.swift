internal import Ground
package import Tiers

/// A replay of the disk tier's policy: ``SegmentAllocator`` and ``ReclaimPolicy``, without data.
///
/// Keys are 0..<`keys`. A record is as long as its object; headers and footers take no bytes.
package struct DiskTierReplay: EvictionPolicy, ~Copyable {
    /// The allocator, with its segments.
    package private(set) var ledger: SegmentAllocator
    private var rule: ReclaimPolicy
    /// The keys of the records in each segment.
    private var records: [[UInt32]]
    private var entries: [Entry]
    private var entryCount = 0
    /// The version of every record: a replay has no invalidations.
    private let none = InvalidationVersion(epoch: 0, count: 0)
    /// The bytes of new objects' records.
    package private(set) var admittedBytes = 0
    /// The bytes of all records written, including re-inserted ones.
    package private(set) var writtenBytes = 0

    private struct Entry {
        var bytes: Int32 = 0
        /// The count of accesses, as ``ReclaimPolicy`` keeps it.
        var count: UInt8 = 0
        var isStored = false
    }

    /// Creates an empty disk with as many segments as fit into the capacity.
    ///
    /// - Parameters:
    ///   - capacityBytes: The capacity in bytes.
    ///   - keys: The number of keys.
    ///   - segmentBytes: The size of a segment in bytes.
    package init(capacityBytes: Int, keys: Int, segmentBytes: Int) {
        let settings = SegmentAllocator.Settings(
            segments: max(SegmentAllocator.Settings.segmentsMin, capacityBytes / segmentBytes),
            segmentBytes: segmentBytes)
        ledger = SegmentAllocator(settings: settings)
        rule = ReclaimPolicy(
            capacityBytes: UInt64(segmentBytes * (settings.segments - 1)), expectedEntries: 64,
            ageLimit: .seconds(.max))
        records = Array(repeating: [], count: settings.segments)
        entries = Array(repeating: Entry(), count: keys)
    }

    /// Returns true for a hit; admits the object otherwise, unless it exceeds a segment.
    package mutating func request(_ key: UInt32, size: Int) -> Bool {
        if touch(key) { return true }
        guard size <= ledger.settings.recordBytesMax else { return false }
        entries[Int(key)] = Entry(bytes: Int32(size), count: 0, isStored: true)
        entryCount += 1
        rule.entryCountGrew(to: entryCount)
        let queue = rule.queue(forNewEntry: hash(ofKey: key))
        while !write(key, ledger.allocate(recordBytes: size, in: queue, version: none)) {}
        admittedBytes += size
        return false
    }

    /// Records a hit in either tier; returns false if the disk does not hold the object.
    package mutating func touch(_ key: UInt32) -> Bool {
        guard entries[Int(key)].isStored else { return false }
        entries[Int(key)].count = ReclaimPolicy.incremented(entries[Int(key)].count)
        return true
    }

    /// Performs one step of writing a record; returns true once it is written.
    private mutating func write(_ key: UInt32, _ place: SegmentAllocator.Placement) -> Bool {
        switch place {
        case .write(let segment, _):
            records[Int(segment.index)].append(key)
            writtenBytes += Int(entries[Int(key)].bytes)
            return true
        case .open: return false
        case .reclaim(let segment):
            reclaim(segment)
            return false
        case .wait, .tooLarge: preconditionFailure("\(place) for one record at a time")
        }
    }

    /// Reclaims a segment: re-inserts or drops each of its records, as the policy decides.
    private mutating func reclaim(_ segment: SegmentID) {
        let queue = ledger.segments[Int(segment.index)].queue
        let keys = records[Int(segment.index)]
        records[Int(segment.index)] = []
        for key in keys {
            let entry = entries[Int(key)]
            switch rule.decision(count: entry.count, idle: .zero, in: queue) {
            case .reinsert(let count) where reinsert(key): entries[Int(key)].count = count
            case .reinsert, .drop, .expire: drop(key)
            }
        }
        ledger.segmentReclaimed(segment)
    }

    /// Writes a record of a reclaimed segment again; returns false if there is no space for it.
    private mutating func reinsert(_ key: UInt32) -> Bool {
        while true {
            let place = ledger.allocateForReinsertion(
                recordBytes: Int(entries[Int(key)].bytes), version: none)
            if place == .tooLarge { return false }
            if write(key, place) { return true }
        }
    }

    /// Drops an entry and records it in the policy.
    private mutating func drop(_ key: UInt32) {
        rule.recordDrop(hash(ofKey: key), bytes: Int(entries[Int(key)].bytes))
        entries[Int(key)].isStored = false
        entryCount -= 1
    }
}

/// A replay of a node that owns every key, with memory in front of the disk.
///
/// A fetched object is stored in both tiers, as it reaches the disk through memory. A hit in memory
/// also counts for the disk's entry; a hit on disk is promoted if it is worth more than what it
/// would evict. Unlike in a node, an object may be larger than the memory: at one per cent of a
/// small trace many bytes belong to such objects.
package struct TieredReplay: EvictionPolicy, ~Copyable {
    private var memory: MemoryTierReplay
    /// The disk tier.
    package private(set) var disk: DiskTierReplay
    /// The number of requests that memory could not serve.
    package private(set) var memoryMisses = 0

    /// Creates a node from its two tiers.
    package init(memory: MemoryTierReplay, disk: consuming DiskTierReplay) {
        self.memory = memory
        self.disk = disk
    }

    /// Returns true for a hit in either tier; admits the object otherwise.
    package mutating func request(_ key: UInt32, size: Int) -> Bool {
        if memory.recordHit(key) {
            _ = disk.touch(key)
            return true
        }
        memoryMisses += 1
        let isOnDisk = disk.request(key, size: size)
        memory.admit(key, size: size, requiresAdmission: isOnDisk)
        return isOnDisk
    }
}
