import Ground
import Store
import Synchronization

/// Below which version each entry is deleted for certain.
final class KillDeleted: Sendable {
    private let versions = Mutex<[Int: Int]>([:])

    func note(_ name: Int, below version: Int) {
        versions.withLock { $0[name] = version }
    }

    func version(_ name: Int) -> Int { versions.withLock { $0[name] ?? 0 } }
}

/// A reader while everything moves: it finds nothing that was deleted before it looked, nothing
/// older than it has seen, and nothing damaged.
struct KillLooker {
    private let deleted: KillDeleted
    private var dice: Dice
    private var room = [UInt8](repeating: 0, count: 1 << 20)
    /// The newest version of each entry that was seen here.
    private var seen: [Int: Int] = [:]

    init(_ deleted: KillDeleted, _ dice: Dice) {
        self.deleted = deleted
        self.dice = dice
    }

    /// Looks up an entry in both ways.
    mutating func look(_ tier: DiskTier) throws(KillViolation) {
        let name = KillWorld.anyName(using: &dice)
        let deleted = deleted.version(name)
        guard let view = tier.view else { return }
        if case .version(let version) = try KillReader.readAtOnce(name, view, &room) {
            try see(name, version, deleted)
        }
        if case (let reading, let chunks?)? = KillReader.read(name, view) {
            try see(name, try KillEntry.version(name, reading, chunks), deleted)
        }
        guard tier.figures[.lostRecords] == 0 else {
            throw KillViolation("a reader has found entry \(name) damaged")
        }
    }

    private mutating func see(
        _ name: Int, _ version: Int, _ deleted: Int
    ) throws(KillViolation) {
        let least = max(deleted, seen[name] ?? 0)
        guard version >= least else {
            throw KillViolation("entry \(name) is \(version) again, and was \(least)")
        }
        seen[name] = version
    }
}
