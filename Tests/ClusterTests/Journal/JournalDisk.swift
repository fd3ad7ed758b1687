import Cluster
import Ground

/// Simulated files: unsynced bytes may be lost, torn or present after a crash.
struct JournalDisk {
    fileprivate struct File {
        var bytes: [UInt8] = []
        /// The number of bytes that survive any crash; `nil` if the name does not either.
        var synced: Int?
    }

    private var files: [UInt64: File] = [:]
    /// Deleted files, which may be back after a power failure.
    private var deleted: [UInt64: File] = [:]

    /// Bytes of a deleted file that may be in reused blocks.
    private var stale: [UInt8] = []
    /// The bytes appended last to any file.
    private(set) var lastAppend = (file: UInt64(0), start: 0)

    /// The files that a start finds.
    var contents: [UInt64: [UInt8]] { files.mapValues(\.bytes) }
    var bytesCount: Int { files.values.reduce(0) { $0 + $1.bytes.count } }

    mutating func run(_ effect: JournalEffect) {
        switch effect {
        case .create(let number):
            deleted[number] = nil
            files[number] = File()
        case .append(let number, let bytes):
            lastAppend = (number, files[number]?.bytes.count ?? 0)
            files[number]?.bytes += bytes
        case .sync(let number):
            let count = files[number]?.bytes.count
            files[number]?.synced = count
        case .delete(let number):
            deleted[number] = files.removeValue(forKey: number)
            stale = deleted[number]?.bytes ?? stale
        case .syncDirectory: deleted = [:]
        }
    }

    /// Performs an effect in part and fails.
    mutating func fail(_ effect: JournalEffect, using dice: inout SplitMix64) {
        switch effect {
        case .append(let number, let bytes):
            let count = Int.random(in: 0...bytes.count, using: &dice)
            run(.append(number, Array(bytes.prefix(count))))
        case .create, .delete: if Bool.random(using: &dice) { run(effect) }
        case .sync, .syncDirectory: break
        }
    }

    /// Cuts the power.
    mutating func crash(using dice: inout SplitMix64) {
        for (number, file) in deleted.sorted(by: { $0.key < $1.key })
        where files[number] == nil && Bool.random(using: &dice) {
            files[number] = file
        }
        deleted = [:]
        for number in files.keys.sorted() {
            guard var file = files[number] else { continue }
            let isNameLost = file.synced == nil && Bool.random(using: &dice)
            file.tear(from: file.synced ?? 0, stale: stale, using: &dice)
            file.synced = file.bytes.count
            files[number] = isNameLost ? nil : file
        }
    }

    /// Damages or removes bytes that were synced long ago.
    mutating func damage(_ number: UInt64, _ change: (inout [UInt8]) -> Void) {
        guard var file = files[number] else { return }
        change(&file.bytes)
        file.synced = file.bytes.count
        files[number] = file
    }

    mutating func lose(_ number: UInt64) {
        files[number] = nil
    }
}

extension JournalDisk.File {
    /// Replaces each 64 bytes after `start` by nothing, zeros, random bytes or former ones, or
    /// truncates the file.
    fileprivate mutating func tear(from start: Int, stale: [UInt8], using dice: inout SplitMix64) {
        guard start < bytes.count else { return }
        if Bool.random(using: &dice) {
            bytes.removeLast(
                bytes.count - Int.random(in: start...bytes.count, using: &dice))
        }
        if Int.random(in: 0..<4, using: &dice) == 0 {
            for index in start..<bytes.count where index < stale.count {
                bytes[index] = stale[index]
            }
            return
        }
        let isTorn = Bool.random(using: &dice)
        var place = start
        while isTorn, place < bytes.count {
            let end = min(bytes.count, place + 64)
            switch Int.random(in: 0..<4, using: &dice) {
            case 0: for index in place..<end { bytes[index] = 0 }
            case 1:
                for index in place..<end { bytes[index] = UInt8(truncatingIfNeeded: dice.next()) }
            default: break
            }
            place = end
        }
    }
}

/// Invalidations as the journal keeps them: the latest with their versions, and for all earlier
/// ones that there were some.
struct JournalMarks: Equatable {
    var versions: Set<InvalidationVersion> = []
    var foldedTo = InvalidationVersion.zero

    private static let stampsMax = 40

    /// The marks in the range, as a chunk.
    func piece(after: InvalidationVersion, upTo last: InvalidationVersion) -> [UInt8] {
        var wanted = versions.filter { $0 > after && $0 <= last }.sorted()
        var folded = foldedTo
        if wanted.count > Self.stampsMax {
            folded = wanted[wanted.count - Self.stampsMax - 1]
            wanted.removeFirst(wanted.count - Self.stampsMax)
        }
        var bytes: [UInt8] = []
        for version in [folded] + wanted {
            bytes.appendLittle(version.epoch)
            bytes.appendLittle(version.count)
        }
        return bytes
    }

    /// The marks in the files of a journal.
    init(of files: [UInt64: [UInt8]], node: NodeID) {
        var recovery = JournalRecovery(node: node, files: files.keys.sorted())
        while let number = recovery.nextFile {
            let file = files[number] ?? []
            recovery.read(file.span)
            for purge in recovery.takePurges() { versions.insert(purge.version) }
        }
        for piece in recovery.marks ?? [] {
            for start in stride(from: 0, to: piece.count, by: 16) {
                let version = InvalidationVersion(
                    epoch: piece.span.little64(at: start),
                    count: piece.span.little64(at: start + 8))
                if start == 0 {
                    foldedTo = max(foldedTo, version)
                } else {
                    versions.insert(version)
                }
            }
        }
    }

    init() {}

    func covers(_ version: InvalidationVersion) -> Bool {
        version <= foldedTo || versions.contains(version)
    }
}
