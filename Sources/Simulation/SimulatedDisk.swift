package import Ground

/// Files on a disk that may lose its power: what was written and not synced then comes to the disk
/// whole, in part, or not at all, in any order.
package struct SimulatedDisk: Sendable {
    private struct Write: Sendable {
        var file: Int
        var offset: Int
        var bytes: [UInt8]
    }

    /// What is on the disk for certain.
    private var files: [[UInt8]]
    private var unsynced: [Write] = []

    /// A disk writes whole sectors.
    private static let sectorBytes = 512

    /// A disk with so many files of zeros.
    package init(files count: Int, bytes: Int) {
        files = Array(repeating: [UInt8](repeating: 0, count: bytes), count: count)
    }

    /// Writes within a file's size.
    package mutating func write(_ bytes: [UInt8], to file: Int, at offset: Int) {
        unsynced.append(Write(file: file, offset: offset, bytes: bytes))
    }

    /// What was written to the file is on the disk.
    package mutating func sync(_ file: Int) {
        for write in unsynced where write.file == file { put(write, write.bytes.indices) }
        unsynced.removeAll { $0.file == file }
    }

    /// The power fails: each sector of each write that was not synced is there or not.
    package mutating func crash(using dice: inout Dice) {
        for write in unsynced {
            let fate = Int.random(in: 0..<3, using: &dice)
            var start = 0
            while start < write.bytes.count {
                let inSector = (write.offset + start) % Self.sectorBytes
                let end = min(write.bytes.count, start + Self.sectorBytes - inSector)
                if fate == 1 || fate == 2 && Bool.random(using: &dice) { put(write, start..<end) }
                start = end
            }
        }
        unsynced = []
    }

    /// What a reader sees now.
    package func read(_ file: Int) -> [UInt8] {
        var disk = self
        disk.sync(file)
        return disk.files[file]
    }

    private mutating func put(_ write: Write, _ range: Range<Int>) {
        files[write.file].replaceSubrange(
            write.offset + range.lowerBound..<write.offset + range.upperBound,
            with: write.bytes[range])
    }
}
