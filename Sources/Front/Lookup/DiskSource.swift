import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Peering
import Platform
import Serving
import Store
import Tiers
import Wire

/// The disk source of an ``ActiveFetch``: looks the response up on disk and delivers it.
///
/// Data in the page cache is read at once, on the loop; the rest by a disk thread. A large body
/// reaches the readers part by part. Confined to its loop.
final class DiskSource: ResponseSource {
    private let driver: LookupDriver
    private let fetch: ActiveFetch
    private unowned let context: EventLoopContext
    private let tier: DiskStore
    private let view: DiskView
    /// Names still to look up, in this order.
    private var candidates: [Candidate]
    /// The candidate that is being read or was found last.
    private var currentCandidate: Candidate?
    /// True once the source has reported its result or was cancelled.
    private var isFinished = false
    /// True while reading is held back for slow readers.
    private var isPaused = false
    /// The record whose body is being read; `nil` before one is served piece by piece.
    private var reading: DiskRecordHandle?
    /// The index of the body's next chunk to read.
    private var nextChunk = 0

    /// Maximum size of a body that is loaded whole before it is served, in bytes.
    private static let wholeBytesMax: UInt64 = 1 << 20
    /// Maximum number of chunks that a disk thread reads at once.
    private static let chunksPerReadMax = 4
    /// Number of chunks of this body that are read at once; smaller if memory has no capacity for
    /// it.
    private var chunksPerRead = chunksPerReadMax

    /// A name under which a response may be on disk, and its key in memory.
    private struct Candidate: Sendable {
        /// Name of the entry on disk.
        let name: EntryName
        /// Key of the entry in memory.
        let entryKey: EntryKey
    }

    /// Creates a source that begins with `name`, that of the URL's primary entry.
    init(_ driver: LookupDriver, name: EntryName, tier: DiskStore, view: DiskView) {
        self.driver = driver
        fetch = driver.fetch
        context = driver.context
        candidates = [Candidate(name: name, entryKey: EntryKey(key: fetch.key, hash: fetch.hash))]
        self.tier = tier
        self.view = view
    }

    // MARK: Requests of the fetch

    func updateFlow() {
        guard isPaused, !fetch.isPaused else { return }
        isPaused = false
        readMore()
    }

    func cancel() {
        isFinished = true
    }

    // MARK: Lookup

    /// Looks up the remaining candidates until one is found, which is served or reported for
    /// revalidation; reports a miss if there is none.
    func search() {
        while !candidates.isEmpty {
            let candidate = candidates.removeFirst()
            if let (waiting, lease) = tier.pendingWrite(candidate.name) {
                defer { lease.release() }
                currentCandidate = candidate
                guard let index = VariantIndex(of: waiting) else {
                    let copy = context.store.copy(of: waiting)
                    return serve(copy ?? waiting, isInserted: copy != nil)
                }
                if let copy = context.store.copy(of: waiting) {
                    context.node.entries.restoreIndex(copy, for: fetch.siteRequest)
                }
                followVariantIndex(index)
                continue
            }
            guard view.shards.find(candidate.name.digest) != nil else { continue }
            let found = view.readNonblocking(
                candidate.name, key: candidate.entryKey.key, buffer: &context.pageCache.buffer)
            switch found {
            case .notFound: continue
            case .wouldBlock: return readOnDiskThread(candidate)
            case .complete(let reading, let chunks):
                self.currentCandidate = candidate
                let facts = reading.metadata(tier.clock)
                if facts.flags.contains(.isVariantIndex) {
                    followVariantIndex(reading)
                    continue
                }
                return serve(reading, chunks)
            }
        }
        reportMiss()
    }

    /// Continues with the variants that an index on disk lists for this request, and restores the
    /// index in memory.
    private func followVariantIndex(_ reading: DiskRecordHandle) {
        let entry = context.node.store.promote(
            reading, [], hash: fetch.hash, clock: tier.clock, share: fetch.siteRequest.share)
        if let entry { context.node.entries.restoreIndex(entry, for: fetch.siteRequest) }
        let head = reading.record.head
        if let index = VariantIndex(head.span, at: 0..<head.count) { followVariantIndex(index) }
    }

    /// Replaces the candidates by the variants that the index lists for this request.
    private func followVariantIndex(_ index: VariantIndex) {
        candidates = fetch.siteRequest.variantKeys(of: index, in: context.node.store).map {
            Candidate(name: EntryName(ofKey: $0.key), entryKey: $0)
        }
    }

    /// Returns true if an entry with these facts may be served to the request that caused the
    /// fetch.
    private static func isUsable(_ facts: EntryMetadata, for run: ActiveFetch) -> Bool {
        guard facts.flags.isResponse else { return false }
        let reuse = run.siteRequest.reuse(facts, now: SystemClock.now())
        // A peer would treat a stale response as fresh.
        return run.options.isForPeer ? reuse == .fresh : reuse.isUsable
    }

    /// Returns true if the response is fresh, and so may be served part by part without
    /// revalidation.
    private static func isFresh(_ facts: EntryMetadata, for run: ActiveFetch) -> Bool {
        let now = SystemClock.now()
        let counted = run.context.node.fence.effectiveFacts(facts, now: now)
        return isUsable(facts, for: run) && now < counted.freshUntil
    }

    /// Result of a disk thread.
    private enum ReadResult: Sendable {
        /// The record is missing or unreadable.
        case notFound
        /// The complete response, now in memory.
        case whole(MemoryEntry)
        /// The first chunks of a fresh response.
        case part(DiskRecordHandle, [ByteBuffer])
        /// Stale, and memory has no capacity for it.
        case mustRevalidate
        /// A variant index, which lists the selecting fields.
        case variantIndex(DiskRecordHandle)
    }

    /// Lets a disk thread read the candidate, then serves it or continues the search on the loop.
    private func readOnDiskThread(_ candidate: Candidate) {
        let (view, clock, run, store) = (view, tier.clock, fetch, context.node.store)
        self.currentCandidate = candidate
        let found = tier.readerThreads.runIfActive(eventLoop: context.loop) { () -> ReadResult in
            guard var reading = view.read(candidate.name, key: candidate.entryKey.key) else {
                return .notFound
            }
            let facts = reading.metadata(clock)
            if facts.flags.contains(.isVariantIndex) { return .variantIndex(reading) }
            // Stale responses are served from memory.
            let isFresh = Self.isFresh(facts, for: run)
            if !isFresh || facts.size <= Self.wholeBytesMax {
                let found = store.promote(
                    &reading, hash: candidate.entryKey.hash, clock: clock,
                    share: run.siteRequest.share
                ) {
                    view.readBody(&$0)
                }
                switch found {
                case .promoted(let entry): return .whole(entry)
                case .unreadable: return .notFound
                case .noCapacity where !isFresh: return .mustRevalidate
                case .noCapacity: break
                }
            }
            let chunks = view.readChunks(&reading, from: 0, count: Self.chunksPerReadMax)
            return chunks.map { .part(reading, $0) } ?? .notFound
        }
        found.assumeIsolated().whenComplete { [self] result in
            guard !isFinished else { return }
            switch result {
            case .success(.whole(let entry)): serve(entry)
            case .success(.part(let reading, let chunks)): stream(reading, chunks)
            case .success(.mustRevalidate): reportMiss()
            case .success(.variantIndex(let reading)):
                followVariantIndex(reading)
                search()
            case .success(.notFound), .failure: search()
            }
        }
    }

    /// Serves an entry if it is usable; otherwise reports a miss, with the entry to revalidate if
    /// that is possible.
    ///
    /// If the entry was purged, the search continues instead.
    ///
    /// - Parameters:
    ///   - read: the entry that was read from disk.
    ///   - isInserted: true to insert it into memory.
    private func serve(_ read: MemoryEntry, isInserted: Bool = true) {
        let (now, query) = (SystemClock.now(), fetch.siteRequest)
        // Drops the entry or makes it stale if it was invalidated during the read.
        guard let entry = context.store.entryAfterMarks(to: read) else { return search() }
        guard Self.isUsable(entry.metadata, for: fetch) else {
            // Keeps it available as fallback for a failing origin.
            if isInserted, !fetch.options.isProbe {
                context.store.insert(entry, requestVersion: fetch.invalidationVersion)
            }
            guard query.reuse(entry.metadata, now: now) != .unusable else { return reportMiss() }
            fetch.setStaleEntry(entry)
            return reportMiss()
        }
        if isInserted { context.store.insert(entry, requestVersion: fetch.invalidationVersion) }
        context.touch(entry, now: now)
        fetch.storedResponseUsed(
            entry, isShared: true, isStored: true, nominated: query.nominated(of: entry),
            isFromDisk: true)
        finish()
        if query.reuse(entry.metadata, now: now) == .stale(.whileRevalidate) {
            context.revalidateInBackground(
                query, entry, cause: fetch.correlation, client: fetch.client, now: now)
        }
    }

    /// Serves a record whose body was read without blocking: as an entry, or in pieces if it is
    /// fresh and memory has no capacity; otherwise reports a miss.
    private func serve(_ reading: DiskRecordHandle, _ chunks: [ByteBuffer]) {
        let store = context.node.store
        let hash = currentCandidate?.entryKey.hash ?? fetch.hash
        if let entry = store.promote(
            reading, chunks, hash: hash, clock: tier.clock, share: fetch.siteRequest.share)
        {
            return serve(entry)
        }
        if Self.isFresh(reading.metadata(tier.clock), for: fetch) {
            stream(reading, chunks)
        } else {
            reportMiss()
        }
    }

    /// Reports that the disk has no usable response.
    private func reportMiss() {
        guard !isFinished else { return }
        isFinished = true
        driver.diskMissed()
    }

    // MARK: Streaming of a body

    /// Starts to deliver a body whose first chunks were read.
    private func stream(_ reading: DiskRecordHandle, _ chunks: [ByteBuffer]) {
        let facts = reading.metadata(tier.clock)
        let head = RenderedHead(reading)
        let overhead = MemoryEntry.overhead(
            keyBytes: fetch.key.count, headBytes: head.bytes.count, bodyBytes: facts.size)
        let isKept =
            facts.size <= fetch.siteRequest.policy.objectBytesMax
            && fetch.reserve(
                overhead + BodyLayout.capacity(facts.size),
                weighedBy: currentCandidate?.entryKey.hash ?? fetch.hash)
        // Disk reads follow the readers chunk by chunk, so that streaming works even without
        // reserved memory for the smallest window.
        if !isKept { _ = fetch.openWindow() }
        fetch.responseHeadReceived(
            FetchedResponse(
                metadata: facts, head: head, sizeBytes: facts.size, isKept: isKept,
                isFromDisk: true,
                tags: reading.record.tags),
            isShared: true, nominated: fetch.siteRequest.nominated(head: reading.record.head))
        self.reading = reading
        guard !isKept else { return append(chunks) }
        chunksPerRead = min(
            Self.chunksPerReadMax, max(1, Int(fetch.windowBytes) / DiskFormat.chunkBytes))
        let isMore = facts.size > UInt64(chunksPerRead * DiskFormat.chunkBytes)
        append(isMore ? Array(chunks.prefix(chunksPerRead)) : chunks)
    }

    /// Delivers chunks and reads on, or completes the body.
    private func append(_ chunks: [ByteBuffer]) {
        guard let reading else { return }
        for chunk in chunks { fetch.bodyReceived(chunk) }
        nextChunk += chunks.count
        guard !isFinished else { return }
        guard nextChunk * DiskFormat.chunkBytes < Int(reading.record.bodyBytes) else {
            return complete(reading)
        }
        readMore()
    }

    /// Reads the next chunks on a disk thread, unless readers lag behind; reports the loss if that
    /// fails.
    private func readMore() {
        guard !isFinished, let before = reading else { return }
        guard !fetch.isPaused else {
            isPaused = true
            return
        }
        let (view, first, count) = (view, nextChunk, chunksPerRead)
        let more = tier.readerThreads.runIfActive(eventLoop: context.loop) {
            () -> (DiskRecordHandle, [ByteBuffer]?) in
            var reading = before
            let chunks = view.readChunks(&reading, from: first, count: count)
            return (reading, chunks)
        }
        more.assumeIsolated().whenComplete { [self] result in
            guard !isFinished else { return }
            guard case .success((let reading, let chunks?)) = result else {
                isFinished = true
                return driver.lost()
            }
            self.reading = reading
            append(chunks)
        }
    }

    /// Completes the body and inserts its entry into memory if it was kept.
    private func complete(_ reading: DiskRecordHandle) {
        let entry = fetch.completed(
            name: reading.record.name, tags: reading.record.tags, place: currentCandidate?.entryKey
        ) { _ in
            (reading.metadata(tier.clock), RenderedHead(reading))
        }
        if let entry {
            context.store.insert(entry, requestVersion: fetch.invalidationVersion)
            context.touch(entry, now: SystemClock.now())
        }
        finish()
    }

    /// Ends the source and the fetch.
    private func finish() {
        isFinished = true
        driver.finish()
    }
}

extension DiskRecord {
    /// Reason why no response can be built from the record, whatever its checksum says; `nil` if
    /// one can.
    var responseDefect: String? {
        guard !flags.contains(.isVariantIndex) else {
            return isVariantIndex ? nil : "\(StoredHeadFault.metadata)"
        }
        let head = StoredHead(
            rendered: head, partialStart: Int(layout.partialStart),
            multipartStart: Int(layout.multipartStart),
            notModifiedStart: Int(layout.notModifiedStart),
            contentType: layout.contentType, entityTag: layout.entityTag)
        do throws(StoredHeadFault) {
            try head.validate(flags, size: bodyBytes)
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// True if the record is a well-formed variant index and nothing else.
    private var isVariantIndex: Bool {
        flags == .isVariantIndex && bodyBytes == 0
            && VariantIndex(head.span, at: head.indices) != nil
    }
}
