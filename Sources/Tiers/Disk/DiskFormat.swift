/// The constants that several parts of the disk format use; <doc:DiskFormat> is the specification.
package enum DiskFormat {
    /// The major version; files with another one are not read.
    package static let major: UInt16 = 1
    /// The minor version; files with a newer one are read as far as this program understands them.
    package static let minor: UInt16 = 1
    /// The size of a segment's header in bytes.
    package static let headerBytes = 4096
    /// The alignment of records in bytes, from the beginning of the segment.
    package static let unitBytes = 64
    /// The size in bytes of the parts of a body that have a checksum each.
    package static let chunkBytes = 64 << 10
    /// The largest value of a stored counter; incrementing a greater one could overflow.
    package static let countMax: UInt64 = 1 << 62
    /// The value that represents an unknown wall time.
    package static let noTime = Int64.min

    /// Returns `bytes` rounded up to whole units.
    package static func rounded(_ bytes: Int) -> Int {
        (bytes + unitBytes - 1) / unitBytes * unitBytes
    }

    /// Returns the seed for the checksum of the metadata of the record at byte `offset` of its
    /// segment.
    package static func recordSeed(salt: UInt64, offset: UInt64) -> UInt64 {
        salt ^ offset
    }

    /// Returns the seed for the checksum of chunk `number` of the body of the record at `offset`.
    package static func chunkSeed(salt: UInt64, offset: UInt64, number: Int) -> UInt64 {
        salt ^ offset ^ (UInt64(number) &+ 1) << 40
    }
}

/// The reason why a file or a part of it is rejected.
package enum DiskFormatError: Error, Hashable, Sendable {
    /// The file ends too early, or a size in it exceeds it.
    case truncated
    /// The magic bytes are wrong.
    case badMagic
    /// The major version is not supported.
    case unsupportedVersion(major: UInt16)
    /// The file belongs to another node.
    case nodeMismatch
    /// The segment size differs from this node's; the value is the size found.
    case segmentSizeMismatch(UInt64)
    /// A stored counter exceeds ``DiskFormat/countMax``.
    case counterOutOfRange
    /// The checksum does not match.
    case checksumMismatch
    /// The checksum matches, but the record does not contain a valid response; the value is the
    /// reason.
    case invalidRecord(String)
}

extension DiskFormatError: CustomStringConvertible {
    /// The reason as text for a log line, with "it" as the subject.
    package var description: String {
        switch self {
        case .truncated: "it is truncated"
        case .badMagic: "it is not a Nuthatch file"
        case .unsupportedVersion(let major):
            "it is of format \(major), which this program does not read"
        case .nodeMismatch: "another node wrote it"
        case .segmentSizeMismatch(let bytes): "its segments have \(bytes) bytes"
        case .counterOutOfRange: "a counter in it is out of range"
        case .checksumMismatch: "its checksum does not match"
        case .invalidRecord(let why): why
        }
    }
}
