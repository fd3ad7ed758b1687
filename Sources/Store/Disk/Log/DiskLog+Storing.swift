import Ground
package import NIOCore
package import Tiers

extension DiskLog {
    /// The outcome of storing a response.
    package enum StoreOutcome: Hashable, Sendable {
        /// The record is written and indexed.
        case written
        /// The record is larger than a segment.
        case tooLarge
        /// The response was purged after its request began.
        case purged
        /// The record does not fit in its site's share.
        case shareExceeded
        /// The record is written, but not indexed because `commit` refused it.
        case superseded
    }

    /// A function that runs its argument, which indexes a written record, and returns true; or
    /// returns false without running it if the response must no longer be found.
    package typealias Commit = (_ index: () -> Void) -> Bool

    /// Appends a response and replaces the entry's previous record.
    ///
    /// Call it only once the journal contains everything up to the record's invalidation version;
    /// otherwise a restart could not detect a lost invalidation.
    ///
    /// - Parameters:
    ///   - record: the record; its chunk checksums are computed when it is written.
    ///   - body: the body, in buffers of any size.
    ///   - now: milliseconds since 1970.
    ///   - commit: decides at the last moment whether the record is indexed.
    /// - Returns: `.written` if the record is written and indexed; otherwise the reason why it is
    ///   not.
    /// - Throws: ``DiskFile/Failure`` if an operation on the log's files fails; the record is then
    ///   not indexed.
    package func store(
        _ record: DiskRecord, body: [ByteBuffer], now: Int64,
        commit: Commit = {
            $0(); return true
        }
    ) throws(DiskFile.Failure) -> StoreOutcome {
        guard view.effect(on: record) != .purged,
            !marks.predatesForgottenMarks(record.invalidationVersion)
        else { return .purged }
        guard makeRoomInShare(for: record) else { return .shareExceeded }
        var record = record
        record.chunkSums = Array(repeating: 0, count: DiskRecord.chunkCount(record.bodyBytes))
        let digest = record.name.digest
        // An entry stays in its queue, so that the later of two records of it follows the other in
        // the order of segments. (A power failure may bring back a reclaimed segment; an older
        // response then counts as long as it is fresh, unless a mark covers it.)
        let queue =
            view.shards.find(digest).map { $0.flags.contains(.inMain) ? .main : .small }
            ?? admissionQueue(digest)
        let bytes = record.extent.recordBytes
        while true {
            let place = segments.allocator.allocate(
                recordBytes: bytes, in: queue, version: record.invalidationVersion)
            switch place {
            case .tooLarge: return .tooLarge
            case .wait: preconditionFailure("a reclaim is over before the next record comes")
            case .open(let id, let sequence, let closing):
                try segments.open(id, queue, sequence: sequence, closing: closing, now: now)
            case .reclaim(let id): reclaim(id, now: now)
            case .write(_, let offset):
                let location = try segments.append(record, body, in: queue, at: offset)
                let entry = record.entry(at: location, in: queue)
                guard commit({ indexEntry(digest, entry) }) else {
                    segments.entryForgotten(digest, entry)
                    return .superseded
                }
                counters.add(.admittedRecords)
                counters.add(.admittedBytes, bytes)
                return .written
            }
        }
    }

    /// Returns the queue for an entry that is not in the index.
    ///
    /// If a restart could find an earlier record of the entry, that is the earlier record's queue:
    /// in the other queue, the earlier record could count as the later one.
    private func admissionQueue(_ digest: EntryDigest) -> SegmentQueue {
        let queue = policy.queue(forNewEntry: digest.first)
        guard segments.hasLaterRecord(of: digest, than: queue) else { return queue }
        return queue == .main ? .small : .main
    }

    /// Adds a written record to the index, in place of the earlier one of its entry.
    private func indexEntry(_ digest: EntryDigest, _ entry: DiskEntry) {
        // The footer of its segment still lists the old record, so it would be found again once the
        // later one is forgotten.
        if let old = view.shards.insert(digest, entry) { segments.recordRemoved(old) }
        policy.entryCountGrew(to: view.shards.count)
    }

    // MARK: Shares of sites

    /// Entries examined per step to find one to evict.
    private static let sample = 512
    /// Entries examined in total for one record.
    private static let examinedMax = 1 << 17

    /// Sets the limits of sites; nothing is evicted before a site's next record arrives.
    package func setShareLimits(_ shares: DiskShareLimits) {
        self.shareLimits = shares
    }

    /// Evicts entries of the record's site until the record fits in its share; false if it cannot.
    ///
    /// Each step evicts the least recently used of a sample. The disk space becomes free when the
    /// segments are reclaimed; what counts here are indexed entries.
    private func makeRoomInShare(for record: DiskRecord) -> Bool {
        let number = DiskShareID.number(ofKey: record.key.span)
        guard let (group, percent) = shareLimits.limit(of: number) else { return true }
        let capacity = (settings.plan.segments - 1) * settings.plan.segmentBytes
        let limit = Int(Double(capacity) * Double(percent) / 100)
        let bytes = record.extent.recordBytes
        guard bytes <= limit else { return false }
        let replaced = view.shards.find(record.name.digest)
        let freed = replaced.map { shareLimits.contains($0.share, in: group) ? $0.bytes : 0 } ?? 0
        var looks = 0
        while view.shards.bytes(of: group, in: shareLimits) - freed + bytes > limit {
            guard looks < Self.examinedMax else { return false }
            let part = shareScan.next(in: view.shards, atMost: Self.sample) {
                shareLimits.contains($0.share, in: group)
            }
            // A shard without entries also counts as a step.
            looks += max(part.looked, Self.sample)
            let idlest = part.found.filter { $0.0 != record.name.digest }
                .min { $0.1.lastAccess < $1.1.lastAccess }
            guard let (digest, entry) = idlest,
                view.shards.remove(digest, ifAt: entry.location)
            else { continue }
            segments.entryForgotten(digest, entry)
            policy.recordDrop(digest.first, bytes: entry.bytes)
            counters.add(.evictedEntries)
        }
        return true
    }
}
