import Foundation
import Glibc
import Ground
import Store
import Synchronization
import Tiers

/// What was deleted, synced a line at a time, as a node has it in its journal.
final class KillJournal: Sendable {
    private let file: Int32
    private let path: String

    init(_ world: KillConfiguration) {
        path = world.directory + "/deleted"
        try? FileManager.default.createDirectory(
            atPath: world.directory, withIntermediateDirectories: true)
        file = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    }

    /// Returns when it survives a kill and a power failure; false if that cannot be.
    func add(_ names: [Int], at version: InvalidationVersion) -> Bool {
        let text = names.map { "\($0) \(version.epoch) \(version.count)\n" }.joined()
        let bytes = Array(text.utf8)
        return unsafe write(file, bytes, bytes.count) == bytes.count && fdatasync(file) == 0
    }

    /// All of it that is wanted.
    func read(_ wanted: ([InvalidationMark]) -> [InvalidationMark]) -> RecoveredMarks {
        var marks: [InvalidationMark] = []
        var found = RecoveredMarks(table: MarkTable())
        let bytes = (try? Data(contentsOf: URL(fileURLWithPath: path))) ?? Data()
        // What is behind the last line's end was not synced.
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
