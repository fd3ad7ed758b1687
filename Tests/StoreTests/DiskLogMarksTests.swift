import Ground
import Store
import Testing
import Tiers
import Trials

@Suite("What was deleted from the disk's log", .disabled(if: Trials.areFew))
struct DiskLogMarksTests {
    /// A log of four answers, two of which are deleted; no process has it.
    private func rig() throws -> LogRig {
        let rig = try LogRig(segments: 4, seed: 5)
        for number in 0..<4 { try rig.store(Answer(number, version: 1, bytes: 1_000)) }
        try rig.delete([1])
        try rig.delete([2])
        rig.kill()
        return rig
    }

    /// Starts, and holds that what was deleted is not served unasked, and that whatever had to be
    /// done for that is done once.
    private func check(_ rig: LogRig, _ what: String) throws {
        try rig.start()
        for number in [1, 2] {
            let found = try rig.find(number)
            #expect(found?.isStale ?? true, "\(what): \(number) is served")
        }
        let kept = try rig.find(3)
        #expect(kept != nil, "\(what)")
        let isDamaged = !rig.warnings.isEmpty
        #expect(kept?.isStale == isDamaged, "\(what)")
        try rig.store(Answer(5, version: 1, bytes: 10))
        rig.kill()
        try rig.start()
        #expect(rig.warnings.isEmpty, "\(what): \(rig.warnings)")
        let stored = try rig.find(5)
        #expect(stored?.isStale == false, "\(what)")
        for number in [1, 2] {
            let found = try rig.find(number)
            #expect(found?.isStale ?? true, "\(what): \(number) is served later")
        }
    }

    @Test("a flipped bit in the marks serves nothing that was deleted, and costs one revalidation")
    func flips() throws {
        let base = try rig()
        let used = MarksHeader.bytesCount + 2 * MarkWriter.markBytes
        for position in Array(0..<used) + [used + 100, 1 << 19, 1 << 20 - 1] {
            let rig = LogRig(base)
            rig.volume.flip("marks-0", at: position, mask: 1 << UInt8(position % 8))
            try check(rig, "byte \(position)")
        }
    }

    @Test(
        "marks that are cut, longer or unreadable serve nothing that was deleted",
        arguments: [0, 1, 63, 127, 128, 140, 160, 192, 4096, 1 << 20 - 1, 1 << 20 + 1, 2 << 20])
    func sizes(count: Int) throws {
        let rig = try rig()
        var bytes = Array(rig.volume.bytes(of: "marks-0").prefix(count))
        bytes += Array(repeating: 0, count: count - bytes.count)
        rig.volume.replace("marks-0", with: bytes)
        try check(rig, "\(count) bytes")
    }

    @Test("a kill while the first files of marks are made has nothing revalidated")
    func firstFiles() throws {
        // So many operations make them.
        for operation in 0..<12 {
            let rig = try LogRig(segments: 4, seed: 5)
            rig.volume.edit { $0.operations = operation..<Int.max }
            try? rig.delete([2])
            rig.kill()
            try rig.start()
            #expect(rig.warnings == [], "operation \(operation)")
            try rig.store(Answer(3, version: 1, bytes: 10))
            rig.kill()
            try rig.start()
            #expect(rig.warnings == [], "operation \(operation)")
            let found = try rig.find(3)
            #expect(found?.isStale == false, "operation \(operation)")
        }
    }

    @Test("both files of marks are damaged: everything is revalidated, and once")
    func both() throws {
        let rig = try rig()
        rig.volume.replace("marks-0", with: Array(repeating: 0x55, count: 1 << 20))
        rig.volume.replace("marks-1", with: Array(repeating: 0x55, count: 1 << 20))
        try check(rig, "both")
    }

    @Test("marks that cannot be read serve nothing that was deleted")
    func unreadable() throws {
        let rig = try rig()
        rig.volume.edit { $0.unreadable["marks-0"] = 0..<1 << 20 }
        try rig.start()
        for number in [1, 2] {
            let found = try rig.find(number)
            #expect(found?.isStale ?? true, "\(number) is served")
        }
        rig.volume.edit { $0.unreadable = [:] }
        rig.kill()
        try rig.start()
        #expect(rig.warnings.isEmpty)
        for number in [1, 2] {
            let found = try rig.find(number)
            #expect(found?.isStale ?? true, "\(number) is served")
        }
    }

    @Test("whichever writes of marks fail, what was deleted before and after stays so")
    func failingWrites() throws {
        for first in 0..<8 {
            for count in 1...8 {
                let rig = try LogRig(segments: 4, seed: 5)
                for number in 0..<20 { try rig.store(Answer(number, version: 1, bytes: 1_000)) }
                try rig.delete([0])
                try rig.restart()
                let begin = rig.volume.operations + first
                rig.volume.edit { $0.operations = begin..<begin + count }
                var deleted = [0]
                for number in 1..<20 {
                    let isDone = (try? rig.delete([number])) != nil
                    if isDone { deleted.append(number) }
                    // After each of them the process might be killed.
                    let other = LogRig(rig)
                    other.kill()
                    try other.start()
                    for number in deleted {
                        let found = try other.find(number)
                        #expect(found?.isStale ?? true, "\(first), \(count): \(number)")
                    }
                }
                #expect(deleted.count >= 20 - count)
                rig.kill()
                try rig.start()
                let found = try (0..<20).filter { try rig.find($0) != nil }
                #expect(found == [] && rig.warnings == [], "\(first), \(count)")
            }
        }
    }

    @Test("as long as nothing can be synced, the last whole copy of the marks is not touched")
    func failingSyncs() throws {
        let rig = try rig()
        try rig.delete([9])
        rig.volume.edit {
            $0.operations = 0..<Int.max
            $0.call = "sync"
        }
        for number in 10..<20 {
            #expect(throws: DiskFile.Failure.self) { try rig.delete([number]) }
            let other = LogRig(rig)
            other.kill()
            try other.start()
            let found = try (0..<4).filter { try other.find($0) != nil }
            #expect(found == [0, 3])
            #expect(other.warnings == [], "after \(number)")
        }
    }

    @Test("a footer that is torn brings back nothing whose mark is gone")
    func tornFooter() throws {
        let rig = try LogRig(segments: 4, seed: 5)
        try rig.store(Answer(1, version: 1, bytes: 1_000))
        try rig.delete([1])
        try rig.delete([2])
        try rig.store(Answer(3, version: 1, bytes: 1_000))
        try rig.restart()
        // A mark that cannot be written makes the next one take the others along that still count.
        let next = rig.volume.operations
        rig.volume.edit { $0.operations = next..<next + 1 }
        #expect(throws: DiskFile.Failure.self) { try rig.delete([4]) }
        try rig.delete([5])
        try rig.restart()
        let name = SegmentFiles.name(0)
        rig.kill()
        rig.volume.flip(name, at: 1 << 20 - 1, mask: 1)
        try rig.start()
        let found = try rig.find(1)
        #expect(found?.isStale ?? true)
        let other = try rig.find(3)
        #expect(other?.isStale == false)
    }

    @Test("a segment that a start cannot open brings back nothing whose mark is gone")
    func unopenable() throws {
        let rig = try rig()
        rig.volume.edit { $0.unopenable = [SegmentFiles.name(0)] }
        try rig.start()
        let next = rig.volume.operations
        rig.volume.edit { $0.operations = next..<next + 1 }
        #expect(throws: DiskFile.Failure.self) { try rig.delete([4]) }
        try rig.delete([5])
        rig.volume.edit { $0.unopenable = [] }
        rig.kill()
        try rig.start()
        for number in [1, 2] {
            let found = try rig.find(number)
            #expect(found?.isStale ?? true, "\(number) is served")
        }
        let kept = try rig.find(3)
        #expect(kept?.isStale == false)
    }

    @Test("of more marks than there is room for, the oldest half become one, for everything")
    func manyMarks() throws {
        let rig = try LogRig(segments: 4, seed: 5)
        for number in 0..<4 { try rig.store(Answer(number, version: 1, bytes: 1_000)) }
        try rig.delete([1])
        var folded = 0
        for start in stride(from: 1_000, to: 81_000, by: 100) {
            try rig.delete(Array(start..<start + 100))
            let isFound = try rig.find(1) != nil
            #expect(!isFound || folded > 0)
            guard folded == 0 else { continue }
            folded = try rig.log().marks.takeFolded()
            if folded > 0 { try rig.store(Answer(7, version: 1, bytes: 1_000)) }
        }
        #expect(folded > 10_000 && folded < 20_000, "half of the room")
        rig.kill()
        try rig.start()
        let deleted = try rig.find(1)
        #expect(deleted?.isStale ?? true)
        let kept = try rig.find(2)
        #expect(kept?.isStale == true)
        #expect(rig.warnings == [])
        #expect(rig.volume.peakBytes <= rig.capBytes)
    }

    @Test("what was begun before a delete is refused, what began after is kept")
    func late() throws {
        let rig = try LogRig(segments: 4, seed: 5)
        let lease = try rig.log().marks.lease()
        let before = lease.stamp
        try rig.delete([1])
        let late = try rig.store(Answer(1, version: 1, bytes: 10), stamp: before)
        #expect(late == .dead)
        let other = try rig.store(Answer(2, version: 1, bytes: 10), stamp: before)
        #expect(other == .written)
        let after = try rig.store(Answer(1, version: 2, bytes: 10))
        #expect(after == .written)
        try rig.restart()
        let found = try rig.find(1)
        #expect(found?.head == Answer(1, version: 2, bytes: 10).head)
        lease.end()
    }

    @Test("what nobody said to be on its way is not served unasked if its marks are gone")
    func unleased() throws {
        let rig = try LogRig(segments: 4, seed: 5)
        let before = try rig.log().view.stamp
        try rig.delete([1])
        // A mark that cannot be written has the next one written with those that still count.
        let next = rig.volume.operations
        rig.volume.edit { $0.operations = next..<next + 1 }
        #expect(throws: DiskFile.Failure.self) { try rig.delete([2]) }
        try rig.delete([3])
        try rig.store(Answer(1, version: 1, bytes: 10), stamp: before)
        for _ in 0..<2 {
            let found = try rig.find(1)
            #expect(found?.isStale ?? true)
            try rig.restart()
        }
    }
}
