import Ground
import Testing
import Tiers

private let stamp = InvalidationVersion(epoch: 1, count: 1)

private func id(_ index: UInt32) -> SegmentID { SegmentID(index: index) }

/// Segments of 1,000 bytes that hold records and nothing else.
private func emptyLog(_ segments: Int = 4) -> SegmentAllocator {
    SegmentAllocator(settings: .init(segments: segments, segmentBytes: 1000))
}

extension SegmentAllocator {
    fileprivate mutating func place(_ bytes: Int, in queue: SegmentQueue = .small) -> Placement {
        allocate(recordBytes: bytes, in: queue, version: stamp)
    }

    /// Fills small segments with one record each until none but the last is free.
    fileprivate mutating func fill() {
        while freeCount > 1 {
            _ = place(1000)
            _ = place(1000)
        }
    }
}

/// The life of the log, told as stories.
@Suite struct SegmentAllocatorTests {
    @Test("The first record opens a segment and lies behind its header")
    func firstRecord() {
        var ledger = SegmentAllocator(
            settings: .init(
                segments: 4, segmentBytes: 1000, headerBytes: 100, footerBytes: 50,
                footerBytesPerRecord: 10))
        #expect(ledger.place(200) == .open(id(0), sequence: 1, closing: nil))
        #expect(ledger.place(200) == .write(id(0), offset: 100))
        #expect(ledger.place(300) == .write(id(0), offset: 300))
        // 100 + 200 + 300 + 50 + 3 × 10 leave 320.
        #expect(ledger.place(321) == .open(id(1), sequence: 2, closing: id(0)))
        #expect(ledger.place(321) == .write(id(1), offset: 100))
    }

    @Test("A record that no segment can hold is not kept, and one that just fits is")
    func tooLarge() {
        var ledger = emptyLog()
        #expect(ledger.place(1001) == .tooLarge)
        #expect(ledger.place(1000) == .open(id(0), sequence: 1, closing: nil))
        #expect(ledger.place(1000) == .write(id(0), offset: 0))
    }

    @Test("The two queues have a segment each")
    func twoQueues() {
        var ledger = emptyLog()
        #expect(ledger.place(10) == .open(id(0), sequence: 1, closing: nil))
        #expect(ledger.place(10, in: .main) == .open(id(1), sequence: 2, closing: nil))
        #expect(ledger.place(10) == .write(id(0), offset: 0))
        #expect(ledger.place(20, in: .main) == .write(id(1), offset: 0))
        #expect(ledger.openSegment(of: .main) == id(1))
    }

    @Test("With one segment free the oldest is reclaimed, and what is kept may use the free one")
    func reclaim() {
        var ledger = emptyLog()
        ledger.fill()
        #expect(ledger.place(5) == .reclaim(id(0)))
        #expect(
            ledger.allocateForReinsertion(recordBytes: 1000, version: stamp)
                == .open(id(3), sequence: 4, closing: nil))
        #expect(ledger.freeCount == 0)
        #expect(
            ledger.allocateForReinsertion(recordBytes: 1000, version: stamp)
                == .write(id(3), offset: 0))
        // No more than came out of the segment.
        #expect(ledger.allocateForReinsertion(recordBytes: 1, version: stamp) == .tooLarge)
        ledger.segmentReclaimed(id(0))
        #expect(ledger.freeCount == 1)
        #expect(ledger.place(5) == .reclaim(id(1)))
        ledger.segmentReclaimed(id(1))
        #expect(ledger.place(5) == .open(id(0), sequence: 5, closing: id(2)))
    }

    @Test("While a segment is reclaimed newcomers may fill the small queue's, and wait otherwise")
    func newcomersDuringReclaim() {
        var ledger = emptyLog()
        #expect(ledger.place(500, in: .main) == .open(id(0), sequence: 1, closing: nil))
        #expect(ledger.place(500, in: .main) == .write(id(0), offset: 0))
        while ledger.freeCount > 1 {
            _ = ledger.place(600)
            _ = ledger.place(600)
        }
        #expect(ledger.place(600) == .reclaim(id(1)))
        #expect(ledger.place(300) == .write(id(2), offset: 600))
        #expect(ledger.place(300) == .wait(until: id(1)))
        #expect(ledger.place(1, in: .main) == .wait(until: id(1)))
        ledger.segmentReclaimed(id(1))
        #expect(ledger.place(1, in: .main) == .write(id(0), offset: 500))
    }

    @Test("A closed segment whose entries are all gone is reclaimed before older ones")
    func deadFirst() {
        var ledger = emptyLog(5)
        ledger.fill()
        ledger.entryRemoved(id(2), recordBytes: 1000)
        #expect(ledger.place(5) == .reclaim(id(2)))
    }

    @Test("More that goes than was there leaves nothing, as a footer that was forged may have it")
    func moreGone() {
        var ledger = emptyLog(5)
        ledger.fill()
        for _ in 0..<3 { ledger.entryRemoved(id(2), recordBytes: 900) }
        #expect(ledger.segments[2].liveBytes == 0)
        #expect(ledger.place(5) == .reclaim(id(2)))
    }

    @Test("The small queue is reclaimed while it has more than its share, then the main queue")
    func shares() {
        var ledger = emptyLog(17)
        #expect(ledger.settings.smallSegments == 2)
        while ledger.segmentsInUse(by: .small) < 3 { _ = ledger.place(1000) }
        while ledger.freeCount > 1 { _ = ledger.place(1000, in: .main) }
        _ = ledger.place(1000, in: .main)
        #expect(ledger.place(1000, in: .main) == .reclaim(id(0)))
        ledger.segmentReclaimed(id(0))
        #expect(ledger.segmentsInUse(by: .small) == 2)
        _ = ledger.place(1000, in: .main)
        _ = ledger.place(1000, in: .main)
        #expect(ledger.place(1000, in: .main) == .reclaim(id(3)))
    }

    @Test("After a crash in the midst of a reclaim no segment is free: the first is dropped whole")
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
        var ledger = SegmentAllocator(
            settings: .init(segments: 4, segmentBytes: 1000), recovered: full)
        #expect(ledger.leastVersion == InvalidationVersion(epoch: 2, count: 0))
        #expect(ledger.place(100) == .reclaim(id(3)))
        #expect(ledger.allocateForReinsertion(recordBytes: 100, version: stamp) == .tooLarge)
        ledger.segmentReclaimed(id(3))
        #expect(ledger.place(100) == .reclaim(id(2)))
        ledger.segmentReclaimed(id(2))
        #expect(ledger.place(100) == .open(id(2), sequence: 41, closing: nil))
    }

    @Test("A segment closed early takes no more; the next record opens another")
    func closedEarly() {
        var ledger = emptyLog()
        _ = ledger.place(10)
        _ = ledger.place(10)
        ledger.segmentClosed(id(0))
        #expect(ledger.place(10) == .open(id(1), sequence: 2, closing: nil))
        #expect(ledger.segments[0].state == .closed)
    }

    @Test("When writing fails in the last free segment, the rest of the reclaim is dropped")
    func closedDuringReclaim() {
        var ledger = emptyLog()
        ledger.fill()
        #expect(ledger.place(1) == .reclaim(id(0)))
        _ = ledger.allocateForReinsertion(recordBytes: 100, version: stamp)
        #expect(
            ledger.allocateForReinsertion(recordBytes: 100, version: stamp)
                == .write(id(3), offset: 0))
        ledger.segmentClosed(id(3))
        #expect(ledger.allocateForReinsertion(recordBytes: 100, version: stamp) == .tooLarge)
        ledger.segmentReclaimed(id(0))
        #expect(ledger.place(1) == .reclaim(id(1)))
    }

    @Test("Stamps are ordered by their epoch first")
    func stamps() {
        #expect(InvalidationVersion(epoch: 1, count: 9) < InvalidationVersion(epoch: 2, count: 0))
        #expect(InvalidationVersion(epoch: 1, count: 8) < InvalidationVersion(epoch: 1, count: 9))
        var ledger = emptyLog()
        for minor in [5, 3, 4] as [UInt64] {
            let version = InvalidationVersion(epoch: 7, count: minor)
            while case .open = ledger.allocate(recordBytes: 10, in: .small, version: version) {}
        }
        #expect(ledger.segments[0].leastVersion == InvalidationVersion(epoch: 7, count: 3))
    }
}
