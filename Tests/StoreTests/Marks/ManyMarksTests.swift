import Ground
import Store
import Synchronization
import Testing
import Tiers
import Trials

@Suite("Very many invalidations", .disabled(if: Trials.isReduced))
struct ManyMarksTests {
    private static func url(_ number: Int) -> PurgeTarget {
        .url(Array("origin/\(number)".utf8))
    }

    private func purge(_ numbers: Range<Int>, _ book: InvalidationIndex, byTag: Bool = false) {
        for number in numbers {
            let target = byTag ? PurgeTarget.tag(Array("\(number)".utf8)) : Self.url(number)
            book.apply([target], isSoft: number % 2 == 0, now: .zero)
        }
    }

    /// A node's tick: a few of them find what can be dropped.
    private func tick(_ book: InvalidationIndex, _ leastElsewhere: InvalidationVersion = .last) {
        for _ in 0..<4 {
            book.pruneMarks(leastVersionOnDisk: { leastElsewhere }, fingerprintsOnDisk: { _ in [] })
        }
    }

    @Test("100,000 URLs are purged: 10,000 entries not among them are hits, the others are not")
    func story() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        rig.plan = try DiskPlan(
            limitBytes: 1 << 30, objectBytesMax: 64 << 20, formerSegmentBytes: nil)
        for number in 0..<10_100 { try rig.store(Answer(number, version: 1, bytes: 100)) }
        try rig.restart()
        for number in 10_000..<110_000 { try rig.delete([number]) }
        for life in 0..<3 {
            var (hits, covered) = (0, 0)
            for number in 0..<10_100 {
                let found = try rig.find(number)
                if number < 10_000 {
                    hits += found?.isStale == false ? 1 : 0
                } else {
                    covered += found?.isStale ?? true ? 1 : 0
                }
            }
            #expect(hits == 10_000 && covered == 100, "life \(life)")
            #expect(rig.warnings == [])
            let (count, folded) = (try rig.log().marks.count, try rig.log().marks.takeFoldedCount())
            // A start takes up what may cover something; few others have a fingerprint of those.
            #expect((life == 0 ? 100_000...100_000 : 100...110).contains(count) && folded == 0)
            if life == 0 {
                rig.kill()
                try rig.start()
            } else {
                try rig.restart()
            }
        }
        #expect(rig.volume.peakBytes <= rig.capBytes)
    }

    @Test("a node that holds nothing older drops its marks in the epoch that they are of")
    func running() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        let log = try rig.log()
        for start in stride(from: 0, to: 600_000, by: 50_000) {
            purge(start..<start + 50_000, log.marks, byTag: true)
            try rig.tickMarks()
        }
        #expect(log.marks.takeFoldedCount() == 0, "nothing was held that they cover")
        #expect(log.marks.count < 200_000)
        try rig.store(Answer(1, version: 1, bytes: 10))
        #expect(try rig.find(1)?.isStale == false)
    }

    @Test("an answer on its way keeps the marks that came since it was asked for")
    func leases() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        let log = try rig.log()
        purge(0..<140_000, log.marks)
        let lease = log.marks.pin()
        purge(140_000..<200_000, log.marks)
        try rig.tickMarks()
        #expect(log.marks.count == 60_000)
        #expect(
            try rig.store(Answer(150_001, version: 1, bytes: 10), version: lease.version) == .purged
        )
        let other = try rig.store(Answer(9_999, version: 1, bytes: 10), version: lease.version)
        let found = try rig.find(9_999)
        #expect(other == .written && found?.isStale == false, "asked for after its mark")
        lease.release()
        #expect(log.marks.takeFoldedCount() == 0)
    }

    @Test("an entry in memory keeps the marks that came since it was asked for")
    func residents() throws {
        let book = InvalidationIndex(key: .publiclyKnown, marksMax: 30_000)
        let entries = Entries(limitBytes: 1 << 20, marks: book)
        entries.put("photo", bytes: 10)
        #expect(book.leastStoredVersion() == book.version)
        purge(0..<20_000, book, byTag: true)
        #expect(book.leastStoredVersion() < book.version)
        tick(book)
        #expect(book.count == 20_000)
        purge(20_000..<40_000, book, byTag: true)
        #expect(book.takeFoldedCount() > 0, "there was no room for all")
        #expect(entries.find("photo")?.metadata.freshUntil == Instant(nanoseconds: .min))
        entries.put("photo", bytes: 10)
        tick(book)
        purge(40_000..<60_000, book, byTag: true)
        #expect(entries.find("photo")?.metadata.freshUntil == .distantFuture)
        #expect(book.takeFoldedCount() == 0)
    }

    @Test("what the disk holds keeps the marks that came since it was asked for")
    func elsewhere() throws {
        let book = InvalidationIndex(key: .publiclyKnown, marksMax: 1_000)
        purge(0..<400, book, byTag: true)
        let version = book.version
        purge(400..<800, book, byTag: true)
        tick(book, version)
        #expect(book.count == 400)
    }

    @Test("purges of names that nobody has stored leave nothing, and hits stay hits")
    func strangers() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        for number in 0..<100 { try rig.store(Answer(number, version: 1, bytes: 100)) }
        let log = try rig.log()
        let entries = Entries(limitBytes: 1 << 20, marks: log.marks)
        for number in 100..<200 { entries.put("\(number)", bytes: 10) }
        for start in stride(from: 1_000, to: 401_000, by: 20_000) {
            purge(start..<start + 20_000, log.marks)
            log.marks.pruneMarks(
                leastVersionOnDisk: { log.leastVersion }, fingerprintsOnDisk: log.fingerprintsOnDisk
            )
        }
        try rig.tickMarks()
        #expect(log.marks.takeFoldedCount() == 0)
        #expect(log.marks.count < 20, "but for one of a fingerprint with one that is held")
        for number in 0..<100 { #expect(try rig.find(number)?.isStale == false) }
        for number in 100..<200 {
            #expect(entries.find("\(number)")?.metadata.freshUntil == .distantFuture)
        }
        // What is held is covered, wherever it is, however late it is looked at.
        purge(50..<150, log.marks)
        for number in 100..<150 {
            for key in URLName.keys(of: Array("origin/\(number)".utf8)) {
                entries.store.applyMarksForKey(key)
            }
        }
        try rig.tickMarks()
        #expect(log.marks.count >= 75, "of memory those that are hard have done their work")
        for number in 50..<100 { #expect(try rig.find(number)?.isStale != false) }
        for number in 100..<150 {
            #expect(entries.find("\(number)")?.metadata.freshUntil != .distantFuture, "\(number)")
        }
    }

    @Test("a request that takes very long is not waited for: what comes of it is kept nowhere")
    func late() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        let log = try rig.log()
        let book = log.marks
        let entries = Entries(limitBytes: 1 << 20, marks: book)
        let (old, fresh) = (entries.make("old", bytes: 10), entries.make("fresh", bytes: 10))
        let (early, late) = (try #require(old), try #require(fresh))
        entries.store.insert(early)
        let lease = book.pin()
        purge(0..<100_000, book)
        tick(book)
        #expect(book.count == 100_000 && !book.predatesForgottenMarks(lease.version))
        purge(100_000..<200_000, book)
        tick(book)
        #expect(book.count < 140_000 && book.predatesForgottenMarks(lease.version))
        let (key, version) = (Answer.key(9_999), lease.version)
        #expect(book.effect(on: key, tags: [], version: version) == nil, "its mark is forgotten")
        #expect(book.effect(onResponse: key, tags: [], version: version) == .purged)
        let stored = try rig.store(Answer(9_999, version: 1, bytes: 10), version: version)
        #expect(stored == .purged && !entries.store.insert(late))
        #expect(entries.find("old") != nil, "what was held when it was looked stays")
        let next = book.pin()
        #expect(!book.predatesForgottenMarks(next.version) && book.takeFoldedCount() == 0)
        #expect(
            entries.store.insert(late, requestVersion: next.version), "it was on disk until now")
        lease.release()
        next.release()
    }

    @Test("an entry that nobody holds a lease for is put in only if it is still where it was")
    func atOnce() throws {
        let entries = Entries(limitBytes: 1 << 20)
        let read = try #require(entries.make("photo", bytes: 10))
        #expect(!entries.store.insert(read) { false } && entries.find("photo") == nil)
        #expect(entries.store.insert(read) { true } && entries.find("photo") === read)
    }

    @Test("young marks that nobody reviews are no more than twice so many, and still cover")
    func unreviewed() {
        let book = InvalidationIndex(key: .publiclyKnown, marksMax: 1 << 20)
        let before = book.version
        purge(0..<400_000, book)
        #expect(book.count == 400_000 && book.takeFoldedCount() == 0)
        for number in [0, 200_000, 399_999] {
            let effect = book.effect(on: Answer.key(number), tags: [], version: before)
            #expect(effect != nil, "\(number)")
        }
        tick(book)
        #expect((140_000..<300_000).contains(book.count), "those that became old stay")
    }

    @Test("what is purged again before the journal has that is in it still, for the first purge")
    func again() throws {
        let book = InvalidationIndex(isJournaled: true, marksMax: 1_000)
        book.open(epoch: 1, RecoveredMarks(table: MarkTable(key: .publiclyKnown)))
        let before = book.version
        let first = book.apply([Self.url(1)], isSoft: false, now: .zero)
        book.journaled(upTo: first)
        book.apply([Self.url(1)], isSoft: true, now: .zero)
        func effect() throws -> InvalidationMark.Effect? {
            let pieces = book.encodedChunks(after: .zero, upTo: first)
            let read = try #require(MarkTable(encodedChunks: pieces, key: .publiclyKnown))
            return read.effect(on: Answer.key(1), tags: [], version: before)
        }
        #expect(try effect() == .purged)
        book.apply([Self.url(1)], isSoft: false, now: .zero)
        #expect(try effect() == .purged, "a kill now leaves neither of the later two")
    }

    @Test("marks are bounded, and those of before a directory was opened hold in it")
    func withoutLog() throws {
        let book = InvalidationIndex(key: .publiclyKnown, marksMax: InvalidationIndex.marksMax)
        let before = book.version
        purge(0..<300_000, book)
        #expect(book.takeFoldedCount() > 100_000)
        let late = book.pin()
        book.apply([Self.url(1)], isSoft: false, now: .zero)
        func effect(_ number: Int, _ version: InvalidationVersion) -> InvalidationMark.Effect? {
            book.effect(on: Answer.key(number), tags: [], version: version)
        }
        #expect(effect(1_000_000, before) == .stale && effect(299_999, before) == .purged)
        #expect(effect(1, late.version) == .purged && effect(2, late.version) == nil)
        book.open(epoch: 1, RecoveredMarks(table: MarkTable(key: .publiclyKnown)))
        #expect(effect(1, late.version) == .purged && effect(2, book.version) == nil)
        #expect(effect(1_000_000, before) == .stale && effect(299_999, before) == .purged)
        #expect(
            effect(1_000_000, InvalidationVersion(epoch: 0, count: .max)) == .stale,
            "what a log holds")
        late.release()
    }

    @Test("what became one mark in a former process is not used stale, whatever comes later")
    func formerFold() {
        let book = InvalidationIndex()
        let fold = InvalidationMark(
            .everything, isSoft: true, version: InvalidationVersion(epoch: 1, count: 5))
        book.open(epoch: 2, RecoveredMarks(table: MarkTable([fold], key: .publiclyKnown)))
        book.apply([Self.url(1)], isSoft: true, now: .zero + .seconds(7))
        func since(_ count: UInt64) -> Instant {
            book.staleSince(
                Answer.key(1), tags: [], version: InvalidationVersion(epoch: 1, count: count))
        }
        #expect(since(4) == Instant(nanoseconds: .min))
        #expect(since(5) == .zero + .seconds(7))
    }

    @Test("what was purged stays so in a directory of other marks, by their key or another")
    func otherDirectory() throws {
        for key in [MarkHashKey.publiclyKnown, MarkHashKey(first: 1, second: 2)] {
            let book = InvalidationIndex(key: .publiclyKnown, marksMax: 1_000)
            let old = book.version
            let lease = book.pin()
            book.apply([Self.url(1)], isSoft: false, now: .zero)
            let between = book.version
            book.apply([Self.url(2)], isSoft: false, now: .zero)
            book.open(epoch: 9, RecoveredMarks(table: MarkTable(key: key)))
            func effect(_ number: Int, _ version: InvalidationVersion) -> InvalidationMark.Effect? {
                book.effect(on: Answer.key(number), tags: [], version: version)
            }
            #expect(effect(1, old) != nil && effect(2, between) != nil)
            #expect((effect(3, old) == .stale) == (key != .publiclyKnown))
            #expect(effect(1, book.version) == nil && effect(2, book.version) == nil)
            lease.release()
        }
    }

    @Test("what is to be kept on disk waits for the journal, in its order, and not in vain")
    func journal() {
        let book = InvalidationIndex(isJournaled: true, marksMax: 1_000)
        let heard = Mutex<[String]>([])
        func wait(_ what: String, _ version: InvalidationVersion) {
            book.whenJournaled(version) { isKept in
                heard.withLock { $0.append("\(what) \(isKept)") }
            }
        }
        book.open(epoch: 1, RecoveredMarks(table: MarkTable(key: .publiclyKnown)))
        wait("first", book.version)
        #expect(heard.withLock { $0 } == [])
        book.journaled(upTo: book.version)
        book.apply([Self.url(1)], isSoft: false, now: .zero)
        let second = book.version
        wait("second", second)
        wait("a forgotten one", .zero)
        book.apply([Self.url(2)], isSoft: false, now: .zero)
        wait("third", book.version)
        #expect(heard.withLock { $0 } == ["first true"])
        book.journaled(upTo: second)
        #expect(
            heard.withLock { $0 } == ["first true", "second true", "a forgotten one true"])
        book.journalFailed()
        #expect(heard.withLock { $0.last } == "third false")
    }
}
