import Ground
import Tiers

/// A model of the log that follows a ``SegmentAllocator`` and records violations.
struct SegmentLog {
    /// Which entries a reclaim keeps.
    enum Keeping: CaseIterable, Sendable {
        case nothing, everything
        /// Half of them; writes sometimes fail, which closes a segment early.
        case half
    }

    struct Record {
        let entry: Int
        let bytes: Int
        let version: InvalidationVersion
        let end: Int
    }

    private(set) var allocator: SegmentAllocator
    private let settings: SegmentAllocator.Settings
    private let keeping: Keeping
    private var dice: SplitMix64
    private var records: [[Record]]
    /// The segment of each entry's record.
    private(set) var home: [Int: SegmentID] = [:]
    private var isOpen: [Bool]
    private var lastSequence: UInt64 = 0
    private var nextEntry = 0
    private(set) var admittedBytes = 0
    private(set) var writtenBytes = 0
    private(set) var reclaims = 0
    private(set) var reclaimsPerPlaceMax = 0
    private(set) var wrongs: [String] = []

    init(_ settings: SegmentAllocator.Settings, keeping: Keeping, seed: UInt64) {
        self.settings = settings
        self.keeping = keeping
        allocator = SegmentAllocator(settings: settings)
        dice = SplitMix64(seed: seed)
        records = Array(repeating: [], count: settings.segments)
        isOpen = Array(repeating: false, count: settings.segments)
    }

    /// Appends a new record of `bytes`; does nothing after a violation.
    mutating func admit(_ bytes: Int, in queue: SegmentQueue) {
        guard wrongs.isEmpty else { return }
        let entry = nextEntry
        nextEntry += 1
        let before = reclaims
        asking: while true {
            let version = InvalidationVersion(epoch: dice.next() % 3, count: dice.next() % 1000)
            switch allocator.allocate(recordBytes: bytes, in: queue, version: version) {
            case .write(let segment, let offset):
                write(entry, bytes, version, segment, offset)
                admittedBytes += bytes + settings.footerBytesPerRecord
                break asking
            case .open(let segment, let sequence, let closing):
                open(segment, sequence, closing)
                expect(allocator.freeCount >= 1, "a new record took the last free segment")
            case .reclaim(let segment): reclaim(segment, asking: queue)
            case .wait(let segment):
                wrongs.append("waits for \(segment.index) which is not being reclaimed")
                return
            case .tooLarge:
                expect(bytes > settings.recordBytesMax, "\(bytes) bytes do not fit")
                break asking
            }
            guard reclaims - before < 1000 else {
                wrongs.append("no place for \(bytes) bytes")
                return
            }
        }
        reclaimsPerPlaceMax = max(reclaimsPerPlaceMax, reclaims - before)
    }

    /// Removes or replaces a random entry.
    mutating func forgetOne() {
        guard let entry = home.keys.min(by: { $0 ^ 0x55 < $1 ^ 0x55 }), let segment = home[entry],
            let record = records[Int(segment.index)].last(where: { $0.entry == entry })
        else { return }
        home[entry] = nil
        allocator.entryRemoved(segment, recordBytes: record.bytes)
    }

    /// Closes the open segment of a queue early.
    mutating func close(_ queue: SegmentQueue) {
        guard let segment = allocator.openSegment(of: queue) else { return }
        allocator.segmentClosed(segment)
        isOpen[Int(segment.index)] = false
    }

    /// Restarts the allocator from what is on disk.
    mutating func restart() {
        var recovered: [(id: SegmentID, segment: Segment)] = []
        for (index, old) in allocator.segments.enumerated() where old.state != .free {
            let id = SegmentID(index: UInt32(index))
            let live = records[index].filter { home[$0.entry] == id }
            recovered.append(
                (
                    id,
                    Segment(
                        closedIn: old.queue, sequence: old.sequence, usedBytes: old.usedBytes,
                        recordCount: old.recordCount,
                        liveBytes: live.reduce(0) { $0 + $1.bytes + settings.footerBytesPerRecord },
                        leastVersion: old.leastVersion)
                ))
            isOpen[index] = false
        }
        allocator = SegmentAllocator(settings: settings, recovered: recovered)
    }

    /// Compares the allocator's sums with the records.
    mutating func audit() {
        let free = allocator.segments.count { $0.state == .free }
        expect(free == allocator.freeCount, "\(free) segments are free, not \(allocator.freeCount)")
        let inUse = SegmentQueue.allCases.reduce(0) { $0 + allocator.segmentsInUse(by: $1) }
        expect(inUse + free == settings.segments, "\(inUse) in use and \(free) free")
        for (index, segment) in allocator.segments.enumerated() {
            let id = SegmentID(index: UInt32(index))
            let live = records[index].filter { home[$0.entry] == id }
                .reduce(0) { $0 + $1.bytes + settings.footerBytesPerRecord }
            expect(segment.liveBytes == live, "segment \(index) has \(live) live bytes")
            expect(
                segment.leastVersion == records[index].map(\.version).min(),
                "segment \(index) has another least version")
            expect(segment.recordCount == records[index].count, "segment \(index) miscounts")
            expect((segment.state == .open) == isOpen[index], "segment \(index): \(segment.state)")
        }
        let least = records.joined().map(\.version).min()
        expect(allocator.leastVersion == least, "the log's least version is wrong")
    }

    private mutating func write(
        _ entry: Int, _ bytes: Int, _ version: InvalidationVersion, _ segment: SegmentID,
        _ offset: Int
    ) {
        let index = Int(segment.index)
        let start = records[index].last?.end ?? settings.headerBytes
        let footer =
            settings.footerBytes
            + (records[index].count + 1) * settings.footerBytesPerRecord
        expect(isOpen[index], "segment \(index) is not open")
        expect(
            offset == start, "offset \(offset) in segment \(index), which is written to \(start)")
        expect(offset + bytes + footer <= settings.segmentBytes, "segment \(index) overflows")
        records[index].append(
            Record(entry: entry, bytes: bytes, version: version, end: offset + bytes))
        home[entry] = segment
        writtenBytes += bytes + settings.footerBytesPerRecord
    }

    private mutating func open(_ segment: SegmentID, _ sequence: UInt64, _ closing: SegmentID?) {
        if let closing { isOpen[Int(closing.index)] = false }
        let index = Int(segment.index)
        expect(!isOpen[index] && records[index].isEmpty, "segment \(index) is not free")
        expect(sequence > lastSequence, "sequence \(sequence) after \(lastSequence)")
        lastSequence = sequence
        isOpen[index] = true
        expect(isOpen.count { $0 } <= 2, "more than two segments are open")
        expect(
            allocator.segments.count { $0.state != .free } <= settings.segments, "over the cap")
    }

    private mutating func reclaim(_ segment: SegmentID, asking queue: SegmentQueue) {
        reclaims += 1
        let index = Int(segment.index)
        expect(allocator.segments[index].state == .reclaiming, "segment \(index) is not reclaimed")
        for record in records[index] where home[record.entry] == segment {
            if keeping == .half, dice.next() % 32 == 0 { close(.main) }
            let keeps = keeping == .everything || keeping == .half && dice.next() % 2 == 0
            guard keeps, writeAgain(record) else {
                home[record.entry] = nil
                continue
            }
        }
        expect(
            allocator.allocate(
                recordBytes: settings.recordBytesMax, in: .main,
                version: InvalidationVersion(epoch: 0, count: 0))
                == .wait(until: segment), "a newcomer came before the re-inserted")
        records[index] = []
        allocator.segmentReclaimed(segment)
    }

    private mutating func writeAgain(_ record: Record) -> Bool {
        while true {
            switch allocator.allocateForReinsertion(
                recordBytes: record.bytes, version: record.version)
            {
            case .write(let segment, let offset):
                write(record.entry, record.bytes, record.version, segment, offset)
                return true
            case .open(let segment, let sequence, let closing): open(segment, sequence, closing)
            case .tooLarge: return false
            case .reclaim, .wait:
                wrongs.append("a re-inserted record waits")
                return false
            }
        }
    }

    private mutating func expect(_ holds: Bool, _ otherwise: String) {
        if !holds { wrongs.append(otherwise) }
    }
}
