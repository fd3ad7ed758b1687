import Foundation
import Ground
import Store
import Tiers

/// The child that is killed: it stores, replaces, deletes, touches and looks up entries at random,
/// on the threads that a node has.
final class KillWriter {
    private let configuration: KillConfiguration
    private let account = MemoryAccount(limit: .max / 4)
    private var dice: SplitMix64
    private var now: Instant
    private var version: Int
    /// The fetches in progress, each entry once, with the invalidation version of its start.
    private var fetches: [(entry: KillEntry, lease: VersionPin)] = []
    private var reclaims = 0
    private let deleted = KillDeletedVersions()
    private let journal: KillJournal
    private var concurrentReader: KillConcurrentReader

    /// The bytes that may wait before it looks up entries instead of storing more.
    private static let queuedMax = 2 << 20
    private static let fetchesMax = 12

    init(_ world: KillConfiguration, _ dice: SplitMix64) {
        self.configuration = world
        self.dice = dice
        journal = KillJournal(world)
        now = world.startTime
        version = world.firstVersion
        concurrentReader = KillConcurrentReader(deleted, SplitMix64(seed: self.dice.next()))
    }

    func run() async {
        let tier = await configuration.openTier()
        startConcurrentReader(tier)
        let steps = Int.random(in: 500...8_000, using: &dice)
        do throws(KillViolation) {
            for _ in 0..<steps {
                while tier.pendingBytes > Self.queuedMax {
                    try concurrentReader.checkRandomEntry(tier)
                }
                try step(tier)
            }
        } catch {
            KillMessage.violation("beside the writer, \(error.message)").send()
        }
        await tier.close()
        KillMessage.closed.send()
        _exit(0)
    }

    /// Starts a concurrent reader that does nothing else.
    private func startConcurrentReader(_ tier: DiskStore) {
        let first = KillConcurrentReader(deleted, SplitMix64(seed: dice.next()))
        Thread.detachNewThread {
            var looker = first
            do throws(KillViolation) {
                while true { try looker.checkRandomEntry(tier) }
            } catch {
                KillMessage.violation("beside the writer, \(error.message)").send()
            }
        }
    }

    private func step(_ tier: DiskStore) throws(KillViolation) {
        version += 1
        switch Int.random(in: 0..<100, using: &dice) {
        case ..<55: store(tier)
        case ..<63: delete(tier)
        case ..<80: touch(tier)
        case ..<97: try concurrentReader.checkRandomEntry(tier)
        default:
            now = now + .seconds(1)
            tier.tick(now: now)
        }
    }

    /// Starts the fetch of an entry; if enough are in progress, one of them completes and is
    /// stored.
    private func store(_ tier: DiskStore) {
        let name = KillConfiguration.randomName(using: &dice)
        if !fetches.contains(where: { $0.entry.name == name }) {
            fetches.append((KillEntry(name: name, version: version), tier.marks.pin()))
        }
        guard fetches.count > Self.fetchesMax else { return }
        let (entry, lease) = fetches.remove(at: Int.random(in: 0..<fetches.count, using: &dice))
        guard let stored = entry.resident(account, version: lease.version, now: now) else { return }
        KillMessage.stored(name: entry.name, version: entry.version).send()
        tier.enqueueWrite(stored, now: now)
        lease.release()
        let count = tier.counters[.reclaims]
        if count != reclaims { KillMessage.reclaimed(count).send() }
        reclaims = count
    }

    /// Deletes entries: fetches that start afterwards are stored, even before the deletion is
    /// complete; earlier ones are not, whenever they complete.
    private func delete(_ tier: DiskStore) {
        let names = randomNames(3)
        let applied = tier.marks.apply(names.map(KillEntry.target), isSoft: false, now: now)
        guard journal.add(names, at: applied) else {
            return KillMessage.violation("a delete has failed").send()
        }
        tier.marks.journaled(upTo: applied)
        for name in names { deleted.record(name, below: version) }
        for name in names { KillMessage.deleted(name: name, version: version).send() }
    }

    private func touch(_ tier: DiskStore) {
        let names = randomNames(20)
        let second = tier.clock.second(now)
        tier.touch(names.map { (KillEntry.entryName($0).digest, 1, second) })
    }

    private func randomNames(_ most: Int) -> [Int] {
        (0..<Int.random(in: 1...most, using: &dice)).map { _ in
            KillConfiguration.randomName(using: &dice)
        }
    }
}
