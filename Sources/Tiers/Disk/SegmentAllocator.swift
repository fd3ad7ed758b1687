package import Ground

/// The allocator of the disk log: chooses the position of each record and the segment to reclaim.
///
/// The log is a fixed number of segments of one size. Records are appended to at most two open
/// segments, one per queue; a record is never split. Space is made by reclaiming the oldest segment
/// of a queue: the caller re-inserts the records that ``ReclaimPolicy`` keeps and drops the others.
///
/// Results take effect when they are returned: after `.open` the new segment *is* open, and the
/// caller creates it on disk before its next call. There is one writer; reads do not involve the
/// allocator.
///
/// **Invariants.**
/// - Segments in use (open, closed, reclaiming) never exceed ``Settings/segments``.
/// - When a reclaim starts, at least one segment is free, and only re-insertion may open the last
///   free one. (After a crash during a reclaim there may be none; then the first reclaim re-inserts
///   nothing.)
/// - A reclaim opens one segment at most, because its records come from one segment.
/// - Re-insertion is limited by credit: each byte admitted adds ``Settings/reinsertedPerAdmitted``
///   bytes, and the credit never exceeds that many segments. So bytes written per byte admitted
///   stay below that number plus one, and a policy that keeps everything is stopped: one allocation
///   causes at most 2 × `reinsertedPerAdmitted` + 4 reclaims. (Of two successive reclaims that
///   together free no segment, the re-inserted bytes exceed one segment.)
package struct SegmentAllocator: Sendable {
    /// The sizes of the log.
    package let settings: Settings
    /// The segments, by ``SegmentID/index``.
    package private(set) var segments: [Segment]
    /// The number of free segments.
    package private(set) var freeCount: Int
    /// The open segment of each queue, by ``SegmentQueue/rawValue``.
    private var openSegments: [SegmentID?] = [nil, nil]
    /// The number of segments of each queue that are open, closed or being reclaimed.
    private var inUse = [0, 0]
    private var reclaiming: SegmentID?
    /// The bytes that the current reclaim may still re-insert.
    private var reinsertableBytes = 0
    private var creditBytes: Int
    /// The sequence number of the segment opened last; 0 if there was none.
    private var sequence: UInt64 = 0

    /// Creates an empty log, or one with the closed segments that recovery found.
    ///
    /// - Precondition: a recovered segment occurs once, within the maximum number, and fits.
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
                "segment \(id.index) cannot be recovered: \(segment)")
            segments[Int(id.index)] = segment
            freeCount -= 1
            inUse[Int(segment.queue.rawValue)] += 1
            sequence = max(sequence, segment.sequence)
        }
    }

    /// Returns the number of segments of `queue` that are open, closed or being reclaimed.
    package func segmentsInUse(by queue: SegmentQueue) -> Int {
        inUse[Int(queue.rawValue)]
    }

    /// Returns the open segment of `queue`, if there is one.
    package func openSegment(of queue: SegmentQueue) -> SegmentID? {
        openSegments[Int(queue.rawValue)]
    }

    /// The number of segments in each state.
    package var counts: Counts {
        let open = openSegments.count { $0 != nil }
        return Counts(free: freeCount, open: open, closed: segments.count - freeCount - open)
    }

    /// The least invalidation version of all records in the log; `nil` if it is empty.
    package var leastVersion: InvalidationVersion? {
        segments.compactMap(\.leastVersion).min()
    }

    /// Allocates space for the record of a new entry.
    ///
    /// During a reclaim, a record that needs another segment has to wait, and so has every record
    /// for the main queue, whose space is then reserved for re-inserted records.
    ///
    /// - Parameters:
    ///   - recordBytes: the length of the record without its footer entry.
    ///   - queue: the queue that ``ReclaimPolicy/queue(forNewEntry:)`` has chosen.
    ///   - version: the invalidation version of the record.
    /// - Returns: `.write` if the space is allocated, `.tooLarge` if the record never fits, or what
    ///   the caller must do or await before it asks again.
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

    /// Allocates space in the main queue for a record of the segment that is being reclaimed.
    ///
    /// - Returns: `.write`, `.open`, or `.tooLarge` if the record must be dropped: the reclaim has
    ///   re-inserted as much as it may, or no segment is free because the one it opened was closed
    ///   early with ``segmentClosed(_:)``.
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

    /// Frees a segment whose records are all re-inserted or dropped and no longer read.
    package mutating func segmentReclaimed(_ id: SegmentID) {
        precondition(reclaiming == id, "segment \(id.index) is not being reclaimed")
        inUse[Int(segments[Int(id.index)].queue.rawValue)] -= 1
        segments[Int(id.index)] = Segment()
        freeCount += 1
        reclaiming = nil
    }

    /// Closes an open segment before it is full: at shutdown, or after a write error.
    package mutating func segmentClosed(_ id: SegmentID) {
        let queue = Int(segments[Int(id.index)].queue.rawValue)
        precondition(openSegments[queue] == id, "segment \(id.index) is not open")
        segments[Int(id.index)].state = .closed
        openSegments[queue] = nil
    }

    /// Records that an entry whose record of `recordBytes` lies in the segment was removed or
    /// replaced.
    ///
    /// A closed segment without live bytes is reclaimed before all others.
    package mutating func entryRemoved(_ id: SegmentID, recordBytes: Int) {
        let bytes = recordBytes + settings.footerBytesPerRecord
        // A forged footer may list more bytes than the segment has.
        segments[Int(id.index)].liveBytes = max(0, segments[Int(id.index)].liveBytes - bytes)
    }

    /// True if `queue` has an open segment with space for `bytes`.
    private func fits(_ bytes: Int, _ queue: SegmentQueue) -> Bool {
        guard let id = openSegment(of: queue) else { return false }
        return segments[Int(id.index)].usedBytes + bytes <= settings.capacityBytes
    }

    /// Allocates `bytes`, which include the footer entry, in the open segment of `queue`.
    private mutating func append(
        _ bytes: Int, _ queue: SegmentQueue, _ version: InvalidationVersion
    ) -> Placement {
        guard let id = openSegment(of: queue) else { preconditionFailure("\(queue) is not open") }
        let segment = segments[Int(id.index)]
        segments[Int(id.index)].append(bytes, version)
        let entries = segment.recordCount * settings.footerBytesPerRecord
        return .write(id, offset: settings.headerBytes + segment.usedBytes - entries)
    }

    /// Closes the open segment of `queue`, if there is one, and opens a free one in its place.
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

    /// Begins to reclaim the next segment, and limits what may be re-inserted from it.
    private mutating func reclaim() -> Placement {
        guard let id = nextToReclaim() else { preconditionFailure("none is closed: \(segments)") }
        let segment = segments[Int(id.index)]
        segments[Int(id.index)].state = .reclaiming
        reclaiming = id
        reinsertableBytes = freeCount == 0 ? 0 : min(creditBytes, segment.usedBytes)
        return .reclaim(id)
    }

    /// Returns the closed segment to reclaim; `nil` if none is closed.
    ///
    /// A segment without live bytes; otherwise the oldest of the small queue if that exceeds its
    /// share, or else the oldest of the main queue; of the other queue if that one has none.
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
    /// The number of segments in each state; one that is being reclaimed counts as closed.
    package struct Counts: Hashable, Sendable {
        /// The number of free segments.
        package var free = 0
        /// The number of open segments.
        package var open = 0
        /// The number of closed segments, including one being reclaimed.
        package var closed = 0

        /// Creates counts of zero.
        package init() {}

        init(free: Int, open: Int, closed: Int) {
            self.free = free
            self.open = open
            self.closed = closed
        }
    }

    /// The sizes of the log in bytes, the same for all segments and for the lifetime of the log.
    package struct Settings: Hashable, Sendable {
        /// The maximum number of segments, including the free one; at least ``segmentsMin``.
        package var segments: Int
        /// The length of a segment's file.
        package var segmentBytes: Int
        /// The length of the header before the first record.
        package var headerBytes: Int
        /// The length of the fixed part of the footer.
        package var footerBytes: Int
        /// The length that each record adds to the footer.
        package var footerBytesPerRecord: Int
        /// The maximum number of bytes re-inserted per byte admitted.
        package var reinsertedPerAdmitted: Int

        /// The smallest number of segments: two open, one to be reclaimed, and the free one.
        package static let segmentsMin = 4

        /// Creates settings from their parts; sizes are in bytes.
        ///
        /// - Precondition: at least ``segmentsMin`` segments, with space for a record.
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

        /// The bytes for records and their footer entries in one segment.
        package var capacityBytes: Int { segmentBytes - headerBytes - footerBytes }
        /// The longest record that is kept, in bytes.
        package var recordBytesMax: Int { capacityBytes - footerBytesPerRecord }
        /// The share of the small queue in segments, including its open one; above it, this queue
        /// is reclaimed first.
        ///
        /// An eighth of the segments that hold records, rounded to whole segments.
        package var smallSegments: Int { max(1, (segments - 1 + 4) / 8) }
        /// The maximum credit for re-insertion in bytes.
        var creditMax: Int { reinsertedPerAdmitted * capacityBytes }
    }

    /// The action of the caller for a record.
    package enum Placement: Hashable, Sendable {
        /// Write the record at this byte offset of the segment; the space is allocated.
        case write(SegmentID, offset: Int)
        /// Write the footer of `closing`, create the segment's file and header, and ask again.
        case open(SegmentID, sequence: UInt64, closing: SegmentID?)
        /// Re-insert or drop each record of the segment, report ``segmentReclaimed(_:)``, and ask
        /// again.
        case reclaim(SegmentID)
        /// Ask again once that segment is reclaimed, or do not keep the record.
        case wait(until: SegmentID)
        /// Do not keep the record.
        case tooLarge
    }
}
