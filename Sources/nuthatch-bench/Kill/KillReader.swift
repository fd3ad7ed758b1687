import Glibc
import NIOCore
import Store

/// The child that looks at what a killed one has left.
struct KillReader {
    private let world: KillWorld
    private var room = [UInt8](repeating: 0, count: 1 << 20)

    init(_ world: KillWorld) {
        self.world = world
    }

    consuming func run() async {
        let tier = await world.openTier()
        do throws(KillViolation) {
            guard let view = tier.view else { throw KillViolation("there is no log") }
            for name in 0..<KillWorld.names {
                guard let version = try find(name, view) else { continue }
                KillLine.found(name: name, version: version).say()
            }
            guard tier.figures[.lostRecords] == 0 else { throw KillViolation("records are lost") }
        } catch {
            KillLine.wrong("after a kill, \(error.what)").say()
        }
        KillLine.read(
            atOnce: tier.figures[.readsAtOnce], byThread: tier.figures[.readsByThread]
        ).say()
        // It ends as if killed: what comes next recovers the same segments once more.
        KillLine.closed.say()
        _exit(0)
    }

    /// The version that is there; both ways of reading must give the same.
    private mutating func find(_ name: Int, _ view: DiskView) throws(KillViolation) -> Int? {
        let atOnce = try Self.readAtOnce(name, view, &room)
        guard let (reading, chunks) = Self.read(name, view) else {
            // What was deleted is in the index until its place is wanted.
            if case .version = atOnce {
                throw KillViolation("entry \(name) is there at once, and not for a thread")
            }
            return nil
        }
        guard let chunks else { throw KillViolation("the body of entry \(name) is lost") }
        let version = try KillEntry.version(name, reading, chunks)
        switch atOnce {
        case .later: break
        case .version(version): break
        case .absent, .version:
            throw KillViolation("entry \(name) is \(version) for a thread, and at once \(atOnce)")
        }
        return version
    }

    enum AtOnce {
        case absent
        case later
        case version(Int)
    }

    /// What the page cache gives.
    static func readAtOnce(
        _ name: Int, _ view: DiskView, _ room: inout [UInt8]
    ) throws(KillViolation) -> AtOnce {
        let found = view.readAtOnce(
            KillEntry.entryName(name), key: KillEntry.key(name), room: &room)
        switch found {
        case .absent: return .absent
        case .later: return .later
        case .whole(let reading, let chunks):
            return .version(try KillEntry.version(name, reading, chunks))
        }
    }

    /// What a disk thread gives; the body is nil if it is gone meanwhile.
    static func read(_ name: Int, _ view: DiskView) -> (DiskReading, [ByteBuffer]?)? {
        let found = view.read(KillEntry.entryName(name), key: KillEntry.key(name))
        guard var reading = found else { return nil }
        let chunks = view.readBody(&reading)
        return (reading, chunks)
    }
}
