import Ground
import Simulation
import Testing
import Tiers
import Trials

@Suite("Marks on a disk that may lose its power")
struct MarksLogTests {
    private static let fileBytes = 4096
    private static let key = MarkKey(first: 3, second: 4)

    private func recover(
        _ disk: SimulatedDisk, fileBytes: Int = Self.fileBytes
    ) -> MarksLog.Recovered {
        MarksLog.recover(
            [disk.read(0), disk.read(1)], nodeID: .sample, fileBytes: fileBytes, key: Self.key)
    }

    private func empty() -> MarksLog {
        MarksLog(nodeID: .sample, fileBytes: Self.fileBytes, key: Self.key)
    }

    private func stamp(_ count: UInt64) -> Stamp { Stamp(epoch: 1, count: count) }

    private func mark(_ count: UInt64) -> DiskMark {
        DiskMark(.url(Array("a.test/\(count)".utf8)), isSoft: false, stamp: stamp(count))
    }

    private func stored(_ count: UInt64) -> StoredMark { StoredMark(mark(count), key: Self.key) }

    /// The writes that more marks take, and whether they are a new generation.
    private func writes(
        _ log: inout MarksLog, _ more: [DiskMark], least: Stamp, salt: UInt64
    ) -> (writes: [MarksLog.Write], rewriting: MarksLog.Rewriting?) {
        if let write = log.append(more) { return ([write], nil) }
        let rewriting = log.rewrite(more, least: least, salt: salt)
        return (rewriting.writes, rewriting)
    }

    private func make(_ writes: [MarksLog.Write], on disk: inout SimulatedDisk) {
        for write in writes {
            disk.write(write.bytes, to: write.file, at: write.offset)
            disk.sync(write.file)
        }
    }

    @Test("marks are found again after a restart, through many generations")
    func generations() {
        var disk = SimulatedDisk(files: 2, bytes: Self.fileBytes)
        var log = empty()
        var generations = 0
        for count in 1...1_000 as ClosedRange<UInt64> {
            let least = count > 10 ? count - 10 : 0
            let (writes, rewriting) = writes(
                &log, [mark(count)], least: stamp(least), salt: count | 1 << 40)
            make(writes, on: &disk)
            let found = recover(disk)
            #expect(found.doubt(reached: stamp(count)) == nil && found.log.marks == log.marks)
            let isComplete = (least + 1...count).allSatisfy { log.marks.contains(stored($0)) }
            #expect(isComplete)
            if let rewriting {
                generations += 1
                #expect(rewriting.foldedTo == nil, "there was no need")
                #expect(log.marks.count <= 11, "what covers nothing is left out")
                // The first generation has nothing to leave out.
                let droppedTo = generations == 1 ? nil : stamp(least)
                #expect(rewriting.droppedTo == droppedTo)
            }
            log = found.log
        }
        #expect(generations > 7)
    }

    @Test("the oldest half of what does not fit becomes one mark, the others stay")
    func overflow() {
        var log = empty()
        var disk = SimulatedDisk(files: 2, bytes: Self.fileBytes)
        var last = Stamp.zero
        for count in 1...1_000 as ClosedRange<UInt64> {
            let (writes, rewriting) = writes(&log, [mark(count)], least: .zero, salt: count)
            make(writes, on: &disk)
            if let to = rewriting?.foldedTo {
                #expect(to > last)
                last = to
                #expect(log.marks.count >= log.capacity / 3, "no more than half")
            }
            #expect(recover(disk).log.marks == log.marks)
            if last > .zero { #expect(log.marks.first == .unknown(before: last)) }
            let isComplete = (last.count + 1...count).allSatisfy { log.marks.contains(stored($0)) }
            #expect(isComplete, "\(count) marks, folded up to \(last)")
        }
        #expect(last.count > 700)
    }

    @Test("more marks at once than a file holds become one and as many as there is room for")
    func flood() {
        var log = empty()
        let flood = (1...10_000 as ClosedRange<UInt64>).map(mark)
        let rewriting = log.rewrite(flood, least: .zero, salt: 1)
        #expect(rewriting.foldedCount + log.marks.count - 1 == flood.count)
        #expect(log.marks.count > log.capacity / 3 && log.marks.count <= log.capacity)
        let isFitting = rewriting.writes.allSatisfy {
            $0.offset + $0.bytes.count <= Self.fileBytes
        }
        #expect(isFitting)
    }

    @Test("one thing that is invalidated again and again takes the place of one mark")
    func repeated() {
        var log = empty()
        for count in 1...5_000 as ClosedRange<UInt64> {
            let mark = DiskMark(.host([1]), isSoft: count % 2 == 0, stamp: stamp(count))
            let rewriting = writes(&log, [mark], least: .zero, salt: count).rewriting
            #expect(rewriting?.foldedTo == nil)
            #expect(rewriting == nil || log.marks.count <= 2)
        }
    }

    @Test("whatever of the unsynced writes is lost or torn, a synced mark is there or missed")
    func powerLoss() {
        var outcomes = (damaged: 0, whole: 0, folded: 0)
        for seed in Trials.seeds(1...3_000) {
            var dice = Dice(seed: seed)
            var disk = SimulatedDisk(files: 2, bytes: Self.fileBytes)
            var log = empty()
            var acknowledged: [DiskMark] = []
            var stepsLeft = Int.random(in: 1...900, using: &dice)
            var count: UInt64 = 0
            let drops = dice.next() % 2 == 0
            life: while true {
                count += 1
                let (writes, rewriting) = writes(
                    &log, [mark(count)], least: drops ? stamp(count / 2) : .zero,
                    salt: dice.next())
                outcomes.folded += rewriting?.foldedTo == nil ? 0 : 1
                for write in writes {
                    disk.write(write.bytes, to: write.file, at: write.offset)
                    stepsLeft -= 1
                    if stepsLeft <= 0 { break life }
                    disk.sync(write.file)
                    stepsLeft -= 1
                    if stepsLeft <= 0 { break life }
                }
                acknowledged.append(mark(count))
            }
            disk.crash(using: &dice)
            let found = recover(disk)
            let isDamaged = found.doubt(reached: acknowledged.last?.stamp ?? .zero) != nil
            let isThere = acknowledged.allSatisfy { mark in
                let stored = StoredMark(mark, key: Self.key)
                return found.log.marks.contains { other in
                    other == stored || other.kind == .everything && other.stamp >= mark.stamp
                }
            }
            #expect(isThere || isDamaged, "seed \(seed), \(count) marks")
            outcomes.damaged += isDamaged ? 1 : 0
            outcomes.whole += isThere ? 1 : 0
        }
        #expect(outcomes.whole > Trials.count(2_500), "\(outcomes)")
        #expect(outcomes.folded > Trials.count(100), "\(outcomes)")
    }

    @Test("a flipped bit anywhere in the files never makes a mark unseen without being noticed")
    func flips() {
        var disk = SimulatedDisk(files: 2, bytes: Self.fileBytes)
        var log = empty()
        for count in 1...5 as ClosedRange<UInt64> {
            make(writes(&log, [mark(count)], least: .zero, salt: 77).writes, on: &disk)
        }
        let files = [disk.read(0), disk.read(1)]
        for file in 0..<2 {
            for position in 0..<600 {
                var flipped: [[UInt8]?] = [files[0], files[1]]
                flipped[file]?[position] ^= 1 << UInt8(position % 8)
                let found = MarksLog.recover(
                    flipped, nodeID: .sample, fileBytes: Self.fileBytes, key: Self.key)
                #expect(
                    found.doubt(reached: stamp(5)) != nil || found.log.marks == log.marks,
                    "byte \(position) of file \(file)")
            }
        }
    }

    @Test("a file of another size is read, and the next one has the size that is wanted")
    func otherSize() throws {
        var disk = SimulatedDisk(files: 2, bytes: Self.fileBytes)
        var log = empty()
        for count in 1...100 as ClosedRange<UInt64> {
            make(writes(&log, [mark(count)], least: .zero, salt: 77).writes, on: &disk)
        }
        for fileBytes in [8192, 1 << 20] {
            let found = recover(disk, fileBytes: fileBytes)
            #expect(found.doubt(reached: stamp(100)) == nil)
            var next = found.log
            #expect(next.marks == log.marks && next.isOtherSize && !log.isOtherSize)
            let rewriting = next.rewrite([], least: .zero, salt: 78)
            #expect(next.marks == log.marks && !next.isOtherSize && rewriting.foldedTo == nil)
            let end = try #require(rewriting.writes.map { $0.offset + $0.bytes.count }.max())
            #expect(end == fileBytes)
        }
    }

    @Test("the key of a directory stays what it was, whichever a later start has drawn")
    func key() {
        var disk = SimulatedDisk(files: 2, bytes: Self.fileBytes)
        var log = empty()
        for count in 1...500 as ClosedRange<UInt64> {
            make(writes(&log, [mark(count)], least: stamp(count), salt: 77).writes, on: &disk)
        }
        let found = MarksLog.recover(
            [disk.read(0), disk.read(1)], nodeID: .sample, fileBytes: Self.fileBytes,
            key: MarkKey(first: 8, second: 9))
        #expect(found.log.key == Self.key && found.doubt(reached: stamp(500)) == nil)
        let none = MarksLog.recover(
            [nil, nil], nodeID: .sample, fileBytes: Self.fileBytes,
            key: MarkKey(first: 8, second: 9))
        #expect(none.log.key == MarkKey(first: 8, second: 9))
        #expect(none.doubt(reached: .zero) == nil)
    }

    @Test("files of format 1 are known for what they are, and nothing in them is believed")
    func formerVersion() {
        var bytes = Array("NUTHMARK".utf8) + [1, 0, 1, 0]
        bytes.pad(to: 1 << 20)
        for files in [[bytes, nil], [bytes, bytes], [nil, bytes]] as [[[UInt8]?]] {
            let found = MarksLog.recover(
                files, nodeID: .sample, fileBytes: Self.fileBytes, key: Self.key)
            #expect(found.doubt(reached: .zero) == .version && found.log.marks.isEmpty)
        }
    }
}
