/// Numbers of the disk format that more than one part of it needs; <doc:DiskFormat> is the
/// specification.
package enum DiskFormat {
    /// Files of another major version are not read.
    package static let major: UInt16 = 1
    /// A newer minor version is read as far as it is understood.
    package static let minor: UInt16 = 1
    /// Size of a segment's header.
    package static let headerBytes = 4096
    /// Records begin at multiples of this from the segment's beginning.
    package static let unitBytes = 64
    /// Size of the part of a body that has a checksum of its own.
    package static let chunkBytes = 64 << 10
    /// No node counts so far; counting on from a greater number could overflow.
    package static let countMax: UInt64 = 1 << 62
    /// Stands for a wall time that is not known.
    package static let noTime = Int64.min

    /// `bytes` rounded up to whole units.
    package static func rounded(_ bytes: Int) -> Int {
        (bytes + unitBytes - 1) / unitBytes * unitBytes
    }

    /// The seed of the checksum of the record at `offset`.
    package static func recordSeed(salt: UInt64, offset: UInt64) -> UInt64 {
        salt ^ offset
    }

    /// The seed of the checksum of chunk `number` of the body of the record at `offset`.
    package static func chunkSeed(salt: UInt64, offset: UInt64, number: Int) -> UInt64 {
        salt ^ offset ^ (UInt64(number) &+ 1) << 40
    }
}

/// Why a file or a part of it is not what it should be.
package enum DiskFormatError: Error, Hashable, Sendable {
    /// It ends before it should, or a size in it leads out of it.
    case truncated
    /// It does not begin as such a file or part begins.
    case badMagic
    /// Another major version wrote it.
    case unsupportedVersion(major: UInt16)
    /// Another node wrote it.
    case nodeMismatch
    /// It is of another size than this node's segments.
    case segmentSizeMismatch(UInt64)
    /// It counts on from where no node has ever counted to.
    case counterOutOfRange
    /// Bytes in it have changed.
    case checksumMismatch
    /// Its bytes are those that were written, and yet no answer can be made of them.
    case invalidRecord(String)
}

extension DiskFormatError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .truncated: "it is cut off"
        case .badMagic: "it is not a file of this program"
        case .unsupportedVersion(let major):
            "it is of format \(major), which this program does not read"
        case .nodeMismatch: "another node wrote it"
        case .segmentSizeMismatch(let bytes): "its segments have \(bytes) bytes"
        case .counterOutOfRange: "it counts on from where no node has counted to"
        case .checksumMismatch: "its checksum does not fit its bytes"
        case .invalidRecord(let why): why
        }
    }
}
