import Foundation
import Ground
import Store
import Tiers

/// The child that is killed: stores, replaces, deletes, touches and looks up at random, through the
/// threads that a node has.
final class KillWriter {
    private let world: KillWorld
    private let account = MemoryAccount(limit: .max / 4)
    private var dice: Dice
    private var now: Instant
    private var version: Int
    /// What was asked for and has not come, each entry once, with the stamp of the time.
    private var fetches: [(entry: KillEntry, lease: StampLease)] = []
    private var reclaims = 0
    private let deleted = KillDeleted()
    private let journal: KillJournal
    private var looker: KillLooker

    /// Bytes that may wait before it looks up entries instead of storing more.
    private static let queuedMax = 2 << 20
    private static let fetchesMax = 12

    init(_ world: KillWorld, _ dice: Dice) {
        self.world = world
        self.dice = dice
        journal = KillJournal(world)
        now = world.begin
        version = world.firstVersion
        looker = KillLooker(deleted, Dice(seed: self.dice.next()))
    }

    func run() async {
        let tier = await world.openTier()
        lookMeanwhile(tier)
        let steps = Int.random(in: 500...8_000, using: &dice)
        do throws(KillViolation) {
            for _ in 0..<steps {
                while tier.queued > Self.queuedMax { try looker.look(tier) }
                try step(tier)
            }
        } catch {
            KillLine.wrong("beside the writer, \(error.what)").say()
        }
        await tier.close()
        KillLine.closed.say()
        _exit(0)
    }

    /// Another reader, which does nothing else.
    private func lookMeanwhile(_ tier: DiskTier) {
        let first = KillLooker(deleted, Dice(seed: dice.next()))
        Thread.detachNewThread {
            var looker = first
            do throws(KillViolation) {
                while true { try looker.look(tier) }
            } catch {
                KillLine.wrong("beside the writer, \(error.what)").say()
            }
        }
    }

    private func step(_ tier: DiskTier) throws(KillViolation) {
        version += 1
        switch Int.random(in: 0..<100, using: &dice) {
        case ..<55: store(tier)
        case ..<63: delete(tier)
        case ..<80: touch(tier)
        case ..<97: try looker.look(tier)
        default:
            now = now + .seconds(1)
            tier.ticked(now: now)
        }
    }

    /// Begins to fetch an entry; if enough are under way, one of them is there and is stored.
    private func store(_ tier: DiskTier) {
        let name = KillWorld.anyName(using: &dice)
        if !fetches.contains(where: { $0.entry.name == name }) {
            fetches.append((KillEntry(name: name, version: version), tier.marks.lease()))
        }
        guard fetches.count > Self.fetchesMax else { return }
        let (entry, lease) = fetches.remove(at: Int.random(in: 0..<fetches.count, using: &dice))
        guard let resident = entry.resident(account, stamp: lease.stamp, now: now) else { return }
        KillLine.stored(name: entry.name, version: entry.version).say()
        tier.keep(resident, now: now)
        lease.end()
        let count = tier.figures[.reclaims]
        if count != reclaims { KillLine.reclaimed(count).say() }
        reclaims = count
    }

    /// What is asked for from now on is stored after it, though it may not be done yet; what was
    /// asked for before is not, whenever it comes.
    private func delete(_ tier: DiskTier) {
        let names = someNames(3)
        let stamp = tier.marks.apply(names.map(KillEntry.target), isSoft: false, now: now)
        guard journal.add(names, at: stamp) else {
            return KillLine.wrong("a delete has failed").say()
        }
        tier.marks.keeps(upTo: stamp)
        for name in names { deleted.note(name, below: version) }
        for name in names { KillLine.deleted(name: name, version: version).say() }
    }

    private func touch(_ tier: DiskTier) {
        let names = someNames(20)
        let second = tier.clock.second(now)
        tier.touch(names.map { (KillEntry.entryName($0).digest, 1, second) })
    }

    private func someNames(_ most: Int) -> [Int] {
        (0..<Int.random(in: 1...most, using: &dice)).map { _ in
            KillWorld.anyName(using: &dice)
        }
    }
}
