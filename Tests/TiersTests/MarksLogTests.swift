import Ground
import Simulation
import Testing
import Tiers

@Suite("Marks on a disk that may lose its power")
struct MarksLogTests {
    private static let fileBytes = 4096

    private func recover(_ disk: SimulatedDisk, reached: Stamp = .zero) -> MarksLog.Recovered {
        MarksLog.recover(
            [disk.read(0), disk.read(1)], nodeID: .sample, fileBytes: Self.fileBytes,
            reached: reached)
    }

    private func mark(_ count: UInt64) -> DiskMark {
        let name = (0..<32).map { UInt8(truncatingIfNeeded: count &* 31 &+ $0) }
        return DiskMark(
            .entry(EntryName(name.span)), isSoft: false,
            stamp: Stamp(epoch: 1, count: count))
    }

    @Test("marks are found again after a restart, through many generations")
    func generations() {
        var disk = SimulatedDisk(files: 2, bytes: Self.fileBytes)
        var log = MarksLog(nodeID: .sample, fileBytes: Self.fileBytes)
        var generations = 0
        for count in 1...500 as ClosedRange<UInt64> {
            let least = Stamp(epoch: 1, count: count > 10 ? count - 10 : 0)
            let writes = log.append(
                [mark(count)], leastStamp: least, now: Stamp(epoch: 1, count: count),
                salt: count | 1 << 40)
            generations += writes.count > 1 ? 1 : 0
            for write in writes {
                disk.write(write.bytes, to: write.file, at: write.offset)
                disk.sync(write.file)
            }
            let found = recover(disk, reached: Stamp(epoch: 1, count: count))
            #expect(!found.isDamaged && found.log.marks == log.marks)
            let isComplete = (least.count...count).allSatisfy { wanted in
                wanted == 0 || log.marks.contains(mark(wanted))
            }
            #expect(isComplete)
            log = found.log
        }
        #expect(generations > 3)
    }

    @Test("marks that do not fit become one, soft and for everything")
    func overflow() {
        var log = MarksLog(nodeID: .sample, fileBytes: Self.fileBytes)
        var disk = SimulatedDisk(files: 2, bytes: Self.fileBytes)
        let now = Stamp(epoch: 1, count: 99)
        for count in 1...60 as ClosedRange<UInt64> {
            for write in log.append([mark(count)], leastStamp: .zero, now: now, salt: count) {
                disk.write(write.bytes, to: write.file, at: write.offset)
                disk.sync(write.file)
            }
        }
        #expect(log.marks.first == DiskMark(.everything, isSoft: true, stamp: now))
        #expect(recover(disk).log.marks == log.marks)
    }

    @Test("whatever of the unsynced writes is lost or torn, a synced mark is there or missed")
    func powerLoss() {
        var outcomes = (damaged: 0, whole: 0)
        for seed in UInt64(1)...3_000 {
            var dice = Dice(seed: seed)
            var disk = SimulatedDisk(files: 2, bytes: Self.fileBytes)
            var log = MarksLog(nodeID: .sample, fileBytes: Self.fileBytes)
            var acknowledged: [DiskMark] = []
            var stepsLeft = Int.random(in: 1...400, using: &dice)
            var count: UInt64 = 0
            life: while true {
                count += 1
                let writes = log.append(
                    [mark(count)], leastStamp: Stamp(epoch: 1, count: count / 2),
                    now: Stamp(epoch: 1, count: count), salt: dice.next())
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
            // Those that the last call was told cover nothing any more may be gone.
            acknowledged.removeAll { $0.stamp.count < count / 2 }
            disk.crash(using: &dice)
            let found = recover(
                disk, reached: Stamp(epoch: 1, count: acknowledged.last?.stamp.count ?? 0))
            let isThere = acknowledged.allSatisfy { mark in
                found.log.marks.contains { other in
                    other == mark || other.target == .everything && other.stamp >= mark.stamp
                }
            }
            #expect(isThere || found.isDamaged, "seed \(seed), \(count) marks")
            outcomes.damaged += found.isDamaged ? 1 : 0
            outcomes.whole += isThere ? 1 : 0
        }
        #expect(outcomes.whole > 2_500, "\(outcomes)")
    }

    @Test("a flipped bit anywhere in the files never makes a mark unseen without being noticed")
    func flips() {
        var disk = SimulatedDisk(files: 2, bytes: Self.fileBytes)
        var log = MarksLog(nodeID: .sample, fileBytes: Self.fileBytes)
        for count in 1...5 as ClosedRange<UInt64> {
            let writes = log.append(
                [mark(count)], leastStamp: .zero, now: .zero, salt: 77)
            for write in writes {
                disk.write(write.bytes, to: write.file, at: write.offset)
                disk.sync(write.file)
            }
        }
        let files = [disk.read(0), disk.read(1)]
        for file in 0..<2 {
            for position in 0..<600 {
                var flipped: [[UInt8]?] = [files[0], files[1]]
                flipped[file]?[position] ^= 1 << UInt8(position % 8)
                let found = MarksLog.recover(
                    flipped, nodeID: .sample, fileBytes: Self.fileBytes,
                    reached: Stamp(epoch: 1, count: 5))
                #expect(
                    found.isDamaged || found.log.marks == log.marks,
                    "byte \(position) of file \(file)")
            }
        }
    }
}
