import Cluster
import Ground
import Testing

@Suite("Recovery of a journal at start")
struct JournalStartTests {
    private static let node = NodeID(low: 1, high: 2)

    /// A journal of a few files, each with records of streams 1 and 2.
    private struct Story {
        var dice = SplitMix64(seed: 4)
        var disk = JournalDisk()
        var journal = Journal(node: JournalStartTests.node, epoch: 1, settings: .small)
        private var number: UInt64 = 0

        init() {}

        mutating func write(_ count: Int) {
            let batch = (0..<count).map { _ in
                number += 1
                return LogWrite.record(LogStage.record(1, number), count: number)
            }
            run(journal.write(batch, marks: { _, _ in [] }, using: &dice))
        }

        mutating func run(_ effects: [JournalEffect]?) {
            for effect in effects ?? [] { disk.run(effect) }
            journal.synced()
        }
    }

    private func recover(_ disk: JournalDisk) -> (records: Int, damage: [JournalDamage]) {
        let (kept, found) = JournalRecovery.recover(disk.contents, node: Self.node)
        return (kept.records.count, found.damage)
    }

    @Test("Without files nothing is found")
    func nothing() {
        let found = JournalRecovery(node: Self.node, files: []).finish()
        #expect(found.epoch == nil && found.persistentState == nil && found.damage == [])
        #expect(found.latestVersion == .zero && found.floors == [] && found.retired == [])
    }

    @Test("Files of another node, version or kind are reported as damage with their names")
    func foreign() {
        var story = Story()
        story.write(3)
        let whole = story.disk.contents
        func damage(_ change: (inout [UInt8]) -> Void) -> [JournalDamage] {
            var disk = story.disk
            disk.damage(1, change)
            return recover(disk).damage
        }
        #expect(damage { $0[0] ^= 1 } == [JournalDamage(file: 1, reason: .notAJournalFile)])
        #expect(damage { $0[8] = 2 } == [JournalDamage(file: 1, reason: .version(2))])
        #expect(damage { $0[50] ^= 1 } == [JournalDamage(file: 1, reason: .checksum)])
        // A newer minor version can be read.
        #expect(damage { $0[10] = 9 } == [])
        let (kept, other) = JournalRecovery.recover(whole, node: NodeID(low: 9, high: 9))
        #expect(kept.records == [])
        #expect(other.damage == [JournalDamage(file: 1, reason: .otherNode)])
        let renamed = JournalRecovery.recover([5: whole[1] ?? []], node: Self.node)
        #expect(renamed.found.damage == [JournalDamage(file: 5, reason: .notAJournalFile)])
    }

    @Test("Only a changed synced item ends the recovery")
    func ended() throws {
        var story = Story()
        story.write(3)
        let start = try #require(story.disk.contents[1]).count
        story.write(3)
        let end = try #require(story.disk.contents[1]).count
        story.write(3)
        var disk = story.disk
        disk.damage(1) { $0[start + 30] ^= 1 }
        #expect(recover(disk) == (3, [.unreadable(1, start)]))
        // The last write may not have been synced.
        disk = story.disk
        disk.damage(1) { $0[end + 30] ^= 1 }
        #expect(recover(disk) == (6, []))
        disk = story.disk
        disk.damage(1) { $0 += [1, 2, 3] }
        #expect(recover(disk) == (9, []))
    }

    @Test("Preallocated zeros are neither damage nor content")
    func ahead() throws {
        var story = Story()
        for _ in 0..<30 { story.write(3) }
        let numbers = story.disk.contents.keys
        #expect(numbers.count > 1)
        func bytes(_ disk: JournalDisk) -> Int {
            let found = JournalRecovery.recover(disk.contents, node: Self.node).found
            return Journal(node: Self.node, epoch: 2, settings: .small, recovered: found).bytesCount
        }
        var filled = story.disk
        for number in numbers {
            filled.damage(number) { $0 += [UInt8](repeating: 0, count: 4_096) }
        }
        #expect(recover(filled) == recover(story.disk))
        #expect(bytes(filled) == bytes(story.disk))
    }

    @Test("Exchanged items are damage, although each checksum holds")
    func swapped() throws {
        var story = Story()
        story.write(1)
        let start = try #require(story.disk.contents[1]).count
        story.write(1)
        let size = try #require(story.disk.contents[1]).count - start
        story.write(1)
        story.write(1)
        #expect(story.disk.contents[1]?.count == start + 3 * size)
        var disk = story.disk
        disk.damage(1) { bytes in
            let second = Array(bytes[(start + size)..<(start + 2 * size)])
            bytes.replaceSubrange(start..<(start + size), with: second)
        }
        #expect(recover(disk) == (1, [.unreadable(1, start)]))
    }

    @Test("Two contents under one number are damage; a duplicate is not")
    func twoContents() {
        let record = LogStage.record(1, 1)
        let other = InvalidationRecord(record.id, content: LogStage.record(1, 2).encodedContent)
        for (second, isDamage) in [(record, false), (other, true)] {
            var story = Story()
            story.write(1)
            let batch = [LogWrite.record(second, count: 2)]
            story.run(story.journal.write(batch, marks: { _, _ in [] }, using: &story.dice))
            let reason = JournalDamage.Reason.conflictingRecords(record.id)
            #expect(
                recover(story.disk).damage == (isDamage ? [.init(file: 1, reason: reason)] : []))
        }
    }

    @Test("A required file must be present and whole; others need not be")
    func older() throws {
        var story = Story()
        story.write(120)
        let numbers = story.disk.contents.keys.sorted()
        #expect(numbers.count > 2)
        var disk = story.disk
        disk.lose(1)
        let (records, damage) = recover(disk)
        #expect(records < 120 && records > 0)
        #expect(damage == [JournalDamage(file: 1, reason: .missing)])
        disk = story.disk
        disk.damage(2) { $0.removeLast() }
        #expect(recover(disk).damage.map(\.file) == [2])
        // Bytes beyond the required ones are not read.
        disk = story.disk
        disk.damage(2) { $0 += $0.prefix(800) }
        #expect(recover(disk) == (120, []))
        // Records 1 to 100 are no longer needed, and the files with only these are gone.
        let dropped = LogWrite.metadata(.dropped(LogStage.position(1, 100)))
        story.run(story.journal.write([dropped], marks: { _, _ in [] }, using: &story.dice))
        let before = story.disk.contents
        story.run(story.journal.write([], marks: { _, _ in [] }, using: &story.dice))
        #expect(story.disk.contents.count < before.count)
        // Their presence makes no difference.
        #expect(recover(story.disk) == (20, []))
        let (kept, found) = JournalRecovery.recover(before, node: Self.node)
        #expect(kept.records.count == 20 && found.damage == [])
    }

    @Test("An unfinished file is skipped, unless the file that it continues is missing")
    func unfinished() throws {
        var story = Story()
        story.write(10)
        let whole = try #require(story.disk.contents[1]).count
        func begun(_ number: UInt64, after place: JournalPosition?, _ rest: [UInt8]) -> JournalDisk
        {
            var disk = story.disk
            let header = JournalHeader(
                node: Self.node, number: number, epoch: 1, salt: 5, previous: place)
            disk.run(.create(number))
            disk.run(.append(number, header.bytes + rest))
            disk.run(.sync(number))
            return disk
        }
        let end = JournalPosition(file: 1, offset: UInt64(whole))
        #expect(recover(begun(2, after: end, [])) == (10, []))
        #expect(recover(begun(2, after: end, Array(repeating: 7, count: 99))) == (10, []))
        // The new file records another synced length than the old file has.
        let more = JournalPosition(file: 1, offset: UInt64(whole) + 8)
        #expect(recover(begun(2, after: more, [])) == (10, [.unreadable(1, whole)]))
        // A file shorter than a header was never synced.
        var disk = story.disk
        disk.run(.create(2))
        disk.run(.append(2, Array(repeating: 7, count: 80)))
        #expect(recover(disk) == (10, []))
        disk.run(.append(2, [7]))
        #expect(recover(disk) == (10, [JournalDamage(file: 2, reason: .notAJournalFile)]))
    }

    @Test("An unreadable file is damage, and the others are recovered")
    func unreadable() {
        var story = Story()
        story.write(120)
        var recovery = JournalRecovery(node: Self.node, files: story.disk.contents.keys.sorted())
        var records: [InvalidationRecord] = []
        while let number = recovery.nextFile {
            let file = story.disk.contents[number] ?? []
            if number == 2 { recovery.readFailed() } else { recovery.read(file.span) }
            records += recovery.takeRecords()
        }
        #expect(recovery.finish().damage == [JournalDamage(file: 2, reason: .missing)])
        #expect(records.count < 120 && records.count > 60)
    }

    @Test("A failed batch is written to another file, and its first writing does not count")
    func failed() throws {
        var story = Story()
        story.write(5)
        let batch = [LogWrite.record(LogStage.record(1, 6), count: 6)]
        let effects = try #require(
            story.journal.write(batch, marks: { _, _ in [] }, using: &story.dice))
        // It reached the disk as a whole, but that is unknown.
        for effect in effects { story.disk.run(effect) }
        story.journal.failed()
        #expect(recover(story.disk) == (6, []))
        story.run(story.journal.write(batch, marks: { _, _ in [] }, using: &story.dice))
        #expect(story.disk.contents.keys.sorted() == [1, 2])
        #expect(recover(story.disk) == (6, []))
        let (kept, _) = JournalRecovery.recover(story.disk.contents, node: Self.node)
        #expect(Set(kept.records.map(\.id)).count == 6)
    }

    @Test("Files of a failed write are deleted newest first, each durably before the next")
    func failedFiles() throws {
        var story = Story()
        story.write(5)
        let batch = (6...105).map { LogWrite.record(LogStage.record(1, $0), count: $0) }
        let first = try #require(
            story.journal.write(batch, marks: { _, _ in [] }, using: &story.dice))
        #expect(first.contains(.create(3)))
        for effect in first { story.disk.run(effect) }
        story.journal.failed()
        let next = try #require(
            story.journal.write(batch, marks: { _, _ in [] }, using: &story.dice))
        let created = first.compactMap { effect -> UInt64? in
            if case .create(let number) = effect { number } else { nil }
        }
        let expected = created.reversed().flatMap { [JournalEffect.delete($0), .syncDirectory] }
        #expect(Array(next.prefix(expected.count)) == expected)
        #expect(next[expected.count] == .create((created.max() ?? 0) + 1))
        // A power failure at any point loses nothing.
        for effect in next {
            #expect(recover(story.disk).damage == [])
            story.disk.run(effect)
        }
        story.journal.synced()
        #expect(recover(story.disk) == (105, []))
    }
}

extension JournalDamage {
    fileprivate static func unreadable(_ file: UInt64, _ offset: Int) -> JournalDamage {
        JournalDamage(file: file, reason: .unreadable(from: UInt64(offset)))
    }
}

extension Journal.Settings {
    fileprivate static var small: Journal.Settings { JournalWorld.small }
}
