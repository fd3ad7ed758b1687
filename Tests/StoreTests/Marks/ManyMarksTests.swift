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

    private func purge(_ numbers: Range<Int>, _ index: InvalidationIndex, byTag: Bool = false) {
        for number in numbers {
            let target = byTag ? PurgeTarget.tag(Array("\(number)".utf8)) : Self.url(number)
            index.apply([target], isSoft: number % 2 == 0, now: .zero)
        }
    }

    /// Prunes marks, as a few ticks of a node do.
    private func tick(_ index: InvalidationIndex, _ leastElsewhere: InvalidationVersion = .last) {
        for _ in 0..<4 {
            index.pruneMarks(
                leastVersionOnDisk: { leastElsewhere }, fingerprintsOnDisk: { _ in [] })
        }
    }

    @Test("After 100,000 purges of URLs, 10,000 other entries are still hits")
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
            // A start recovers the marks that may cover an entry, and few others with equal
            // fingerprints.
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

    @Test("A node without older entries drops its marks within their epoch")
    func running() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        let log = try rig.log()
        for start in stride(from: 0, to: 600_000, by: 50_000) {
            purge(start..<start + 50_000, log.marks, byTag: true)
            try rig.tickMarks()
        }
        #expect(log.marks.takeFoldedCount() == 0, "no entry was covered by them")
        #expect(log.marks.count < 200_000)
        try rig.store(Answer(1, version: 1, bytes: 10))
        #expect(try rig.find(1)?.isStale == false)
    }

    @Test("A response in transit keeps the marks since its request")
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
        #expect(other == .written && found?.isStale == false, "requested after its mark")
        lease.release()
        #expect(log.marks.takeFoldedCount() == 0)
    }

    @Test("An entry in memory keeps the marks since its request")
    func residents() throws {
        let index = InvalidationIndex(key: .publiclyKnown, marksMax: 30_000)
        let entries = Entries(limitBytes: 1 << 20, marks: index)
        entries.put("photo", bytes: 10)
        #expect(index.leastStoredVersion() == index.version)
        purge(0..<20_000, index, byTag: true)
        #expect(index.leastStoredVersion() < index.version)
        tick(index)
        #expect(index.count == 20_000)
        purge(20_000..<40_000, index, byTag: true)
        #expect(index.takeFoldedCount() > 0, "not all marks fit")
        #expect(entries.find("photo")?.metadata.freshUntil == Instant(nanoseconds: .min))
        entries.put("photo", bytes: 10)
        tick(index)
        purge(40_000..<60_000, index, byTag: true)
        #expect(entries.find("photo")?.metadata.freshUntil == .distantFuture)
        #expect(index.takeFoldedCount() == 0)
    }

    @Test("Entries on disk keep the marks since their requests")
    func elsewhere() throws {
        let index = InvalidationIndex(key: .publiclyKnown, marksMax: 1_000)
        purge(0..<400, index, byTag: true)
        let version = index.version
        purge(400..<800, index, byTag: true)
        tick(index, version)
        #expect(index.count == 400)
    }

    @Test("Purges of URLs that are not stored leave no marks, and hits stay hits")
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
        #expect(log.marks.count < 20, "only marks whose fingerprint equals a stored entry's stay")
        for number in 0..<100 { #expect(try rig.find(number)?.isStale == false) }
        for number in 100..<200 {
            #expect(entries.find("\(number)")?.metadata.freshUntil == .distantFuture)
        }
        // Every stored entry is covered, in either tier, however late it is read.
        purge(50..<150, log.marks)
        for number in 100..<150 {
            for key in URLName.keys(of: Array("origin/\(number)".utf8)) {
                entries.store.applyMarksForKey(key)
            }
        }
        try rig.tickMarks()
        #expect(log.marks.count >= 75, "hard marks for memory have taken effect already")
        for number in 50..<100 { #expect(try rig.find(number)?.isStale != false) }
        for number in 100..<150 {
            #expect(entries.find("\(number)")?.metadata.freshUntil != .distantFuture, "\(number)")
        }
    }

    @Test("Marks do not wait for a very long request: its response is not stored")
    func late() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        let log = try rig.log()
        let index = log.marks
        let entries = Entries(limitBytes: 1 << 20, marks: index)
        let (old, fresh) = (entries.make("old", bytes: 10), entries.make("fresh", bytes: 10))
        let (early, late) = (try #require(old), try #require(fresh))
        entries.store.insert(early)
        let lease = index.pin()
        purge(0..<100_000, index)
        tick(index)
        #expect(index.count == 100_000 && !index.predatesForgottenMarks(lease.version))
        purge(100_000..<200_000, index)
        tick(index)
        #expect(index.count < 140_000 && index.predatesForgottenMarks(lease.version))
        let (key, version) = (Answer.key(9_999), lease.version)
        #expect(index.effect(on: key, tags: [], version: version) == nil, "its mark is pruned")
        #expect(index.effect(onResponse: key, tags: [], version: version) == .purged)
        let stored = try rig.store(Answer(9_999, version: 1, bytes: 10), version: version)
        #expect(stored == .purged && !entries.store.insert(late))
        #expect(entries.find("old") != nil, "an entry stored before the pruning stays")
        let next = index.pin()
        #expect(!index.predatesForgottenMarks(next.version) && index.takeFoldedCount() == 0)
        #expect(
            entries.store.insert(late, requestVersion: next.version), "it was on disk until now")
        lease.release()
        next.release()
    }

    @Test("An entry without a version pin is promoted only if its record is still current")
    func atOnce() throws {
        let entries = Entries(limitBytes: 1 << 20)
        let read = try #require(entries.make("photo", bytes: 10))
        #expect(!entries.store.insert(read) { false } && entries.find("photo") == nil)
        #expect(entries.store.insert(read) { true } && entries.find("photo") === read)
    }

    @Test("Marks within the minimum age are bounded and effective without pruning")
    func unreviewed() {
        let index = InvalidationIndex(key: .publiclyKnown, marksMax: 1 << 20)
        let before = index.version
        purge(0..<400_000, index)
        #expect(index.count == 400_000 && index.takeFoldedCount() == 0)
        for number in [0, 200_000, 399_999] {
            let effect = index.effect(on: Answer.key(number), tags: [], version: before)
            #expect(effect != nil, "\(number)")
        }
        tick(index)
        #expect((140_000..<300_000).contains(index.count), "marks older than that stay")
    }

    @Test("A second purge of a URL does not replace a mark that the journal still has to write")
    func again() throws {
        let index = InvalidationIndex(isJournaled: true, marksMax: 1_000)
        index.open(epoch: 1, RecoveredMarks(table: MarkTable(key: .publiclyKnown)))
        let before = index.version
        let first = index.apply([Self.url(1)], isSoft: false, now: .zero)
        index.journaled(upTo: first)
        index.apply([Self.url(1)], isSoft: true, now: .zero)
        func effect() throws -> InvalidationMark.Effect? {
            let pieces = index.encodedChunks(after: .zero, upTo: first)
            let read = try #require(MarkTable(encodedChunks: pieces, key: .publiclyKnown))
            return read.effect(on: Answer.key(1), tags: [], version: before)
        }
        #expect(try effect() == .purged)
        index.apply([Self.url(1)], isSoft: false, now: .zero)
        #expect(try effect() == .purged, "a kill now loses both later purges")
    }

    @Test("Marks are bounded, and those from before a directory was opened apply to it")
    func withoutLog() throws {
        let index = InvalidationIndex(key: .publiclyKnown, marksMax: InvalidationIndex.marksMax)
        let before = index.version
        purge(0..<300_000, index)
        #expect(index.takeFoldedCount() > 100_000)
        let late = index.pin()
        index.apply([Self.url(1)], isSoft: false, now: .zero)
        func effect(_ number: Int, _ version: InvalidationVersion) -> InvalidationMark.Effect? {
            index.effect(on: Answer.key(number), tags: [], version: version)
        }
        #expect(effect(1_000_000, before) == .stale && effect(299_999, before) == .purged)
        #expect(effect(1, late.version) == .purged && effect(2, late.version) == nil)
        index.open(epoch: 1, RecoveredMarks(table: MarkTable(key: .publiclyKnown)))
        #expect(effect(1, late.version) == .purged && effect(2, index.version) == nil)
        #expect(effect(1_000_000, before) == .stale && effect(299_999, before) == .purged)
        #expect(
            effect(1_000_000, InvalidationVersion(epoch: 0, count: .max)) == .stale,
            "entries of the log")
        late.release()
    }

    @Test("Entries under a fold of a former process are never used stale")
    func formerFold() {
        let index = InvalidationIndex()
        let fold = InvalidationMark(
            .everything, isSoft: true, version: InvalidationVersion(epoch: 1, count: 5))
        index.open(epoch: 2, RecoveredMarks(table: MarkTable([fold], key: .publiclyKnown)))
        index.apply([Self.url(1)], isSoft: true, now: .zero + .seconds(7))
        func since(_ count: UInt64) -> Instant {
            index.staleSince(
                Answer.key(1), tags: [], version: InvalidationVersion(epoch: 1, count: count))
        }
        #expect(since(4) == Instant(nanoseconds: .min))
        #expect(since(5) == .zero + .seconds(7))
    }

    @Test("A purge applies to a directory opened later, with the same hash key or another")
    func otherDirectory() throws {
        for key in [MarkHashKey.publiclyKnown, MarkHashKey(first: 1, second: 2)] {
            let index = InvalidationIndex(key: .publiclyKnown, marksMax: 1_000)
            let old = index.version
            let lease = index.pin()
            index.apply([Self.url(1)], isSoft: false, now: .zero)
            let between = index.version
            index.apply([Self.url(2)], isSoft: false, now: .zero)
            index.open(epoch: 9, RecoveredMarks(table: MarkTable(key: key)))
            func effect(_ number: Int, _ version: InvalidationVersion) -> InvalidationMark.Effect? {
                index.effect(on: Answer.key(number), tags: [], version: version)
            }
            #expect(effect(1, old) != nil && effect(2, between) != nil)
            #expect((effect(3, old) == .stale) == (key != .publiclyKnown))
            #expect(effect(1, index.version) == nil && effect(2, index.version) == nil)
            lease.release()
        }
    }

    @Test("Writes wait for the journal in order, and are dropped if it fails")
    func journal() {
        let index = InvalidationIndex(isJournaled: true, marksMax: 1_000)
        let outcomes = Mutex<[String]>([])
        func wait(_ what: String, _ version: InvalidationVersion) {
            index.whenJournaled(version) { isKept in
                outcomes.withLock { $0.append("\(what) \(isKept)") }
            }
        }
        index.open(epoch: 1, RecoveredMarks(table: MarkTable(key: .publiclyKnown)))
        wait("first", index.version)
        #expect(outcomes.withLock { $0 } == [])
        index.journaled(upTo: index.version)
        index.apply([Self.url(1)], isSoft: false, now: .zero)
        let second = index.version
        wait("second", second)
        wait("a forgotten one", .zero)
        index.apply([Self.url(2)], isSoft: false, now: .zero)
        wait("third", index.version)
        #expect(outcomes.withLock { $0 } == ["first true"])
        index.journaled(upTo: second)
        #expect(
            outcomes.withLock { $0 } == ["first true", "second true", "a forgotten one true"])
        index.journalFailed()
        #expect(outcomes.withLock { $0.last } == "third false")
    }
}
