import Ground
import Store
import Testing
import Tiers
import Trials

@Suite("Starting the disk log", .disabled(if: Trials.isReduced))
struct DiskLogStartTests {
    /// The numbers below `count` that are found.
    private func found(_ rig: LogRig, _ count: Int) throws -> [Int] {
        try (0..<count).filter { try rig.find($0) != nil }
    }

    /// A full log of 8 segments with responses stored in the order of their numbers.
    private func full() throws -> LogRig {
        let rig = try LogRig(segments: 8, seed: 1)
        for number in 0..<60 { try rig.store(Answer(number, version: 1, bytes: 200_000)) }
        return rig
    }

    @Test("With a smaller limit the newest entries stay and the new limit holds")
    func smaller() throws {
        let rig = try full()
        let before = try found(rig, 60)
        try rig.stop()
        rig.plan = try LogRig.plan(segments: 5)
        try rig.start()
        rig.volume.forgetPeak()
        let after = try found(rig, 60)
        #expect(after.count >= 20 && after.count <= 25)
        #expect(after == Array(before.suffix(after.count)))
        let names = try rig.volume.names().compactMap(SegmentFiles.number)
        #expect(names.allSatisfy { $0 < 5 }, "\(names)")
        for number in 60..<100 { try rig.store(Answer(number, version: 1, bytes: 200_000)) }
        #expect(rig.volume.peakBytes <= rig.capBytes)
        #expect(try found(rig, 100).last == 99)
    }

    @Test("A power failure while a smaller limit is applied", arguments: UInt64(1)...40)
    func smallerWithoutPower(seed: UInt64) throws {
        let rig = try LogRig(segments: 8, seed: seed)
        for number in 0..<60 { try rig.store(Answer(number, version: 1, bytes: 200_000)) }
        try rig.delete([58])
        let before = try found(rig, 60)
        try rig.stop()
        rig.plan = try LogRig.plan(segments: 5)
        rig.volume.edit { $0.operations = Int(seed % 8)..<Int.max }
        _ = try? rig.start()
        rig.losePower()
        try rig.start()
        rig.volume.forgetPeak()
        let after = try found(rig, 60)
        #expect(after == Array(before.suffix(after.count)) && after.count >= 20)
        for number in 60..<80 { try rig.store(Answer(number, version: 1, bytes: 200_000)) }
        #expect(rig.volume.peakBytes <= rig.capBytes)
    }

    @Test("With a larger limit everything stays, and there is space for more")
    func larger() throws {
        let rig = try full()
        let before = try found(rig, 60)
        rig.plan = try LogRig.plan(segments: 12)
        try rig.restart()
        #expect(try found(rig, 60) == before)
        for number in 60..<75 { try rig.store(Answer(number, version: 1, bytes: 200_000)) }
        #expect(try found(rig, 75) == before + Array(60..<75))
        #expect(rig.volume.peakBytes <= rig.capBytes)
    }

    @Test("Entries past the age limit are not recovered")
    func ageAtStart() throws {
        let rig = try LogRig(segments: 4, seed: 1, ageLimit: .seconds(1_000))
        for number in 0..<4 { try rig.store(Answer(number, version: 1, bytes: 100)) }
        rig.now += 600_000
        try rig.touch(2)
        try rig.restart()
        #expect(try found(rig, 4) == [0, 1, 2, 3])
        try rig.stop()
        rig.now += 600_000
        try rig.start()
        #expect(try found(rig, 4) == [2])
    }

    @Test("A checkpoint keeps accesses through a kill; without one the footer's count")
    func checkpoint() throws {
        for isWritten in [true, false] {
            let rig = try LogRig(segments: 4, seed: 1, ageLimit: .seconds(1_000))
            for number in 0..<4 { try rig.store(Answer(number, version: 1, bytes: 100)) }
            try rig.restart()
            rig.now += 600_000
            try rig.touch(2, count: 3)
            if isWritten { try rig.log().checkpoint() }
            rig.kill()
            rig.now += 600_000
            try rig.start()
            #expect(try found(rig, 4) == (isWritten ? [2] : []))
            guard isWritten else { continue }
            let entry = try rig.log().view.shards.find(Answer.name(2).digest)
            #expect(entry?.accessCount == 3)
            #expect(entry?.lastAccess == UInt32((rig.now - 600_000) / 1000))
        }
    }

    @Test("After a kill, entries in an open segment count as last accessed at its last write")
    func benefitOfTheDoubt() throws {
        let rig = try LogRig(segments: 4, seed: 1, ageLimit: .seconds(1_000))
        try rig.store(Answer(0, version: 1, bytes: 100))
        rig.now += 900_000
        try rig.store(Answer(1, version: 1, bytes: 100))
        rig.kill()
        rig.now += 500_000
        try rig.start()
        #expect(try found(rig, 2) == [0, 1])
        rig.kill()
        rig.now += 600_000
        try rig.start()
        #expect(try found(rig, 2) == [])
    }

    @Test("A sweep expires idle entries only, and their segment is reused first")
    func sweep() throws {
        let rig = try LogRig(segments: 4, seed: 1, ageLimit: .seconds(1_000))
        let log = try rig.log()
        for number in 0..<40 { try rig.store(Answer(number, version: 1, bytes: 1_000)) }
        rig.now += 600_000
        for number in 0..<10 { try rig.touch(number) }
        rig.now += 600_000
        for _ in 0..<100 { log.expireIdleEntries(atMost: 2, now: rig.now) }
        #expect(try found(rig, 40) == Array(0..<10))
        #expect(rig.figures[.expiredEntries] == 30)
        rig.now += 600_000
        for _ in 0..<100 { log.expireIdleEntries(atMost: 2, now: rig.now) }
        #expect(log.view.shards.count == 0)
        for number in 0..<40 { try rig.store(Answer(number, version: 2, bytes: 200_000)) }
        #expect(rig.figures[.expiredEntries] == 40)
    }

    @Test("A reclaim expires idle entries, whatever their access count")
    func ageAtReclaim() throws {
        let rig = try LogRig(segments: 4, seed: 1, ageLimit: .seconds(1_000))
        for number in 0..<4 {
            try rig.store(Answer(number, version: 1, bytes: 1_000))
            try rig.touch(number, count: 9)
        }
        rig.now += 600_000
        try rig.touch(2)
        rig.now += 600_000
        for number in 10..<50 { try rig.store(Answer(number, version: 1, bytes: 200_000)) }
        #expect(try found(rig, 4) == [2])
        #expect(rig.figures[.expiredEntries] == 3)
    }

    @Test("With the clock set back everything is revalidated until it is stored again")
    func clockSetBack() throws {
        let rig = try LogRig(segments: 4, seed: 1)
        for number in 0..<4 { try rig.store(Answer(number, version: 1, bytes: 100)) }
        try rig.stop()
        rig.now -= 1_500
        try rig.start()
        #expect(rig.warnings.count == 1)
        for number in 0..<4 {
            #expect(try rig.find(number)?.isStale == true)
            #expect(try rig.findAtOnce(number)?.isStale == true)
        }
        try rig.store(Answer(2, version: 2, bytes: 100))
        #expect(try rig.find(2)?.isStale == false)
        rig.now += 10_000
        try rig.restart()
        #expect(rig.warnings.isEmpty)
        #expect(try (0..<4).filter { try rig.find($0)?.isStale == true } == [0, 1, 3])
    }

    @Test("An entry forgotten before it is written is not found, nor after a start")
    func unwanted() throws {
        let rig = try LogRig(segments: 4, seed: 11)
        let log = try rig.log()
        let response = Answer(1, version: 1, bytes: 1_000)
        let record = response.record(version: log.view.version, now: rig.now)
        let kept = try log.store(record, body: response.pieces, now: rig.now) { _ in false }
        #expect(kept == .superseded)
        #expect(try rig.find(1) == nil)
        try rig.restart()
        #expect(try rig.find(1) == nil)
        try rig.store(response)
        #expect(try rig.find(1) != nil)
    }

    @Test("A replaced entry does not return when its replacement is forgotten")
    func replaced() throws {
        let rig = try LogRig(segments: 6, seed: 1)
        try rig.store(Answer(0, version: 1, bytes: 100))
        // Closes the segment that contains it.
        for number in 1..<8 { try rig.store(Answer(number, version: 1, bytes: 200_000)) }
        try rig.store(Answer(0, version: 2, bytes: 100))
        try rig.log().forget(Answer.name(0))
        try rig.restart()
        #expect(try rig.find(0) == nil)
    }

    @Test("A file that was created but not used yet causes no warning", arguments: 0..<3)
    func unusedFile(operations: Int) throws {
        let rig = try LogRig(segments: 4, seed: 1)
        try rig.start()
        let first = rig.volume.operations + operations
        rig.volume.edit { $0.operations = first..<Int.max }
        _ = try? rig.store(Answer(0, version: 1, bytes: 100))
        rig.kill()
        try rig.start()
        #expect(rig.warnings.isEmpty)
        try rig.store(Answer(0, version: 2, bytes: 100))
        #expect(try rig.find(0) != nil)
    }

    @Test("A clock that is one second behind does not count as set back")
    func clockNearly() throws {
        let rig = try LogRig(segments: 4, seed: 1)
        try rig.store(Answer(0, version: 1, bytes: 100))
        try rig.stop()
        rig.now -= 1_000
        try rig.start()
        #expect(try rig.find(0)?.isStale == false && rig.warnings.isEmpty)
    }
}
