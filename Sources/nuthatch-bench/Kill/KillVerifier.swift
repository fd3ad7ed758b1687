import Glibc
import Ground
import NIOCore
import Store
import Synchronization

/// The child that verifies the state a killed one has left.
struct KillVerifier {
    private let configuration: KillConfiguration
    private var room = [UInt8](repeating: 0, count: 1 << 20)

    init(_ world: KillConfiguration) {
        self.configuration = world
    }

    consuming func run() async {
        let tier = await configuration.openTier()
        do throws(KillViolation) {
            guard let view = tier.view else { throw KillViolation("there is no log") }
            for name in 0..<KillConfiguration.names {
                guard let version = try find(name, view) else { continue }
                KillMessage.found(name: name, version: version).send()
            }
            guard tier.counters[.lostRecords] == 0 else { throw KillViolation("records are lost") }
        } catch {
            KillMessage.violation("after a kill, \(error.message)").send()
        }
        KillMessage.read(
            atOnce: tier.counters[.nonblockingReads], byThread: tier.counters[.threadReads]
        ).send()
        // It ends as if killed, so that the next process recovers the same segments again.
        KillMessage.closed.send()
        _exit(0)
    }

    /// Returns the stored version; both ways of reading must give the same.
    private mutating func find(_ name: Int, _ view: DiskView) throws(KillViolation) -> Int? {
        let atOnce = try Self.readCached(name, view, &room)
        guard let (reading, chunks) = Self.read(name, view) else {
            // A deleted entry stays in the index until its position is needed.
            if case .version = atOnce {
                throw KillViolation("entry \(name) is there at once, and not for a thread")
            }
            return nil
        }
        guard let chunks else { throw KillViolation("the body of entry \(name) is lost") }
        let version = try KillEntry.version(name, reading, chunks)
        switch atOnce {
        case .notCached: break
        case .version(version): break
        case .absent, .version:
            throw KillViolation("entry \(name) is \(version) for a thread, and at once \(atOnce)")
        }
        return version
    }

    /// The result of a read from the page cache.
    enum CachedRead {
        case absent
        case notCached
        case version(Int)
    }

    /// Reads an entry from the page cache.
    static func readCached(
        _ name: Int, _ view: DiskView, _ room: inout [UInt8]
    ) throws(KillViolation) -> CachedRead {
        let found = view.readNonblocking(
            KillEntry.entryName(name), key: KillEntry.key(name), buffer: &room)
        switch found {
        case .notFound: return .absent
        case .wouldBlock: return .notCached
        case .complete(let reading, let chunks):
            return .version(try KillEntry.version(name, reading, chunks))
        }
    }

    /// Reads an entry on a disk thread; the body is `nil` if it was evicted meanwhile.
    static func read(_ name: Int, _ view: DiskView) -> (DiskRecordHandle, [ByteBuffer]?)? {
        let found = view.read(KillEntry.entryName(name), key: KillEntry.key(name))
        guard var reading = found else { return nil }
        let chunks = view.readBody(&reading)
        return (reading, chunks)
    }
}

/// The version below which each entry is known to be deleted.
final class KillDeletedVersions: Sendable {
    private let versions = Mutex<[Int: Int]>([:])

    func record(_ name: Int, below version: Int) {
        versions.withLock { $0[name] = version }
    }

    func version(_ name: Int) -> Int { versions.withLock { $0[name] ?? 0 } }
}

/// A reader during concurrent writes: it must find nothing that was deleted before the look-up,
/// nothing older than seen before, and nothing damaged.
struct KillConcurrentReader {
    private let deleted: KillDeletedVersions
    private var dice: SplitMix64
    private var room = [UInt8](repeating: 0, count: 1 << 20)
    /// The newest version of each entry that this reader has seen.
    private var measurement: [Int: Int] = [:]

    init(_ deleted: KillDeletedVersions, _ dice: SplitMix64) {
        self.deleted = deleted
        self.dice = dice
    }

    /// Looks up a random entry in both ways.
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
