import Ground
import NIOCore
import NIOPosix
import Store
import Synchronization
import Testing
import Tiers
import Trials

@Suite("Invalidated entries in memory")
struct MemoryStoreMarksTests {
    private let entries = Entries(limitBytes: 1 << 20)
    private var marks: InvalidationIndex { entries.store.marks }

    /// Invalidates as a node does.
    private func mark(_ target: PurgeTarget, isSoft: Bool = false, at seconds: Int64 = 1) {
        marks.apply([target], isSoft: isSoft, now: .zero + .seconds(seconds))
        guard case .url(let name) = target else { return }
        for key in URLName.keys(of: name) { entries.store.applyMarksForKey(key) }
    }

    private static let covering: [PurgeTarget] = [
        .url(Array("origin/a/photo".utf8)), .prefix(host: Array("origin".utf8), path: []),
        .prefix(host: Array("origin".utf8), path: Array("/a".utf8)), .tag(Array("shoes".utf8)),
        .everything,
    ]

    @Test(
        "A hard mark of any kind removes the entries that it covers, and no others",
        arguments: covering)
    func hard(target: PurgeTarget) throws {
        let tags = [Array("shoes".utf8)]
        entries.put("a/photo", bytes: 100, tags: tags)
        entries.put("a/photograph", bytes: 100)
        let used = entries.store.account.usedBytes
        mark(target)
        #expect(entries.find("a/photo") == nil)
        #expect(entries.store.account.usedBytes < used)
        let isOtherCovered =
            switch target {
            case .url, .tag: false
            default: true
            }
        #expect((entries.find("a/photograph") == nil) == isOtherCovered)
        entries.put("a/photo", bytes: 100, marker: 2, tags: tags)
        #expect(entries.find("a/photo") != nil, "an entry requested later is served")
    }

    @Test(
        "A soft mark makes the entries that it covers stale from its time on", arguments: covering)
    func soft(target: PurgeTarget) throws {
        entries.put("a/photo", bytes: 100, tags: [Array("shoes".utf8)])
        let count = entries.store.count
        mark(target, isSoft: true, at: 7)
        let found = try #require(entries.find("a/photo"))
        #expect(found.metadata.freshUntil == .zero + .seconds(7))
        #expect(found.body.size == 100 && entries.store.count == count)
        mark(target, isSoft: true, at: 20)
        #expect(entries.find("a/photo") === found, "it is stale already")
    }

    @Test("A response requested before a mark is not stored, whenever it arrives")
    func late() {
        let before = marks.version
        mark(.url(Array("origin/photo".utf8)))
        #expect(entries.put("photo", bytes: 10, version: before) == nil)
        #expect(entries.find("photo") == nil)
        entries.put("photo", bytes: 10, marker: 1)
        #expect(entries.put("photo", bytes: 10, marker: 2, version: before) == nil)
        #expect(entries.find("photo") != nil, "nor does it replace a newer one")
    }

    @Test("A response requested before a soft mark is stale, whenever it arrives")
    func lateSoft() {
        let before = marks.version
        mark(.tag([1]), isSoft: true, at: 3)
        entries.put("photo", bytes: 10, tags: [[1]], version: before)
        #expect(entries.find("photo")?.metadata.freshUntil == .zero + .seconds(3))
    }

    @Test("After unknown invalidations everything is stale for ever")
    func unknown() {
        entries.put("photo", bytes: 10)
        marks.apply([.everything], isSoft: true, now: nil)
        #expect(entries.find("photo")?.metadata.freshUntil == Instant(nanoseconds: .min))
        mark(.everything, isSoft: true, at: 9)
        #expect(entries.find("photo")?.metadata.freshUntil == Instant(nanoseconds: .min))
        entries.put("photo", bytes: 10)
        mark(.everything, isSoft: true, at: 20)
        #expect(entries.find("photo")?.metadata.freshUntil == .zero + .seconds(20))
    }

    @Test("A variant is purged with its URL")
    func variants() {
        entries.put("photo\n0123\naccept:image/webp\n", bytes: 10)
        entries.put("photo", bytes: 10)
        mark(.url(Array("origin/photo".utf8)))
        #expect(entries.find("photo\n0123\naccept:image/webp\n") == nil)
    }

    @Test("The variants in a variant index are removed with it")
    func indexed() {
        let variants = ["webp", "avif"].map { "photo\n0123\naccept:image/\($0)\n" }
        for variant in variants { entries.put(variant, bytes: 10) }
        entries.put("photo", bytes: 0, flags: .isVariantIndex, tags: variants.map(Entries.key))
        mark(.url(Array("origin/photo".utf8)))
        entries.store.applyMarksForKey(Entries.key("photo"))
        #expect(entries.store.count == 0)
    }

    @Test("A scan for the least version includes entries stored at positions it has passed")
    func walk() throws {
        let entries = Entries(limitBytes: 1 << 20, shardCount: 1)
        let store = entries.store
        let old = store.marks.version
        let low = try #require(entries.put("a", bytes: 10))
        store.marks.apply([.url(Array("other".utf8))], isSoft: false, now: .zero)
        let high = try #require(entries.put("b", bytes: 10))
        let first = store.contents.leastVersion(inShard: 0, below: nil, atMost: 1)
        #expect(first.least == store.marks.version && first.next == 1)
        // The position freed last is reused first.
        store.remove(low)
        store.remove(high)
        entries.put("a", bytes: 10, version: old)
        let second = store.contents.leastVersion(inShard: 0, below: first.next, atMost: 1)
        #expect(second.least == old && second.next == nil)
        entries.put("a", bytes: 10)
        #expect(
            store.contents.leastVersion(inShard: 0, below: nil, atMost: 9).least
                == store.marks.version)
    }

    /// Stores the entry repeatedly, each time with a version from well before.
    private final class Writer: Sendable {
        let entries: Entries
        private let isOver = Atomic<Bool>(false)

        init(_ entries: Entries) {
            self.entries = entries
        }

        func run() {
            var version = entries.store.marks.version
            while !isOver.load(ordering: .relaxed) {
                let next = entries.store.marks.version
                entries.put("photo", bytes: 10, version: version)
                version = next
            }
        }

        func stop() {
            isOver.store(true, ordering: .relaxed)
        }
    }

    @Test("No entry older than an applied mark is found, whatever is stored concurrently")
    func races() async throws {
        let threads = NIOThreadPool(numberOfThreads: 1)
        threads.start()
        let writer = Writer(entries)
        threads.submit { _ in writer.run() }
        let key = Entries.key("photo")
        for _ in 0..<20_000 {
            let mark = marks.apply(
                [.url(Array("origin/photo".utf8))], isSoft: false, now: .zero)
            entries.store.applyMarksForKey(key)
            guard let found = entries.find("photo"), found.version < mark else { continue }
            Issue.record("found \(found.version) after \(mark)")
            break
        }
        writer.stop()
        try await threads.shutdownGracefully()
    }
}

@Suite("The marks of a node")
struct InvalidationIndexTests {
    private let key = Array("http://origin/photo".utf8)
    private let url = PurgeTarget.url(Array("origin/photo".utf8))

    private func effect(_ index: InvalidationIndex, _ version: InvalidationVersion)
        -> InvalidationMark.Effect?
    {
        index.effect(on: key, tags: [], version: version)
    }

    @Test("Invalidations from before the log was opened cover all its entries")
    func beforeLog() throws {
        let index = InvalidationIndex(key: .publiclyKnown, marksMax: 100)
        index.apply([url], isSoft: false, now: .zero)
        index.open(epoch: 4, RecoveredMarks(table: MarkTable(key: .publiclyKnown)))
        #expect(effect(index, InvalidationVersion(epoch: 3, count: 99)) == .purged)
        #expect(effect(index, InvalidationVersion(epoch: 4, count: 0)) == .purged)
        #expect(effect(index, index.version) == nil)
    }

    /// Applies marks and checks that they cover entries just older than them.
    private final class Applier: Sendable {
        let index: InvalidationIndex
        let missed = Atomic<Int>(0)
        private let isOver = Atomic<Bool>(false)

        init(_ index: InvalidationIndex) {
            self.index = index
        }

        func run() {
            var asked: [InvalidationVersion] = []
            for number in 0... {
                asked.append(index.version)
                index.apply([.tag(Array("\(number)".utf8))], isSoft: false, now: .zero)
                // Only now and then over a longer range, so that the writer also gets its turn.
                let looks = number % 16 == 0 ? max(0, number - 400)...number : number...number
                let isMissed = looks.contains {
                    let tags = [Array("\($0)".utf8)]
                    return index.effect(on: Answer.key(0), tags: tags, version: asked[$0]) == nil
                }
                if isMissed { missed.add(1, ordering: .relaxed) }
                if isOver.load(ordering: .relaxed) { return }
            }
        }

        func stop() {
            isOver.store(true, ordering: .relaxed)
        }
    }

    @Test(
        "Marks applied during pruning and encoding are not lost",
        .disabled(if: Trials.isReduced))
    func concurrent() async throws {
        let index = InvalidationIndex(key: .publiclyKnown, marksMax: 1_000)
        let applier = Applier(index)
        let threads = NIOThreadPool(numberOfThreads: 1)
        threads.start()
        threads.submit { _ in applier.run() }
        var pieces = 0
        while index.version.count < 100_000 {
            let lease = index.pin()
            index.pruneMarks(leastVersionOnDisk: { .last }, fingerprintsOnDisk: { _ in [] })
            pieces += index.encodedChunks(after: .zero, upTo: lease.version).count
            lease.release()
        }
        applier.stop()
        try await threads.shutdownGracefully()
        #expect(applier.missed.load(ordering: .relaxed) == 0)
        #expect(index.count <= 1_000 && pieces > 0)
    }

    @Test("A segment opened before the journal has a mark makes no claim about it")
    func segment() throws {
        let rig = try LogRig(segments: 4, seed: 3)
        let log = try rig.start(InvalidationIndex(isJournaled: true, marksMax: 100))
        let before = log.view.version
        log.marks.journaled(upTo: before)
        log.marks.apply([url], isSoft: false, now: .zero)
        try rig.store(Answer(1, version: 1, bytes: 10), version: before)
        rig.kill()
        try rig.start()
        #expect(rig.warnings.isEmpty, "a start misses no mark")
    }
}
