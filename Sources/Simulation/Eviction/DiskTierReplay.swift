internal import Ground
package import Tiers

/// The disk tier's own policy: ``SegmentAllocator`` and ``ReclaimPolicy``, on a disk that only
/// keeps the books.
///
/// Keys are 0..<`keys`. A record is as long as its object; headers and footers take nothing.
package struct DiskTierReplay: EvictionPolicy, ~Copyable {
    package private(set) var ledger: SegmentAllocator
    private var rule: ReclaimPolicy
    /// The keys whose records lie in each segment.
    private var records: [[UInt32]]
    private var entries: [Entry]
    private var entryCount = 0
    private let none = InvalidationVersion(epoch: 0, count: 0)
    /// Bytes of newcomers' records.
    package private(set) var admittedBytes = 0
    /// Bytes of all records, re-inserted ones too.
    package private(set) var writtenBytes = 0

    private struct Entry {
        var bytes: Int32 = 0
        var count: UInt8 = 0
        var isStored = false
    }

    /// An empty disk; of segments there are as many as the capacity has room for.
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

    package mutating func request(_ key: UInt32, size: Int) -> Bool {
        if touch(key) { return true }
        guard size <= ledger.settings.recordBytesMax else { return false }
        entries[Int(key)] = Entry(bytes: Int32(size), count: 0, isStored: true)
        entryCount += 1
        rule.entryCountGrew(to: entryCount)
        let queue = rule.queue(forNewEntry: Self.hash(key))
        while !write(key, ledger.allocate(recordBytes: size, in: queue, version: none)) {}
        admittedBytes += size
        return false
    }

    /// Notes a hit, in whichever tier; false if the disk does not have the object.
    package mutating func touch(_ key: UInt32) -> Bool {
        guard entries[Int(key)].isStored else { return false }
        entries[Int(key)].count = ReclaimPolicy.incremented(entries[Int(key)].count)
        return true
    }

    /// True once the record is written.
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

    /// False if the ledger has no place for it.
    private mutating func reinsert(_ key: UInt32) -> Bool {
        while true {
            let place = ledger.allocateForReinsertion(
                recordBytes: Int(entries[Int(key)].bytes), version: none)
            if place == .tooLarge { return false }
            if write(key, place) { return true }
        }
    }

    private mutating func drop(_ key: UInt32) {
        rule.recordDrop(Self.hash(key), bytes: Int(entries[Int(key)].bytes))
        entries[Int(key)].isStored = false
        entryCount -= 1
    }

    private static func hash(_ key: UInt32) -> UInt64 {
        var dice = SplitMix64(seed: UInt64(key))
        return dice.next()
    }
}

/// A node that owns every key: memory in front of the disk.
///
/// What is fetched is stored in both: the way to the disk leads through memory. A hit in memory is
/// a touch of the disk's entry; a hit on disk is promoted, if it is worth what would go for it.
/// Other than in a node, an object may be larger than the memory: at one per cent of a small trace
/// many of its bytes are in such objects.
package struct TieredReplay: EvictionPolicy, ~Copyable {
    private var memory: MemoryTierReplay
    package private(set) var disk: DiskTierReplay
    /// Requests that went to the disk or beyond.
    package private(set) var memoryMisses = 0

    package init(memory: MemoryTierReplay, disk: consuming DiskTierReplay) {
        self.memory = memory
        self.disk = disk
    }

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
