import Ground
import Store
import Testing
import Tiers
import Trials

@Suite("Deleted entries in the disk log", .disabled(if: Trials.isReduced))
struct DiskLogMarksTests {
    /// A stopped log of four responses, two of which are deleted.
    private func rig() throws -> LogRig {
        let rig = try LogRig(segments: 4, seed: 5)
        for number in 0..<4 { try rig.store(Answer(number, version: 1, bytes: 1_000)) }
        try rig.delete([1])
        try rig.delete([2])
        rig.kill()
        return rig
    }

    @Test("Deleted entries are not found after a start; the others are")
    func starts() throws {
        let rig = try rig()
        try rig.start()
        #expect(try (0..<4).filter { try rig.find($0) != nil } == [0, 3] && rig.warnings == [])
    }

    @Test("After a journal that lacks the last invalidations, everything is revalidated once")
    func journalIsBehind() throws {
        let rig = try rig()
        try rig.start()
        try rig.delete([9])
        try rig.store(Answer(4, version: 1, bytes: 10))
        rig.kill()
        rig.journal.removeLast()
        rig.journalReached.count -= 1
        try rig.start()
        #expect(rig.warnings.count == 1)
        for number in [0, 3, 4] {
            #expect(try rig.find(number)?.isStale == true, "\(number)")
        }
        try rig.store(Answer(5, version: 1, bytes: 10))
        #expect(try rig.find(5)?.isStale == false)
    }

    @Test("Mark files of an earlier version cause revalidation, and are removed afterwards")
    func formerMarks() throws {
        let rig = try rig()
        _ = try rig.volume.open("marks-0", creates: true)
        rig.volume.replace("marks-0", with: Array(repeating: 7, count: 1 << 20))
        for life in 0..<2 {
            try rig.start()
            #expect(rig.warnings.count == 1, "life \(life)")
            #expect(try rig.find(3)?.isStale == true, "life \(life)")
            #expect(rig.volume.bytes(of: "marks-0").isEmpty)
            rig.kill()
        }
        // Removed only after the journal has recorded the invalidation of everything.
        let index = InvalidationIndex(isJournaled: true)
        let log = try rig.start(index)
        log.removeLegacyMarkFiles()
        #expect(rig.has("marks-0"))
        index.journaled(upTo: index.version)
        log.removeLegacyMarkFiles()
        #expect(!rig.has("marks-0"))
    }

    @Test("A torn footer does not bring back an entry whose mark is gone")
    func tornFooter() throws {
        let rig = try LogRig(segments: 4, seed: 5)
        try rig.store(Answer(1, version: 1, bytes: 1_000))
        try rig.delete([1])
        try rig.delete([2])
        try rig.store(Answer(3, version: 1, bytes: 1_000))
        try rig.restart()
        let name = SegmentFiles.name(0)
        rig.kill()
        rig.volume.flip(name, at: 1 << 20 - 1, mask: 1)
        try rig.start()
        #expect(try rig.find(1)?.isStale != false)
        #expect(try rig.find(3)?.isStale == false)
    }

    @Test("A segment that cannot be opened at a start brings back no entry whose mark is gone")
    func unopenable() throws {
        let rig = try rig()
        rig.volume.edit { $0.unopenable = [SegmentFiles.name(0)] }
        try rig.start()
        let log = try rig.log()
        for number in 1_000..<2_000 { try rig.delete([number]) }
        try rig.tickMarks()
        #expect(log.leastVersion == .zero, "a later start may read the segment")
        #expect(log.marks.count > 1_000)
        rig.volume.edit { $0.unopenable = [] }
        rig.kill()
        try rig.start()
        for number in [1, 2] {
            #expect(try rig.find(number)?.isStale != false, "\(number) is served")
        }
        #expect(try rig.find(3)?.isStale == false)
    }

    @Test("A response requested before a delete is refused, one requested later is stored")
    func late() throws {
        let rig = try LogRig(segments: 4, seed: 5)
        let lease = try rig.log().marks.pin()
        let before = lease.version
        try rig.delete([1])
        #expect(try rig.store(Answer(1, version: 1, bytes: 10), version: before) == .purged)
        #expect(try rig.store(Answer(2, version: 1, bytes: 10), version: before) == .written)
        #expect(try rig.store(Answer(1, version: 2, bytes: 10)) == .written)
        try rig.restart()
        #expect(try rig.find(1)?.head == Answer(1, version: 2, bytes: 10).head)
        lease.release()
    }
}
