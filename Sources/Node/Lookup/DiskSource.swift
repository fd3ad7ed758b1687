import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Serving
import Store
import Tiers
import Wire

/// The disk's side of a `FillRun`: looks whether the answer is there, and hands it on.
///
/// What the page cache holds is read at once, on the loop; the rest by a disk thread. A large body
/// goes to the readers part by part. Confined to its loop.
final class DiskSource: AnswerSource {
    private let driver: LookupDriver
    private let run: FillRun
    private unowned let hall: Hall
    private let tier: DiskTier
    private let view: DiskView
    /// What is still looked for, in that order.
    private var candidates: [Candidate]
    /// What has been found is of this one.
    private var found: Candidate?
    /// It has reported, or nobody wants to hear.
    private var isOver = false
    /// Held back until the readers have caught up.
    private var waits = false
    /// The body that is being read, and the number of its next chunk.
    private var reading: DiskReading?
    private var nextChunk = 0

    /// A larger body is given part by part while it is read.
    private static let wholeBytesMax: UInt64 = 1 << 20
    /// Chunks that a disk thread reads at once.
    private static let chunksAtOnceMax = 4
    /// The same for this body: of one that has no room in memory only what its readers take soon.
    private var chunksAtOnce = chunksAtOnceMax

    /// A name under which an answer may be on disk, and where it then stands in memory.
    private struct Candidate: Sendable {
        let name: EntryName
        let place: EntryPlace
    }

    /// `name` is what the answer to the URL is called, variants apart.
    init(_ driver: LookupDriver, name: EntryName, tier: DiskTier, view: DiskView) {
        self.driver = driver
        run = driver.run
        hall = driver.hall
        candidates = [Candidate(name: name, place: EntryPlace(key: run.key, hash: run.hash))]
        self.tier = tier
        self.view = view
    }

    // MARK: What the run asks for

    func pace() {
        guard waits, !run.isPaused else { return }
        waits = false
        readMore()
    }

    func cancel() {
        isOver = true
    }

    // MARK: Looking

    /// Looks for the candidates that are left.
    func look() {
        while !candidates.isEmpty {
            let candidate = candidates.removeFirst()
            if let (waiting, lease) = tier.waiting(candidate.name) {
                defer { lease.end() }
                found = candidate
                guard let index = VariantIndex(of: waiting) else {
                    let copy = hall.store.copy(of: waiting)
                    return use(copy ?? waiting, isInserted: copy != nil)
                }
                if let copy = hall.store.copy(of: waiting) {
                    hall.node.restore(copy, for: run.query)
                }
                learn(index)
                continue
            }
            guard view.shards.find(candidate.name.digest) != nil else { continue }
            let found = view.readAtOnce(
                candidate.name, key: candidate.place.key, room: &hall.diskRoom)
            switch found {
            case .absent: continue
            case .later: return readLater(candidate)
            case .whole(let reading, let chunks):
                self.found = candidate
                let facts = reading.facts(tier.clock)
                if facts.flags.contains(.isVariantIndex) {
                    learn(reading)
                    continue
                }
                return use(reading, chunks)
            }
        }
        absent()
    }

    /// Answers were selected by fields of their requests: goes on with those variants that answer
    /// this one.
    private func learn(_ reading: DiskReading) {
        let entry = hall.node.store.promote(
            reading, [], hash: run.hash, clock: tier.clock, share: run.query.share)
        if let entry { hall.node.restore(entry, for: run.query) }
        let head = reading.record.head
        if let index = VariantIndex(head.span, at: 0..<head.count) { learn(index) }
    }

    private func learn(_ index: VariantIndex) {
        candidates = run.query.variantPlaces(of: index, in: hall.node.store).map {
            Candidate(name: EntryName(ofKey: $0.key), place: $0)
        }
    }

    /// What an entry is good for, by the request that has caused the fetch.
    private static func isUsable(_ facts: EntryFacts, for run: FillRun) -> Bool {
        guard facts.flags.isAnswer else { return false }
        let reuse = run.query.reuse(facts, now: SystemClock.now())
        // A peer would take it for fresh.
        return run.wish.isForPeer ? reuse == .fresh : reuse.isUsable
    }

    /// It may be given without another word: part by part, and nothing is to be asked meanwhile.
    private static func isFresh(_ facts: EntryFacts, for run: FillRun) -> Bool {
        let now = SystemClock.now()
        let counted = run.hall.node.fence.facts(facts, now: now)
        return isUsable(facts, for: run) && now < counted.freshUntil
    }

    /// What a disk thread has found.
    private enum Found: Sendable {
        case absent
        /// All of it, in memory.
        case whole(Resident)
        /// A fresh answer's first chunks.
        case part(DiskReading, [ByteBuffer])
        /// The origin would have to be asked about it, and memory has no room for it.
        case stale
        /// It says which fields select an answer.
        case index(DiskReading)
    }

    private func readLater(_ candidate: Candidate) {
        let (view, clock, run, store) = (view, tier.clock, run, hall.node.store)
        self.found = candidate
        let found = tier.readers.runIfActive(eventLoop: hall.loop) { () -> Found in
            guard var reading = view.read(candidate.name, key: candidate.place.key) else {
                return .absent
            }
            let facts = reading.facts(clock)
            if facts.flags.contains(.isVariantIndex) { return .index(reading) }
            // What the origin has to be asked about, now or meanwhile, is served from memory.
            let isFresh = Self.isFresh(facts, for: run)
            if !isFresh || facts.size <= Self.wholeBytesMax {
                let found = store.promote(
                    &reading, hash: candidate.place.hash, clock: clock, share: run.query.share
                ) {
                    view.readBody(&$0)
                }
                switch found {
                case .promoted(let resident): return .whole(resident)
                case .lost: return .absent
                case .noRoom where !isFresh: return .stale
                case .noRoom: break
                }
            }
            let chunks = view.readChunks(&reading, from: 0, count: Self.chunksAtOnceMax)
            return chunks.map { .part(reading, $0) } ?? .absent
        }
        found.assumeIsolated().whenComplete { [self] result in
            guard !isOver else { return }
            switch result {
            case .success(.whole(let resident)): use(resident)
            case .success(.part(let reading, let chunks)): deliver(reading, chunks)
            case .success(.stale): absent()
            case .success(.index(let reading)):
                learn(reading)
                look()
            case .success(.absent), .failure: look()
            }
        }
    }

    /// Serves an entry if it is fresh, and asks the origin about it if not.
    ///
    /// It is put into memory if `isInserted`.
    private func use(_ read: Resident, isInserted: Bool = true) {
        let (now, query) = (SystemClock.now(), run.query)
        // What was invalidated while it was read is gone, or has to be validated.
        guard let resident = hall.store.form(of: read) else { return look() }
        guard Self.isUsable(resident.facts, for: run) else {
            // What may stand in for an origin that fails must be found then.
            if isInserted, !run.wish.isProbe { hall.store.insert(resident, begun: run.stamp) }
            guard query.reuse(resident.facts, now: now) != .unusable else { return absent() }
            run.ask(about: resident)
            return absent()
        }
        if isInserted { hall.store.insert(resident, begun: run.stamp) }
        hall.touch(resident, now: now)
        run.found(resident, nominated: query.nominated(of: resident))
        finish()
        if query.reuse(resident.facts, now: now) == .stale(.whileRevalidate) {
            hall.revalidate(query, resident, cause: run.cause, client: run.client, now: now)
        }
    }

    /// The same for what was read at once, for which memory may have no room.
    private func use(_ reading: DiskReading, _ chunks: [ByteBuffer]) {
        let store = hall.node.store
        let hash = found?.place.hash ?? run.hash
        if let resident = store.promote(
            reading, chunks, hash: hash, clock: tier.clock, share: run.query.share)
        {
            return use(resident)
        }
        if Self.isFresh(reading.facts(tier.clock), for: run) {
            deliver(reading, chunks)
        } else {
            absent()
        }
    }

    private func absent() {
        guard !isOver else { return }
        isOver = true
        driver.absent()
    }

    // MARK: A body, part by part

    private func deliver(_ reading: DiskReading, _ chunks: [ByteBuffer]) {
        let facts = reading.facts(tier.clock)
        let head = RenderedHead(reading)
        let overhead = Resident.overhead(
            keyBytes: run.key.count, headBytes: head.bytes.count, bodyBytes: facts.size)
        let isKept =
            facts.size <= run.query.plan.objectBytesMax
            && run.reserve(
                overhead + BodyLayout.capacity(facts.size), judgedAs: found?.place.hash ?? run.hash)
        // What is read of a body that is on disk follows its readers, chunk by chunk, so that it
        // goes on with the smallest window even if that is not to be had.
        if !isKept { _ = run.openWindow() }
        run.answered(
            FillAnswer(
                facts: facts, head: head, sizeBytes: facts.size, isKept: isKept, isFromDisk: true,
                tags: reading.record.tags),
            isShared: true, nominated: run.query.nominated(byHead: reading.record.head))
        self.reading = reading
        guard !isKept else { return take(chunks) }
        chunksAtOnce = min(
            Self.chunksAtOnceMax, max(1, Int(run.windowBytes) / DiskFormat.chunkBytes))
        let isMore = facts.size > UInt64(chunksAtOnce * DiskFormat.chunkBytes)
        take(isMore ? Array(chunks.prefix(chunksAtOnce)) : chunks)
    }

    private func take(_ chunks: [ByteBuffer]) {
        guard let reading else { return }
        for chunk in chunks { run.received(chunk) }
        nextChunk += chunks.count
        guard !isOver else { return }
        guard nextChunk * DiskFormat.chunkBytes < Int(reading.record.bodyBytes) else {
            return end(reading)
        }
        readMore()
    }

    private func readMore() {
        guard !isOver, let before = reading else { return }
        guard !run.isPaused else {
            waits = true
            return
        }
        let (view, first, count) = (view, nextChunk, chunksAtOnce)
        let more = tier.readers.runIfActive(eventLoop: hall.loop) {
            () -> (DiskReading, [ByteBuffer]?) in
            var reading = before
            let chunks = view.readChunks(&reading, from: first, count: count)
            return (reading, chunks)
        }
        more.assumeIsolated().whenComplete { [self] result in
            guard !isOver else { return }
            guard case .success((let reading, let chunks?)) = result else {
                isOver = true
                return driver.lost()
            }
            self.reading = reading
            take(chunks)
        }
    }

    private func end(_ reading: DiskReading) {
        let resident = run.ended(
            name: reading.record.name, tags: reading.record.tags, place: found?.place
        ) { _ in
            (reading.facts(tier.clock), RenderedHead(reading))
        }
        if let resident {
            hall.store.insert(resident, begun: run.stamp)
            hall.touch(resident, now: SystemClock.now())
        }
        finish()
    }

    private func finish() {
        isOver = true
        driver.finish()
    }
}
