import Ground
import Store
import Testing
import Tiers
import Trials

@Suite("Very many invalidations", .disabled(if: Trials.areFew))
struct ManyMarksTests {
    private static func url(_ number: Int) -> DiskMark.Target {
        .url(Array("origin/\(number)".utf8))
    }

    /// Invalidates URLs as a node does that catches up: some hundreds, then a write.
    private func purge(_ numbers: Range<Int>, _ log: DiskLog) throws {
        for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 500) {
            for number in start..<min(start + 500, numbers.upperBound) {
                log.marks.apply([Self.url(number)], isSoft: number % 2 == 0, now: .zero)
            }
            try log.writeMarks()
        }
    }

    @Test("100,000 URLs are purged: 10,000 entries not among them are hits, the others are not")
    func story() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        rig.plan = try DiskPlan(limitBytes: 1 << 30, formerSegmentBytes: nil)
        for number in 0..<10_100 { try rig.store(Answer(number, version: 1, bytes: 100)) }
        try rig.restart()
        try purge(10_000..<110_000, rig.log())
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
            let (count, folded) = (try rig.log().marks.count, try rig.log().marks.takeFolded())
            #expect(count == 100_000 && folded == 0)
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
        try purge(0..<200_000, log)
        #expect(log.marks.takeFolded() == 0, "nothing was held that they cover")
        #expect(log.marks.count < 40_000)
        try rig.store(Answer(1, version: 1, bytes: 10))
        rig.kill()
        try rig.start()
        #expect(rig.warnings == [])
        let found = try rig.find(1)
        #expect(found?.isStale == false)
    }

    @Test("an answer on its way keeps the marks that came since it was asked for")
    func leases() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        let log = try rig.log()
        try purge(0..<10_000, log)
        let lease = log.marks.lease()
        try purge(10_000..<35_000, log)
        #expect(log.marks.count >= 25_000)
        let late = try rig.store(Answer(12_345, version: 1, bytes: 10), stamp: lease.stamp)
        #expect(late == .dead)
        let other = try rig.store(Answer(9_999, version: 1, bytes: 10), stamp: lease.stamp)
        let found = try rig.find(9_999)
        #expect(other == .written && found?.isStale == false, "asked for after its mark")
        lease.end()
        #expect(log.marks.takeFolded() == 0)
    }

    @Test("an entry in memory keeps the marks that came since it was asked for")
    func residents() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        let log = try rig.log()
        let entries = Entries(limitBytes: 1 << 20, marks: log.marks)
        entries.put("photo", bytes: 10)
        #expect(log.marks.leastHeld() == log.marks.stamp)
        try purge(0..<20_000, log)
        #expect(log.marks.leastHeld() < log.marks.stamp)
        try purge(20_000..<40_000, log)
        #expect(log.marks.takeFolded() > 0, "there was no room for all")
        #expect(entries.find("photo")?.facts.freshUntil == Instant(nanoseconds: .min))
        entries.put("photo", bytes: 10)
        try purge(40_000..<60_000, log)
        #expect(entries.find("photo")?.facts.freshUntil == .distantFuture)
        #expect(log.marks.takeFolded() == 0)
    }

    @Test("marks go along when the limit changes, as far as there is room for them")
    func otherLimit() throws {
        let rig = try LogRig(segments: 10, seed: 9)
        let small = rig.plan
        rig.plan = try DiskPlan(limitBytes: 256 << 20, formerSegmentBytes: 1 << 20)
        for number in 0..<10 { try rig.store(Answer(number, version: 1, bytes: 10)) }
        try purge(5..<60_000, rig.log())
        try rig.store(Answer(70_000, version: 1, bytes: 10))
        for (plan, isFolded) in [(small, true), (rig.plan, false), (small, false)] {
            try rig.log().close()
            rig.volume.kill()
            rig.plan = plan
            try rig.start()
            #expect(rig.warnings == [])
            for name in ["marks-0", "marks-1"] {
                #expect(rig.volume.bytes(of: name).count == plan.marksFileBytes)
            }
            let folded = try rig.log().marks.takeFolded()
            #expect((folded > 0) == isFolded)
            for number in 0..<10 {
                let found = try rig.find(number)
                #expect(found?.isStale ?? true)
            }
            let newer = try rig.find(70_000)
            #expect(newer?.isStale == false)
        }
        rig.volume.forgetPeak()
        #expect(rig.volume.peakBytes <= rig.capBytes)
    }

    @Test("while no disk takes them marks are bounded, and a disk has in the end what covers all")
    func withoutLog() throws {
        let book = MarkBook(isForDisk: true)
        let before = book.stamp
        for number in 0..<300_000 { book.apply([Self.url(number)], isSoft: false, now: .zero) }
        #expect(book.takeFolded() > 100_000)
        let late = book.lease()
        book.apply([Self.url(1)], isSoft: false, now: .zero)
        func effect(_ number: Int, _ stamp: Stamp) -> DiskMark.Effect? {
            book.effect(on: nil, key: Answer.key(number), tags: [], stamp: stamp)
        }
        #expect(effect(1_000_000, before) == .stale && effect(299_999, before) == .dead)
        #expect(effect(1, late.stamp) == .dead && effect(2, late.stamp) == nil)
        book.open(epoch: 1, table: MarkTable(key: .known), capacity: 1_000)
        #expect(effect(1, late.stamp) == .dead && effect(2, book.stamp) == nil)
        #expect(effect(1_000_000, before) == .stale && effect(299_999, before) == .dead)
        #expect(effect(1_000_000, Stamp(epoch: 0, count: .max)) == .stale, "what a log holds")
        late.end()
    }

    @Test("what became one mark in a former process is not used stale, whatever comes later")
    func formerFold() {
        let book = MarkBook(isForDisk: true)
        let fold = StoredMark.unknown(before: Stamp(epoch: 1, count: 5))
        book.open(epoch: 2, table: MarkTable([fold], key: .known), capacity: 10)
        book.apply([Self.url(1)], isSoft: true, now: .zero + .seconds(7))
        func since(_ count: UInt64) -> Instant {
            book.staleSince(
                nil, key: Answer.key(1), tags: [], stamp: Stamp(epoch: 1, count: count))
        }
        #expect(since(4) == Instant(nanoseconds: .min))
        #expect(since(5) == .zero + .seconds(7))
    }

    @Test("marks that were written to a log which is lost cover all that another log cannot name")
    func otherLog() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        let log = try rig.log()
        let old = log.marks.stamp
        let lease = log.marks.lease()
        log.marks.apply([Self.url(1)], isSoft: false, now: .zero)
        try log.writeMarks()
        let between = log.marks.stamp
        log.marks.apply([Self.url(2)], isSoft: false, now: .zero)
        log.marks.open(epoch: 9, table: MarkTable(key: .known), capacity: 1_000)
        func effect(_ number: Int, _ stamp: Stamp) -> DiskMark.Effect? {
            log.marks.effect(on: nil, key: Answer.key(number), tags: [], stamp: stamp)
        }
        #expect(effect(1, old) != nil && effect(2, between) == .dead)
        #expect(effect(1, log.marks.stamp) == nil && effect(2, log.marks.stamp) == nil)
        lease.end()
    }

    @Test("what was purged stays so when the log is lost, and another is begun and written anew")
    func lostLog() throws {
        let rig = try LogRig(segments: 4, seed: 9)
        let book = try rig.log().marks
        let lease = book.lease()
        book.apply([Self.url(1)], isSoft: false, now: .zero)
        try rig.log().writeMarks()
        func effect(_ number: Int, _ stamp: Stamp) -> DiskMark.Effect? {
            book.effect(on: nil, key: Answer.key(number), tags: [], stamp: stamp)
        }
        // The directory was away, and is there again: nothing is lost.
        try rig.start(book)
        #expect(effect(1, lease.stamp) == .dead && effect(3, lease.stamp) == nil)
        // It is removed, and the process begins another log.
        rig.volume = SimulatedVolume()
        try rig.start(book)
        #expect(effect(1, lease.stamp) != nil)
        book.apply([Self.url(2)], isSoft: false, now: .zero)
        try rig.log().writeMarks()
        #expect(effect(1, lease.stamp) != nil && effect(2, lease.stamp) == .dead)
        #expect(effect(1, book.stamp) == nil && effect(2, book.stamp) == nil)
        try purge(1_000..<41_000, rig.log())
        #expect(effect(1, lease.stamp) != nil, "more than a file has room for")
        lease.end()
    }
}
