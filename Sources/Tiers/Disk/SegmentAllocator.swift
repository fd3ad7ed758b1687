package import Ground

/// Says where each record of the disk's log goes, and which segment makes room for it.
///
/// The log is a fixed number of segments of one size. Records are appended to at most two open
/// segments, one a queue; a record is never split. Room is made by reclaiming the oldest segment of
/// a queue: the caller re-inserts what ``ReclaimPolicy`` wants to keep and forgets the rest.
///
/// The ledger is the truth of what it answers: with `.open` the new segment *is* open, and the
/// caller makes it so before it asks again. One writer asks; reads need no ledger.
///
/// **Laws.**
/// - Segments in use (open, closed, reclaiming) never exceed ``Settings/segments``.
/// - When a reclaim starts, at least one segment is free, and only re-insertion may open the last
///   free one. (After a crash in the midst of a reclaim none may be free; then the first reclaim
///   re-inserts nothing.)
/// - A reclaim opens one segment at most: what it re-inserts came out of one.
/// - Re-insertion lives on credit: each byte admitted lends ``Settings/reinsertedPerAdmitted``
///   bytes, and the credit is never more than that many segments. So bytes written per byte
///   admitted stay below one more than that, and a rule that keeps everything is cut off: for one
///   place there are at most 2 × `reinsertedPerAdmitted` + 4 reclaims. (Of two reclaims in
///   succession that free no segment on balance, what is re-inserted exceeds one segment.)
package struct SegmentAllocator: Sendable {
    package let settings: Settings
    /// By ``SegmentID/index``.
    package private(set) var segments: [Segment]
    /// Segments of state free.
    package private(set) var freeCount: Int
    private var openSegments: [SegmentID?] = [nil, nil]
    private var inUse = [0, 0]
    private var reclaiming: SegmentID?
    /// Bytes that the present reclaim may still re-insert.
    private var reinsertableBytes = 0
    private var creditBytes: Int
    private var sequence: UInt64 = 0

    /// An empty log, or what recovery found: closed segments, each by its name.
    ///
    /// - Precondition: a recovered segment is named once, within the cap, and fits.
    package init(settings: Settings, recovered: [(id: SegmentID, segment: Segment)] = []) {
        self.settings = settings
        segments = Array(repeating: Segment(), count: settings.segments)
        freeCount = settings.segments
        creditBytes = settings.creditMax
        for (id, segment) in recovered {
            precondition(
                segment.state == .closed && segments[Int(id.index)].state == .free
                    && segment.usedBytes <= settings.capacityBytes
                    && segment.liveBytes <= segment.usedBytes,
                "segment \(id.index) cannot be taken over: \(segment)")
            segments[Int(id.index)] = segment
            freeCount -= 1
            inUse[Int(segment.queue.rawValue)] += 1
            sequence = max(sequence, segment.sequence)
        }
    }

    /// Segments of `queue` that are open, closed or being reclaimed.
    package func segmentsInUse(by queue: SegmentQueue) -> Int {
        inUse[Int(queue.rawValue)]
    }

    /// The segment of `queue` that takes records, if there is one.
    package func openSegment(of queue: SegmentQueue) -> SegmentID? {
        openSegments[Int(queue.rawValue)]
    }

    /// How many segments there are in which state.
    package var counts: Counts {
        let open = openSegments.count { $0 != nil }
        return Counts(free: freeCount, open: open, closed: segments.count - freeCount - open)
    }

    /// The least stamp of all records in the log; nil if it is empty.
    package var leastVersion: InvalidationVersion? {
        segments.compactMap(\.leastVersion).min()
    }

    /// A place for a new entry's record of `recordBytes`, footer entry not counted.
    ///
    /// While a segment is being reclaimed, what would need another segment has to wait, and so
    /// has everything for the main queue, whose room is then the re-inserted records'.
    package mutating func allocate(
        recordBytes: Int, in queue: SegmentQueue, version: InvalidationVersion
    ) -> Placement {
        precondition(recordBytes > 0, "a record of \(recordBytes) bytes")
        guard recordBytes <= settings.recordBytesMax else { return .tooLarge }
        let bytes = recordBytes + settings.footerBytesPerRecord
        if let reclaiming, queue == .main || !fits(bytes, queue) {
            return .wait(until: reclaiming)
        }
        if fits(bytes, queue) {
            creditBytes = min(
                settings.creditMax, creditBytes + settings.reinsertedPerAdmitted * bytes)
            return append(bytes, queue, version)
        }
        return freeCount > 1 ? open(queue) : reclaim()
    }

    /// A place in the main queue for a record of the segment being reclaimed.
    ///
    /// Answers `.at`, `.open`, or `.tooLarge` once the reclaim has re-inserted all it may, or if
    /// the free segment it opened was ``closed(_:)`` early: then this record is dropped.
    package mutating func allocateForReinsertion(recordBytes: Int, version: InvalidationVersion)
        -> Placement
    {
        precondition(reclaiming != nil, "nothing is being reclaimed")
        let bytes = recordBytes + settings.footerBytesPerRecord
        guard bytes <= reinsertableBytes else { return .tooLarge }
        guard fits(bytes, .main) else { return freeCount > 0 ? open(.main) : .tooLarge }
        reinsertableBytes -= bytes
        creditBytes -= bytes
        return append(bytes, .main, version)
    }

    /// All records of the segment are re-inserted or dropped, and nobody reads them any more.
    package mutating func segmentReclaimed(_ id: SegmentID) {
        precondition(reclaiming == id, "segment \(id.index) is not being reclaimed")
        inUse[Int(segments[Int(id.index)].queue.rawValue)] -= 1
        segments[Int(id.index)] = Segment()
        freeCount += 1
        reclaiming = nil
    }

    /// An open segment takes no more: at shutdown, or after an error of writing.
    package mutating func segmentClosed(_ id: SegmentID) {
        let queue = Int(segments[Int(id.index)].queue.rawValue)
        precondition(openSegments[queue] == id, "segment \(id.index) is not open")
        segments[Int(id.index)].state = .closed
        openSegments[queue] = nil
    }

    /// An entry whose record of `recordBytes` lies in the segment was removed or replaced.
    ///
    /// A closed segment without live bytes is reclaimed before all others.
    package mutating func entryRemoved(_ id: SegmentID, recordBytes: Int) {
        let bytes = recordBytes + settings.footerBytesPerRecord
        // Footers that were forged may name more than there is room for.
        segments[Int(id.index)].liveBytes = max(0, segments[Int(id.index)].liveBytes - bytes)
    }

    private func fits(_ bytes: Int, _ queue: SegmentQueue) -> Bool {
        guard let id = openSegment(of: queue) else { return false }
        return segments[Int(id.index)].usedBytes + bytes <= settings.capacityBytes
    }

    private mutating func append(
        _ bytes: Int, _ queue: SegmentQueue, _ version: InvalidationVersion
    ) -> Placement {
        guard let id = openSegment(of: queue) else { preconditionFailure("\(queue) is not open") }
        let segment = segments[Int(id.index)]
        segments[Int(id.index)].append(bytes, version)
        let entries = segment.recordCount * settings.footerBytesPerRecord
        return .write(id, offset: settings.headerBytes + segment.usedBytes - entries)
    }

    private mutating func open(_ queue: SegmentQueue) -> Placement {
        guard let index = segments.firstIndex(where: { $0.state == .free }) else {
            preconditionFailure("no free segment: \(segments)")
        }
        let closing = openSegment(of: queue)
        if let closing { segmentClosed(closing) }
        let id = SegmentID(index: UInt32(index))
        sequence += 1
        segments[index].state = .open
        segments[index].queue = queue
        segments[index].sequence = sequence
        openSegments[Int(queue.rawValue)] = id
        inUse[Int(queue.rawValue)] += 1
        freeCount -= 1
        return .open(id, sequence: sequence, closing: closing)
    }

    private mutating func reclaim() -> Placement {
        guard let id = nextToReclaim() else { preconditionFailure("none is closed: \(segments)") }
        let segment = segments[Int(id.index)]
        segments[Int(id.index)].state = .reclaiming
        reclaiming = id
        reinsertableBytes = freeCount == 0 ? 0 : min(creditBytes, segment.usedBytes)
        return .reclaim(id)
    }

    /// A segment without live bytes; or the oldest one of the small queue as long as that has more
    /// than its share; or the oldest one of the main queue.
    private func nextToReclaim() -> SegmentID? {
        var dead: SegmentID?
        var oldest: [SegmentID?] = [nil, nil]
        for (index, segment) in segments.enumerated() where segment.state == .closed {
            let id = SegmentID(index: UInt32(index))
            if segment.liveBytes == 0 { dead = id }
            let queue = Int(segment.queue.rawValue)
            if let other = oldest[queue],
                segments[Int(other.index)].sequence < segment.sequence
            {
                continue
            }
            oldest[queue] = id
        }
        if let dead { return dead }
        let small = oldest[Int(SegmentQueue.small.rawValue)]
        let main = oldest[Int(SegmentQueue.main.rawValue)]
        return segmentsInUse(by: .small) > settings.smallSegments ? small ?? main : main ?? small
    }
}

extension SegmentAllocator {
    /// Segments by what they are; one that is being reclaimed is still closed.
    package struct Counts: Hashable, Sendable {
        package var free = 0
        package var open = 0
        package var closed = 0

        package init() {}

        init(free: Int, open: Int, closed: Int) {
            self.free = free
            self.open = open
            self.closed = closed
        }
    }

    /// Sizes in bytes; the same for all segments and for as long as the log lives.
    package struct Settings: Hashable, Sendable {
        /// The cap, the free one included; at least ``segmentsMin``.
        package var segments: Int
        /// Length of a segment's file.
        package var segmentBytes: Int
        /// What stands before the first record.
        package var headerBytes: Int
        /// The fixed part of what stands behind the last record.
        package var footerBytes: Int
        /// What each record adds to the footer.
        package var footerBytesPerRecord: Int
        /// Bytes re-inserted for each byte admitted, at most.
        package var reinsertedPerAdmitted: Int

        /// Two that are open, one that can be reclaimed, and the free one.
        package static let segmentsMin = 4

        /// - Precondition: at least ``segmentsMin`` segments, with room for a record.
        package init(
            segments: Int, segmentBytes: Int, headerBytes: Int = 0, footerBytes: Int = 0,
            footerBytesPerRecord: Int = 0, reinsertedPerAdmitted: Int = 8
        ) {
            self.segments = segments
            self.segmentBytes = segmentBytes
            self.headerBytes = headerBytes
            self.footerBytes = footerBytes
            self.footerBytesPerRecord = footerBytesPerRecord
            self.reinsertedPerAdmitted = reinsertedPerAdmitted
            precondition(
                segments >= Self.segmentsMin && segments <= UInt32.max && recordBytesMax > 0,
                "no log can be kept in \(self)")
        }

        /// Bytes for records and their footer entries in one segment.
        package var capacityBytes: Int { segmentBytes - headerBytes - footerBytes }
        /// A longer record is not kept.
        package var recordBytesMax: Int { capacityBytes - footerBytesPerRecord }
        /// The small queue's share, its open segment included; beyond, it is reclaimed first.
        ///
        /// An eighth of what holds records, rounded to whole segments.
        package var smallSegments: Int { max(1, (segments - 1 + 4) / 8) }
        /// The most that re-insertion may save up.
        var creditMax: Int { reinsertedPerAdmitted * capacityBytes }
    }

    /// What the caller does with a record.
    package enum Placement: Hashable, Sendable {
        /// Writes it at this offset in bytes of the segment; the place is taken.
        case write(SegmentID, offset: Int)
        /// Writes the footer of `closing`, makes the segment's file and header, and asks again.
        case open(SegmentID, sequence: UInt64, closing: SegmentID?)
        /// Re-inserts or drops each record of the segment, says ``reclaimed(_:)``, and asks again.
        case reclaim(SegmentID)
        /// Asks again once that segment is reclaimed, or does not keep the record.
        case wait(until: SegmentID)
        /// Does not keep it.
        case tooLarge
    }
}
