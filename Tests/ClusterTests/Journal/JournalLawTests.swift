import Cluster
import Ground
import Testing
import Trials

@Suite("Invariants of the journal")
struct JournalLawTests {
    @Test(
        "Synced records are found, and a crash is not taken for damage",
        arguments: Trials.seeds(1...24))
    func crashes(seed: UInt64) {
        var world = JournalWorld(seed: seed, settings: JournalWorld.small)
        for _ in 0..<150 {
            switch Int.random(in: 0..<20, using: &world.dice) {
            case 0...7: world.write(.synced)
            case 8, 9: world.write(.fails)
            case 10, 11: world.write(.crashes)
            case 12: world.restart()
            case 13: world.remember()
            default: world.note()
            }
        }
        for what in ["rotated", "deleted", "synced", "started", "more than synced"] {
            #expect(world.seen[what, default: 0] > 0, "\(what) never")
        }
    }

    @Test(
        "Written records are read again through all rotations of files",
        arguments: Trials.seeds(1...6))
    func roundTrips(seed: UInt64) {
        var world = JournalWorld(seed: seed, settings: JournalWorld.small)
        for _ in 0..<120 {
            for _ in 0..<Int.random(in: 0...3, using: &world.dice) { world.note() }
            if Int.random(in: 0..<4, using: &world.dice) == 0 { world.remember() }
            world.write(Int.random(in: 0..<10, using: &world.dice) == 0 ? .fails : .synced)
            let (kept, found) = JournalRecovery.recover(
                world.disk.contents, node: JournalWorld.node)
            #expect(found.damage == [])
            guard world.isSynced else { continue }
            #expect(JournalModel(kept) == world.model)
            #expect(kept.records.count == world.model.records.count)
            #expect(found.latestVersion == world.reached)
            #expect(found.epoch == world.epoch)
            // Consensus records that are no longer needed are covered by the persistent state.
            #expect(!world.hasRemembered || found.persistentState == world.memory)
        }
        #expect(world.seen["rotated", default: 0] > 20)
        #expect(world.seen["deleted", default: 0] > 5)
    }

    @Test(
        "A change of synced bytes is found or has no effect",
        arguments: Trials.seeds(1...10))
    func damage(seed: UInt64) throws {
        var world = JournalWorld(seed: seed, settings: JournalWorld.small)
        for _ in 0..<40 {
            world.note()
            world.write(.synced)
        }
        var (found, without) = (0, 0)
        for _ in 0..<500 {
            var disk = world.disk
            let changes = Int.random(in: 0..<8, using: &world.dice) == 0 ? 4 : 1
            for _ in 0..<changes { try change(&disk, using: &world.dice) }
            let (kept, start) = JournalRecovery.recover(disk.contents, node: JournalWorld.node)
            for record in kept.records { #expect(world.written.contains(record)) }
            if start.damage.isEmpty {
                #expect(JournalModel(kept) == world.model)
                without += 1
            } else {
                found += 1
            }
        }
        #expect(found > 250 && without > 0)
    }

    /// Changes some synced bytes.
    private func change(_ disk: inout JournalDisk, using dice: inout SplitMix64) throws {
        let files = disk.contents
        let numbers = files.keys.sorted()
        let number = try #require(numbers.randomElement(using: &dice))
        let whole = try #require(files[number])
        let oldest = try #require(files[numbers[0]])
        // Whether the latest bytes were synced cannot be known.
        let isNewest = number == numbers.last
        let count = isNewest ? disk.lastAppend.start : whole.count
        guard count > 0 else { return }
        let place = Int.random(in: 0..<count, using: &dice)
        let end = min(count, place + 64)
        switch Int.random(in: 0..<(isNewest ? 10 : 12), using: &dice) {
        case 0: disk.damage(number) { for index in place..<end { $0[index] = 0 } }
        case 1:
            disk.damage(number) {
                for index in place..<end where index < oldest.count { $0[index] = oldest[index] }
            }
        case 10: disk.damage(number) { $0.removeLast(whole.count - place) }
        case 11: disk.lose(number)
        default:
            let bit = UInt8.random(in: 0..<8, using: &dice)
            disk.damage(number) { $0[place] ^= 1 << bit }
        }
    }

    @Test("A node that found damage starts anew and finds none at its next start")
    func healing() throws {
        for seed in Trials.seeds(1...30) {
            var world = JournalWorld(seed: seed, settings: JournalWorld.small)
            for _ in 0..<20 { world.write(.synced) }
            let number = try #require(world.disk.contents.keys.randomElement(using: &world.dice))
            world.disk.damage(number) { $0[$0.count / 2] ^= 1 }
            let (kept, found) = JournalRecovery.recover(
                world.disk.contents, node: JournalWorld.node)
            var journal = Journal(
                node: JournalWorld.node, epoch: 2, settings: world.settings, recovered: found)
            let effects = try #require(journal.write([], marks: { _, _ in [] }, using: &world.dice))
            for effect in effects { world.disk.run(effect) }
            journal.synced()
            let (keptAgain, foundAgain) = JournalRecovery.recover(
                world.disk.contents, node: JournalWorld.node)
            #expect(foundAgain.damage == [])
            #expect(foundAgain.epoch == 2)
            #expect(JournalModel(keptAgain) == JournalModel(kept))
        }
    }

    @Test("A log that drops nothing itself is told to, so that all is written within the limit")
    func limit() {
        var world = JournalWorld(seed: 3, settings: JournalWorld.small)
        for _ in 0..<600 {
            world.write(.synced)
            for _ in 0..<5 where world.isWaiting { world.write(.synced, []) }
            #expect(world.isSynced && !world.isWaiting)
        }
        #expect(world.seen["refused", default: 0] > 10)
        #expect(world.model.records.count > 100)
    }
}
