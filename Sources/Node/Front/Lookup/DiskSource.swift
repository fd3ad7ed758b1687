import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Serving
import Store
import Tiers
import Wire

/// The disk's side of a `ActiveFetch`: looks whether the answer is there, and hands it on.
///
/// What the page cache holds is read at once, on the loop; the rest by a disk thread. A large body
/// goes to the readers part by part. Confined to its loop.
final class DiskSource: ResponseSource {
    private let driver: LookupDriver
    private let fetch: ActiveFetch
    private unowned let context: EventLoopContext
    private let tier: DiskStore
    private let view: DiskView
    /// What is still looked for, in that order.
    private var candidates: [Candidate]
    /// What has been found is of this one.
    private var currentCandidate: Candidate?
    /// It has reported, or nobody wants to hear.
    private var isFinished = false
    /// Held back until the readers have caught up.
    private var isPaused = false
    /// The body that is being read, and the number of its next chunk.
    private var reading: DiskRecordHandle?
    private var nextChunk = 0

    /// A larger body is given part by part while it is read.
    private static let wholeBytesMax: UInt64 = 1 << 20
    /// Chunks that a disk thread reads at once.
    private static let chunksPerReadMax = 4
    /// The same for this body: of one that has no room in memory only what its readers take soon.
    private var chunksPerRead = chunksPerReadMax

    /// A name under which an answer may be on disk, and where it then stands in memory.
    private struct Candidate: Sendable {
        let name: EntryName
        let entryKey: EntryKey
    }

    /// `name` is what the answer to the URL is called, variants apart.
    init(_ driver: LookupDriver, name: EntryName, tier: DiskStore, view: DiskView) {
        self.driver = driver
        fetch = driver.fetch
        context = driver.context
        candidates = [Candidate(name: name, entryKey: EntryKey(key: fetch.key, hash: fetch.hash))]
        self.tier = tier
        self.view = view
    }

    // MARK: What the run asks for

    func updateFlow() {
        guard isPaused, !fetch.isPaused else { return }
        isPaused = false
        readMore()
    }

    func cancel() {
        isFinished = true
    }

    // MARK: Looking

    /// Looks for the candidates that are left.
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
                    context.node.restoreIndex(copy, for: fetch.siteRequest)
                }
                followVariantIndex(index)
                continue
            }
            guard view.shards.find(candidate.name.digest) != nil else { continue }
            let found = view.readNonblocking(
                candidate.name, key: candidate.entryKey.key, buffer: &context.diskReadBuffer)
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

    /// Answers were selected by fields of their requests: goes on with those variants that answer
    /// this one.
    private func followVariantIndex(_ reading: DiskRecordHandle) {
        let entry = context.node.store.promote(
            reading, [], hash: fetch.hash, clock: tier.clock, share: fetch.siteRequest.share)
        if let entry { context.node.restoreIndex(entry, for: fetch.siteRequest) }
        let head = reading.record.head
        if let index = VariantIndex(head.span, at: 0..<head.count) { followVariantIndex(index) }
    }

    private func followVariantIndex(_ index: VariantIndex) {
        candidates = fetch.siteRequest.variantKeys(of: index, in: context.node.store).map {
            Candidate(name: EntryName(ofKey: $0.key), entryKey: $0)
        }
    }

    /// What an entry is good for, by the request that has caused the fetch.
    private static func isUsable(_ facts: EntryMetadata, for run: ActiveFetch) -> Bool {
        guard facts.flags.isResponse else { return false }
        let reuse = run.siteRequest.reuse(facts, now: SystemClock.now())
        // A peer would take it for fresh.
        return run.options.isForPeer ? reuse == .fresh : reuse.isUsable
    }

    /// It may be given without another word: part by part, and nothing is to be asked meanwhile.
    private static func isFresh(_ facts: EntryMetadata, for run: ActiveFetch) -> Bool {
        let now = SystemClock.now()
        let counted = run.context.node.fence.effectiveFacts(facts, now: now)
        return isUsable(facts, for: run) && now < counted.freshUntil
    }

    /// What a disk thread has found.
    private enum ReadResult: Sendable {
        case notFound
        /// All of it, in memory.
        case whole(MemoryEntry)
        /// A fresh answer's first chunks.
        case part(DiskRecordHandle, [ByteBuffer])
        /// The origin would have to be asked about it, and memory has no room for it.
        case mustRevalidate
        /// It says which fields select an answer.
        case variantIndex(DiskRecordHandle)
    }

    private func readOnDiskThread(_ candidate: Candidate) {
        let (view, clock, run, store) = (view, tier.clock, fetch, context.node.store)
        self.currentCandidate = candidate
        let found = tier.readerThreads.runIfActive(eventLoop: context.loop) { () -> ReadResult in
            guard var reading = view.read(candidate.name, key: candidate.entryKey.key) else {
                return .notFound
            }
            let facts = reading.metadata(clock)
            if facts.flags.contains(.isVariantIndex) { return .variantIndex(reading) }
            // What the origin has to be asked about, now or meanwhile, is served from memory.
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

    /// Serves an entry if it is fresh, and asks the origin about it if not.
    ///
    /// It is put into memory if `isInserted`.
    private func serve(_ read: MemoryEntry, isInserted: Bool = true) {
        let (now, query) = (SystemClock.now(), fetch.siteRequest)
        // What was invalidated while it was read is gone, or has to be validated.
        guard let entry = context.store.applyingMarks(to: read) else { return search() }
        guard Self.isUsable(entry.metadata, for: fetch) else {
            // What may stand in for an origin that fails must be found then.
            if isInserted, !fetch.options.isProbe {
                context.store.insert(entry, requestVersion: fetch.invalidationVersion)
            }
            guard query.reuse(entry.metadata, now: now) != .unusable else { return reportMiss() }
            fetch.setStaleEntry(entry)
            return reportMiss()
        }
        if isInserted { context.store.insert(entry, requestVersion: fetch.invalidationVersion) }
        context.touch(entry, now: now)
        fetch.diskEntryLoaded(entry, nominated: query.nominated(of: entry))
        finish()
        if query.reuse(entry.metadata, now: now) == .stale(.whileRevalidate) {
            context.revalidateInBackground(
                query, entry, cause: fetch.correlation, client: fetch.client, now: now)
        }
    }

    /// The same for what was read at once, for which memory may have no room.
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

    private func reportMiss() {
        guard !isFinished else { return }
        isFinished = true
        driver.diskMissed()
    }

    // MARK: A body, part by part

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
        // What is read of a body that is on disk follows its readers, chunk by chunk, so that it
        // goes on with the smallest window even if that is not to be had.
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

    private func finish() {
        isFinished = true
        driver.finish()
    }
}

extension DiskRecord {
    /// Why no answer can be made of it, whatever its checksum says; nil if one can.
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

    /// It says which fields of a request select an answer, and is nothing else.
    private var isVariantIndex: Bool {
        flags == .isVariantIndex && bodyBytes == 0
            && VariantIndex(head.span, at: head.indices) != nil
    }
}
