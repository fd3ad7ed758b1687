import Ground
import Testing
import Tiers

private let version = InvalidationVersion(epoch: 1, count: 1)

private func id(_ index: UInt32) -> SegmentID { SegmentID(index: index) }

/// A log of segments of 1,000 bytes without headers and footers.
private func emptyLog(_ segments: Int = 4) -> SegmentAllocator {
    SegmentAllocator(settings: .init(segments: segments, segmentBytes: 1000))
}

extension SegmentAllocator {
    fileprivate mutating func place(_ bytes: Int, in queue: SegmentQueue = .small) -> Placement {
        allocate(recordBytes: bytes, in: queue, version: version)
    }

    /// Fills segments of the small queue with a record each until only one is free.
    fileprivate mutating func fill() {
        while freeCount > 1 {
            _ = place(1000)
            _ = place(1000)
        }
    }
}

/// The life of the log as stories.
@Suite struct SegmentAllocatorTests {
    @Test("The first record opens a segment and is placed after its header")
    func firstRecord() {
        var allocator = SegmentAllocator(
            settings: .init(
                segments: 4, segmentBytes: 1000, headerBytes: 100, footerBytes: 50,
                footerBytesPerRecord: 10))
        #expect(allocator.place(200) == .open(id(0), sequence: 1, closing: nil))
        #expect(allocator.place(200) == .write(id(0), offset: 100))
        #expect(allocator.place(300) == .write(id(0), offset: 300))
        // 100 + 200 + 300 + 50 + 3 × 10 leave 320.
        #expect(allocator.place(321) == .open(id(1), sequence: 2, closing: id(0)))
        #expect(allocator.place(321) == .write(id(1), offset: 100))
    }

    @Test("A record larger than a segment is refused; one that just fits is placed")
    func tooLarge() {
        var allocator = emptyLog()
        #expect(allocator.place(1001) == .tooLarge)
        #expect(allocator.place(1000) == .open(id(0), sequence: 1, closing: nil))
        #expect(allocator.place(1000) == .write(id(0), offset: 0))
    }

    @Test("Each of the two queues has an open segment of its own")
    func twoQueues() {
        var allocator = emptyLog()
        #expect(allocator.place(10) == .open(id(0), sequence: 1, closing: nil))
        #expect(allocator.place(10, in: .main) == .open(id(1), sequence: 2, closing: nil))
        #expect(allocator.place(10) == .write(id(0), offset: 0))
        #expect(allocator.place(20, in: .main) == .write(id(1), offset: 0))
        #expect(allocator.openSegment(of: .main) == id(1))
    }

    @Test("With one segment free the oldest is reclaimed, and re-insertions may use the free one")
    func reclaim() {
        var allocator = emptyLog()
        allocator.fill()
        #expect(allocator.place(5) == .reclaim(id(0)))
        #expect(
            allocator.allocateForReinsertion(recordBytes: 1000, version: version)
                == .open(id(3), sequence: 4, closing: nil))
        #expect(allocator.freeCount == 0)
        #expect(
            allocator.allocateForReinsertion(recordBytes: 1000, version: version)
                == .write(id(3), offset: 0))
        // No more bytes than the segment had.
        #expect(allocator.allocateForReinsertion(recordBytes: 1, version: version) == .tooLarge)
        allocator.segmentReclaimed(id(0))
        #expect(allocator.freeCount == 1)
        #expect(allocator.place(5) == .reclaim(id(1)))
        allocator.segmentReclaimed(id(1))
        #expect(allocator.place(5) == .open(id(0), sequence: 5, closing: id(2)))
    }

    @Test("During a reclaim, new records may fill the small queue's segment, then wait")
    func newcomersDuringReclaim() {
        var allocator = emptyLog()
        #expect(allocator.place(500, in: .main) == .open(id(0), sequence: 1, closing: nil))
        #expect(allocator.place(500, in: .main) == .write(id(0), offset: 0))
        while allocator.freeCount > 1 {
            _ = allocator.place(600)
            _ = allocator.place(600)
        }
        #expect(allocator.place(600) == .reclaim(id(1)))
        #expect(allocator.place(300) == .write(id(2), offset: 600))
        #expect(allocator.place(300) == .wait(until: id(1)))
        #expect(allocator.place(1, in: .main) == .wait(until: id(1)))
        allocator.segmentReclaimed(id(1))
        #expect(allocator.place(1, in: .main) == .write(id(0), offset: 500))
    }

    @Test("A closed segment without live entries is reclaimed before older ones")
    func deadFirst() {
        var allocator = emptyLog(5)
        allocator.fill()
        allocator.entryRemoved(id(2), recordBytes: 1000)
        #expect(allocator.place(5) == .reclaim(id(2)))
    }

    @Test("Live bytes never fall below zero, even with a forged footer")
    func moreGone() {
        var allocator = emptyLog(5)
        allocator.fill()
        for _ in 0..<3 { allocator.entryRemoved(id(2), recordBytes: 900) }
        #expect(allocator.segments[2].liveBytes == 0)
        #expect(allocator.place(5) == .reclaim(id(2)))
    }

    @Test("The small queue is reclaimed while it exceeds its share, then the main queue")
    func shares() {
        var allocator = emptyLog(17)
        #expect(allocator.settings.smallSegments == 2)
        while allocator.segmentsInUse(by: .small) < 3 { _ = allocator.place(1000) }
        while allocator.freeCount > 1 { _ = allocator.place(1000, in: .main) }
        _ = allocator.place(1000, in: .main)
        #expect(allocator.place(1000, in: .main) == .reclaim(id(0)))
        allocator.segmentReclaimed(id(0))
        #expect(allocator.segmentsInUse(by: .small) == 2)
        _ = allocator.place(1000, in: .main)
        _ = allocator.place(1000, in: .main)
        #expect(allocator.place(1000, in: .main) == .reclaim(id(3)))
    }

    @Test("After a crash during a reclaim no segment is free: the first is dropped whole")
    func noneFree() {
        let full = (0..<4 as Range<UInt32>).map { index in
            (
                id: id(index),
                segment: Segment(
                    closedIn: .small, sequence: 40 - UInt64(index), usedBytes: 900, recordCount: 9,
                    liveBytes: 900,
                    leastVersion: InvalidationVersion(epoch: 2, count: UInt64(index)))
            )
        }
        var allocator = SegmentAllocator(
            settings: .init(segments: 4, segmentBytes: 1000), recovered: full)
        #expect(allocator.leastVersion == InvalidationVersion(epoch: 2, count: 0))
        #expect(allocator.place(100) == .reclaim(id(3)))
        #expect(allocator.allocateForReinsertion(recordBytes: 100, version: version) == .tooLarge)
        allocator.segmentReclaimed(id(3))
        #expect(allocator.place(100) == .reclaim(id(2)))
        allocator.segmentReclaimed(id(2))
        #expect(allocator.place(100) == .open(id(2), sequence: 41, closing: nil))
    }

    @Test("A segment closed early takes no more records; the next opens another")
    func closedEarly() {
        var allocator = emptyLog()
        _ = allocator.place(10)
        _ = allocator.place(10)
        allocator.segmentClosed(id(0))
        #expect(allocator.place(10) == .open(id(1), sequence: 2, closing: nil))
        #expect(allocator.segments[0].state == .closed)
    }

    @Test("When a write to the last free segment fails, the rest of the reclaim is dropped")
    func closedDuringReclaim() {
        var allocator = emptyLog()
        allocator.fill()
        #expect(allocator.place(1) == .reclaim(id(0)))
        _ = allocator.allocateForReinsertion(recordBytes: 100, version: version)
        #expect(
            allocator.allocateForReinsertion(recordBytes: 100, version: version)
                == .write(id(3), offset: 0))
        allocator.segmentClosed(id(3))
        #expect(allocator.allocateForReinsertion(recordBytes: 100, version: version) == .tooLarge)
        allocator.segmentReclaimed(id(0))
        #expect(allocator.place(1) == .reclaim(id(1)))
    }

    @Test("Versions are ordered by epoch first")
    func versions() {
        #expect(InvalidationVersion(epoch: 1, count: 9) < InvalidationVersion(epoch: 2, count: 0))
        #expect(InvalidationVersion(epoch: 1, count: 8) < InvalidationVersion(epoch: 1, count: 9))
        var allocator = emptyLog()
        for minor in [5, 3, 4] as [UInt64] {
            let version = InvalidationVersion(epoch: 7, count: minor)
            while case .open = allocator.allocate(recordBytes: 10, in: .small, version: version) {}
        }
        #expect(allocator.segments[0].leastVersion == InvalidationVersion(epoch: 7, count: 3))
    }
}
