import Foundation
import Glibc
import Ground
import NIOPosix
import Store
import Synchronization
import Tiers

/// The settings that the processes of a campaign share: the tier's settings and the time of a run.
///
/// The time is simulated: each run begins later than the one before can have ended.
struct KillConfiguration {
    let directory: String
    let run: Int

    static let limitBytes = 16 << 20
    /// The number of entries; the first few are stored most often.
    static let names = 400

    /// Returns a random entry; half of the operations go to a few entries.
    static func randomName(using dice: inout SplitMix64) -> Int {
        let isHot = Bool.random(using: &dice)
        return Int.random(in: 0..<(isHot ? names / 16 : names), using: &dice)
    }

    /// The tier's settings, with segments of 1 MiB so that reclaims happen all the time.
    var settings: DiskStore.Settings {
        DiskStore.Settings(
            root: directory, limitBytes: UInt64(Self.limitBytes), objectBytesMax: 64 << 10,
            ageLimit: .seconds(100_000), queueBytesMax: 4 << 20, checkpointInterval: .seconds(1))
    }

    /// The instant at which the run begins.
    var startTime: Instant { Instant.zero + .seconds(1 + Int64(run) * 5_000) }

    /// The first version of the run; later ones are greater, for all entries.
    var firstVersion: Int { run * 1_000_000 + 1 }

    /// Opens a tier on the directory, which writes its events to standard output.
    func openTier() async -> DiskStore {
        let readers = NIOThreadPool(numberOfThreads: 1)
        readers.start()
        let journal = KillJournal(self)
        var settings = settings
        settings.markRecovery = { _, _, wanted in journal.read(wanted) }
        let marks = InvalidationIndex(isJournaled: true)
        let tier = DiskStore(
            settings, marks: marks,
            clock: DiskClock(instant: .zero, wall: 1_800_000_000_000),
            readers: readers
        ) { KillMessage($0)?.send() }
        await tier.start(now: startTime)
        marks.journaled(upTo: marks.version)
        return tier
    }
}

/// A message of a child to its parent, one per line.
enum KillMessage: Equatable {
    case opened(entries: Int, scanned: Int)
    /// The number of damaged records found in one file.
    case damaged(Int)
    case stored(name: Int, version: Int)
    /// All versions of the entry before this one are deleted, and that was acknowledged.
    case deleted(name: Int, version: Int)
    case found(name: Int, version: Int)
    /// The number of segments reclaimed since the child's start.
    case reclaimed(Int)
    /// The numbers of records read at once from the page cache, and by a disk thread.
    case read(atOnce: Int, byThread: Int)
    case closed
    /// A violation of a law.
    case violation(String)

    /// Creates the message for an event of the tier; `nil` if the campaign ignores it.
    init?(_ note: DiskEvent) {
        switch note {
        case .logOpened(_, let entries, _, let scanned):
            self = .opened(entries: entries, scanned: scanned)
        case .recordsCorrupt(_, let offsets): self = .damaged(offsets.count)
        // Only a fault of the disk or of this program causes these events.
        case .fileDiscarded, .recordLost, .revalidationRequired, .marksFolded, .storeFailed,
            .storeRecovered:
            self = .violation(note.message)
        }
    }

    private var fields: [String] {
        switch self {
        case .opened(let entries, let scanned): ["opened", "\(entries)", "\(scanned)"]
        case .damaged(let count): ["damaged", "\(count)"]
        case .stored(let name, let version): ["stored", "\(name)", "\(version)"]
        case .deleted(let name, let version): ["deleted", "\(name)", "\(version)"]
        case .found(let name, let version): ["found", "\(name)", "\(version)"]
        case .reclaimed(let count): ["reclaimed", "\(count)"]
        case .read(let atOnce, let byThread): ["read", "\(atOnce)", "\(byThread)"]
        case .closed: ["closed"]
        case .violation(let what): ["wrong", what]
        }
    }

    /// Parses a line without its end; `nil` if it is invalid.
    init?(_ text: String) {
        let words = text.split(separator: " ", maxSplits: 1).map(String.init)
        if words.first == "wrong" {
            self = .violation(words.last ?? "")
            return
        }
        let numbers = (words.count == 2 ? words[1] : "").split(separator: " ").map { Int($0) ?? -1 }
        switch (words.first, numbers.count) {
        case ("opened", 2): self = .opened(entries: numbers[0], scanned: numbers[1])
        case ("damaged", 1): self = .damaged(numbers[0])
        case ("stored", 2): self = .stored(name: numbers[0], version: numbers[1])
        case ("deleted", 2): self = .deleted(name: numbers[0], version: numbers[1])
        case ("found", 2): self = .found(name: numbers[0], version: numbers[1])
        case ("reclaimed", 1): self = .reclaimed(numbers[0])
        case ("read", 2): self = .read(atOnce: numbers[0], byThread: numbers[1])
        case ("closed", 0): self = .closed
        default: return nil
        }
    }

    /// Writes the line to standard output at once and whole: it is shorter than a pipe's buffer.
    func send() {
        let line = Array((fields.joined(separator: " ") + "\n").utf8)
        _ = unsafe line.withUnsafeBytes { unsafe write(1, $0.baseAddress, $0.count) }
    }
}

/// The journal of deletions, synced line by line, in place of a node's journal.
final class KillJournal: Sendable {
    private let file: Int32
    private let path: String

    init(_ world: KillConfiguration) {
        path = world.directory + "/deleted"
        try? FileManager.default.createDirectory(
            atPath: world.directory, withIntermediateDirectories: true)
        file = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    }

    /// Adds deletions and returns when they survive a kill and a power failure; false if that
    /// fails.
    func add(_ names: [Int], at version: InvalidationVersion) -> Bool {
        let text = names.map { "\($0) \(version.epoch) \(version.count)\n" }.joined()
        let bytes = Array(text.utf8)
        return unsafe write(file, bytes, bytes.count) == bytes.count && fdatasync(file) == 0
    }

    /// Returns the marks that are wanted.
    func read(_ wanted: ([InvalidationMark]) -> [InvalidationMark]) -> RecoveredMarks {
        var marks: [InvalidationMark] = []
        var found = RecoveredMarks(table: MarkTable())
        let bytes = (try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data()
        // Bytes after the last line break were not synced.
        let whole = bytes.prefix(through: bytes.lastIndex(of: 0x0A) ?? bytes.startIndex - 1)
        for line in whole.split(separator: 0x0A) {
            let numbers = String(decoding: line, as: UTF8.self).split(separator: " ")
                .compactMap { UInt64($0) }
            guard numbers.count == 3 else { continue }
            let version = InvalidationVersion(epoch: numbers[1], count: numbers[2])
            found.lastVersion = max(found.lastVersion, version)
            marks.append(
                InvalidationMark(KillEntry.target(Int(numbers[0])), isSoft: false, version: version)
            )
        }
        found.table = MarkTable(wanted(marks))
        return found
    }
}
