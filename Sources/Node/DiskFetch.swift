import Ground
import HTTPRules
import NIOCore
import NIOPosix
import Serving
import Store
import Tiers
import Wire

/// The disk's side of a `FillRun`: looks whether the answer is there, and hands it on; if it is
/// not, or the origin has to be asked about it, the run goes on to the origin.
///
/// What the page cache holds is read at once, on the loop; the rest by a disk thread. A large body
/// goes to the readers part by part. Confined to its loop.
final class DiskFetch: FillSource {
    let run: FillRun
    private unowned let hall: Hall
    private let tier: DiskTier
    private let view: DiskView
    private let name: EntryName
    private var isSettled = false
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

    /// `name` is what the answer to the URL is called, variants apart.
    init(_ run: FillRun, name: EntryName, on hall: Hall, tier: DiskTier, view: DiskView) {
        self.run = run
        self.hall = hall
        self.tier = tier
        self.view = view
        self.name = name
    }

    func start() {
        look(from: 0)
    }

    // MARK: What the run asks for

    func pace() {
        guard waits, !run.isPaused else { return }
        waits = false
        readMore()
    }

    func cancel() {
        settle()
    }

    // MARK: Looking

    /// Looks for the candidates from number `first` on.
    private func look(from first: Int) {
        for number in first..<EntryName.candidateCount {
            let candidate = name.candidate(number, for: run.negotiation)
            guard view.shards.find(candidate.digest) != nil else { continue }
            let found = view.readAtOnce(candidate, key: run.key, room: &hall.diskRoom)
            switch found {
            case .absent: continue
            case .later: return readLater(number)
            case .whole(let reading, let chunks):
                guard reading.facts(tier.clock).answers(run.negotiation) else { continue }
                return use(reading, chunks)
            }
        }
        askOrigin()
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
    }

    private func readLater(_ number: Int) {
        let (view, clock, run, store) = (view, tier.clock, run, hall.node.store)
        let candidate = name.candidate(number, for: run.negotiation)
        let found = tier.readers.runIfActive(eventLoop: hall.loop) { () -> Found in
            guard var reading = view.read(candidate, key: run.key) else { return .absent }
            let facts = reading.facts(clock)
            guard facts.answers(run.negotiation) else { return .absent }
            // What the origin has to be asked about is served from memory afterwards.
            let isFresh = judge(facts, for: [], now: SystemClock.now()) != .revalidate
            if !isFresh || facts.size <= Self.wholeBytesMax {
                let found = store.promote(&reading, hash: run.hash, clock: clock) {
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
            guard !isSettled else { return }
            switch result {
            case .success(.whole(let resident)): use(resident)
            case .success(.part(let reading, let chunks)): deliver(reading, chunks)
            case .success(.stale): askOrigin()
            case .success(.absent), .failure: look(from: number + 1)
            }
        }
    }

    /// Serves an entry if it is fresh, and asks the origin about it if not.
    private func use(_ resident: Resident) {
        let now = SystemClock.now()
        guard judge(resident.facts, for: [], now: now) != .revalidate else {
            run.ask(about: resident)
            return askOrigin()
        }
        hall.node.store.insert(resident)
        hall.touch(resident, now: now)
        run.found(resident)
        settle()
    }

    /// The same for what was read at once, for which memory may have no room.
    private func use(_ reading: DiskReading, _ chunks: [ByteBuffer]) {
        let store = hall.node.store
        if let resident = store.promote(reading, chunks, hash: run.hash, clock: tier.clock) {
            return use(resident)
        }
        let isFresh =
            judge(reading.facts(tier.clock), for: [], now: SystemClock.now())
            != .revalidate
        if isFresh { deliver(reading, chunks) } else { askOrigin() }
    }

    private func askOrigin() {
        guard !isSettled else { return }
        isSettled = true
        hall.ended(self)
        hall.startOrigin(run, name: name)
    }

    // MARK: A body, part by part

    private func deliver(_ reading: DiskReading, _ chunks: [ByteBuffer]) {
        let facts = reading.facts(tier.clock)
        let head = RenderedHead(reading)
        let overhead = Resident.overhead(
            keyBytes: run.key.count, headBytes: head.bytes.count, bodyBytes: facts.size)
        let isKept =
            facts.size <= run.settings.objectBytesMax
            && run.reserve(overhead + BodyLayout.capacity(facts.size))
        // What is read of a body that is on disk follows its readers, chunk by chunk, so that it
        // goes on with the smallest window even if that is not to be had.
        if !isKept { _ = run.openWindow() }
        run.answered(
            FillAnswer(
                facts: facts, head: head, sizeBytes: facts.size, isKept: isKept, isFromDisk: true),
            isShared: true, varies: facts.varies)
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
        guard !isSettled else { return }
        guard nextChunk * DiskFormat.chunkBytes < Int(reading.record.bodyBytes) else {
            return end(reading)
        }
        readMore()
    }

    private func readMore() {
        guard !isSettled, let before = reading else { return }
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
            guard !isSettled else { return }
            guard case .success((let reading, let chunks?)) = result else {
                run.lost()
                return settle()
            }
            self.reading = reading
            take(chunks)
        }
    }

    private func end(_ reading: DiskReading) {
        let resident = run.ended(name: reading.record.name, tags: reading.record.tags) { _ in
            (reading.facts(tier.clock), RenderedHead(reading))
        }
        if let resident {
            hall.node.store.insert(resident)
            hall.touch(resident, now: SystemClock.now())
        }
        settle()
    }

    /// The run is over; nobody joins it any more.
    private func settle() {
        guard !isSettled else { return }
        isSettled = true
        hall.node.fills.remove(run)
        hall.ended(self)
    }
}
