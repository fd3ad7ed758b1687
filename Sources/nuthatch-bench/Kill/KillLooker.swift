import Ground
import Store
import Synchronization

/// Below which version each entry is deleted for certain.
final class KillDeletedVersions: Sendable {
    private let versions = Mutex<[Int: Int]>([:])

    func record(_ name: Int, below version: Int) {
        versions.withLock { $0[name] = version }
    }

    func version(_ name: Int) -> Int { versions.withLock { $0[name] ?? 0 } }
}

/// A reader while everything moves: it finds nothing that was deleted before it looked, nothing
/// older than it has seen, and nothing damaged.
struct KillConcurrentReader {
    private let deleted: KillDeletedVersions
    private var dice: SplitMix64
    private var room = [UInt8](repeating: 0, count: 1 << 20)
    /// The newest version of each entry that was seen here.
    private var measurement: [Int: Int] = [:]

    init(_ deleted: KillDeletedVersions, _ dice: SplitMix64) {
        self.deleted = deleted
        self.dice = dice
    }

    /// Looks up an entry in both ways.
    mutating func checkRandomEntry(_ tier: DiskStore) throws(KillViolation) {
        let name = KillConfiguration.randomName(using: &dice)
        let deleted = deleted.version(name)
        guard let view = tier.view else { return }
        if case .version(let version) = try KillVerifier.readCached(name, view, &room) {
            try recordSeen(name, version, deleted)
        }
        if case (let reading, let chunks?)? = KillVerifier.read(name, view) {
            try recordSeen(name, try KillEntry.version(name, reading, chunks), deleted)
        }
        guard tier.counters[.lostRecords] == 0 else {
            throw KillViolation("a reader has found entry \(name) damaged")
        }
    }

    private mutating func recordSeen(
        _ name: Int, _ version: Int, _ deleted: Int
    ) throws(KillViolation) {
        let least = max(deleted, measurement[name] ?? 0)
        guard version >= least else {
            throw KillViolation("entry \(name) is \(version) again, and was \(least)")
        }
        measurement[name] = version
    }
}
