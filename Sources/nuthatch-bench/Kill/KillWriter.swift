import Glibc
import Ground
import Store
import Synchronization
import Tiers

/// The child that is killed: stores, replaces, deletes, touches and looks up at random, through the
/// threads that a node has.
final class KillWriter {
    private let world: KillWorld
    private let account = MemoryAccount(limit: .max / 4)
    private var dice: Dice
    private var now: Instant
    private var version: Int
    private var room = [UInt8](repeating: 0, count: 1 << 20)
    private var reclaims = 0
    /// Below which version each entry is deleted for certain.
    private let deleted = Deleted()
    /// The newest version of each entry that was seen here.
    private var seen: [Int: Int] = [:]

    private final class Deleted: Sendable {
        let below = Mutex<[Int: Int]>([:])
    }

    /// Bytes that may wait before it looks up entries instead of storing more.
    private static let queuedMax = 2 << 20

    init(_ world: KillWorld, _ dice: Dice) {
        self.world = world
        self.dice = dice
        now = world.begin
        version = world.firstVersion
    }

    func run() async {
        let tier = await world.openTier()
        let steps = Int.random(in: 500...8_000, using: &dice)
        do throws(KillViolation) {
            for _ in 0..<steps {
                while tier.queued > Self.queuedMax { try look(tier) }
                try step(tier)
            }
        } catch {
            KillLine.wrong(error.what).say()
        }
        await tier.close(now: now)
        KillLine.closed.say()
        _exit(0)
    }

    private func step(_ tier: DiskTier) throws(KillViolation) {
        version += 1
        switch Int.random(in: 0..<100, using: &dice) {
        case ..<55: store(tier)
        case ..<63: delete(tier)
        case ..<80: touch(tier)
        case ..<97: try look(tier)
        default:
            now = now + .seconds(1)
            tier.ticked(now: now)
        }
    }

    /// Half of all that is done is done to a few.
    private func anyName() -> Int {
        let isHot = Bool.random(using: &dice)
        return Int.random(in: 0..<(isHot ? KillWorld.names / 16 : KillWorld.names), using: &dice)
    }

    private func store(_ tier: DiskTier) {
        let entry = KillEntry(name: anyName(), version: version)
        guard let resident = entry.resident(account, now: now) else { return }
        KillLine.stored(name: entry.name, version: version).say()
        tier.keep(resident, stamp: tier.stamp, now: now)
        let count = tier.figures[.reclaims]
        if count != reclaims { KillLine.reclaimed(count).say() }
        reclaims = count
    }

    /// What is stored from now on is stored after it, though it may not be done yet.
    private func delete(_ tier: DiskTier) {
        let names = (0..<Int.random(in: 1...3, using: &dice)).map { _ in anyName() }
        // Marks of what nobody has stored fill their files, so that those are rewritten.
        let strangers =
            Int.random(in: 0..<4, using: &dice) == 0 ? Int.random(in: 1...100, using: &dice) : 0
        let all = names + (0..<strangers).map { KillWorld.names + $0 }
        tier.delete(all.map(KillEntry.entryName)) { [version, deleted] failure in
            if let failure { return KillLine.wrong("a delete has failed: \(failure)").say() }
            deleted.below.withLock { below in
                for name in names { below[name] = version }
            }
            for name in names { KillLine.deleted(name: name, version: version).say() }
        }
    }

    private func touch(_ tier: DiskTier) {
        let names = (0..<Int.random(in: 1...20, using: &dice)).map { _ in anyName() }
        let second = tier.clock.second(now)
        tier.touch(names.map { (KillEntry.entryName($0).digest, 1, second) })
    }

    /// What readers see while everything moves: nothing that was deleted before they looked, and
    /// nothing older than they have seen.
    private func look(_ tier: DiskTier) throws(KillViolation) {
        guard let view = tier.view else { throw KillViolation("there is no log") }
        let name = anyName()
        let least = max(deleted.below.withLock { $0[name] ?? 0 }, seen[name] ?? 0)
        var found: [Int] = []
        if case .version(let version) = try KillReader.readAtOnce(name, view, &room) {
            found.append(version)
        }
        if case (let reading, let chunks?)? = KillReader.read(name, view) {
            found.append(try KillEntry.version(name, reading, chunks))
        }
        for version in found {
            guard version >= least else {
                throw KillViolation("entry \(name) is \(version) again, and was \(least)")
            }
            seen[name] = max(seen[name] ?? 0, version)
        }
        guard tier.figures[.lostRecords] == 0 else {
            throw KillViolation("a reader has found entry \(name) damaged")
        }
    }
}
