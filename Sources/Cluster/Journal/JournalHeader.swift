package import Ground

/// The header of a journal file; see <doc:Journal>.
package struct JournalHeader: Hashable, Sendable {
    /// The node that wrote the file.
    package var node: NodeID
    /// The file's number; of the valid files the one with the greatest number is the active one.
    package var number: UInt64
    /// The boot epoch in which the file was written.
    package var epoch: UInt64
    /// A random number, drawn for each file, that seeds the checksums of its items.
    package var salt: UInt64
    /// The previous file and its synced size when this file was begun; `nil` for the first.
    package var previous: JournalPosition?
    /// True if checkpoints include the marks of removed files, as from minor version 1.
    package private(set) var hasMarks = true

    /// Creates a header from its parts.
    package init(
        node: NodeID, number: UInt64, epoch: UInt64, salt: UInt64, previous: JournalPosition?
    ) {
        self.node = node
        self.number = number
        self.epoch = epoch
        self.salt = salt
        self.previous = previous
    }

    /// The encoded size in bytes.
    package static let bytesCount = 80
    /// The major version; files of another one are not read.
    package static let major: UInt16 = 1
    /// The minor version; files of newer ones are read as far as they are understood.
    package static let minor: UInt16 = 1

    private static let magic = "NUTHJRNL"

    /// The encoded header.
    package var bytes: [UInt8] {
        var bytes = Array(Self.magic.utf8)
        bytes.appendLittle(Self.major)
        bytes.appendLittle(Self.minor)
        bytes.appendLittle(UInt32(0))
        bytes.appendLittle(UInt64(0))
        bytes.append(node)
        bytes.appendLittle(number)
        bytes.appendLittle(epoch)
        bytes.appendLittle(salt)
        bytes.appendLittle(previous?.file ?? 0)
        bytes.appendLittle(previous?.offset ?? 0)
        bytes.setLittle(
            XXH64.hash(bytes.span.extracting(24..<Self.bytesCount), seed: 0), at: 16)
        return bytes
    }

    /// Decodes and checks the header of a file.
    ///
    /// - Parameters:
    ///   - bytes: The beginning of the file.
    ///   - wanted: The node that must have written it.
    ///   - number: The number in the file's name.
    /// - Throws: The reason why the file cannot be used.
    package init(
        _ bytes: Span<UInt8>, node wanted: NodeID, number: UInt64
    ) throws(JournalDamage.Reason) {
        guard bytes.count >= Self.bytesCount else { throw .truncated }
        for (place, byte) in Self.magic.utf8.enumerated() where bytes[place] != byte {
            throw .notAJournalFile
        }
        guard bytes.little16(at: 8) == Self.major else { throw .version(bytes.little16(at: 8)) }
        let sum = XXH64.hash(bytes.extracting(24..<Self.bytesCount), seed: 0)
        guard bytes.little64(at: 16) == sum else { throw .checksum }
        node = NodeID(bytes, at: 24)
        guard node == wanted else { throw .otherNode }
        self.number = bytes.little64(at: 40)
        guard self.number == number else { throw .notAJournalFile }
        epoch = bytes.little64(at: 48)
        salt = bytes.little64(at: 56)
        let before = JournalPosition(bytes, at: 64)
        previous = before.file > 0 ? before : nil
        hasMarks = bytes.little16(at: 10) >= Self.minor
    }
}

/// A position in the journal, or the valid size of a file; ordered by the time of writing.
package struct JournalPosition: Hashable, Comparable, Sendable {
    /// The number of the file, from 1.
    package var file: UInt64
    /// The offset in the file in bytes.
    package var offset: UInt64

    /// Creates a position from its parts.
    package init(file: UInt64, offset: UInt64) {
        self.file = file
        self.offset = offset
    }

    /// Orders positions by file, then by offset.
    package static func < (left: JournalPosition, right: JournalPosition) -> Bool {
        (left.file, left.offset) < (right.file, right.offset)
    }
}

extension JournalPosition: FixedSizeValue {
    /// The encoded size in bytes.
    package static let bytesCount = 16

    /// Decodes the position at byte `offset` of `bytes`.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(file: bytes.little64(at: offset), offset: bytes.little64(at: offset + 8))
    }

    /// Appends the encoded position to `writer`.
    package func put(into writer: inout StructureWriter) {
        writer.put(file)
        writer.put(offset)
    }
}

/// A damage of the journal, by file.
package struct JournalDamage: Hashable, Sendable {
    /// The number of the file.
    package var file: UInt64
    /// The kind of damage.
    package var reason: Reason

    /// Creates a damage from its parts.
    package init(file: UInt64, reason: Reason) {
        self.file = file
        self.reason = reason
    }

    /// The kind of damage of a file.
    package enum Reason: Error, Hashable, Sendable {
        /// The file ends too early.
        case truncated
        /// The file does not begin like a journal file, or its header names another number.
        case notAJournalFile
        /// The file was written by this other major version.
        case version(UInt16)
        /// The file was written by another node.
        case otherNode
        /// The bytes from this offset on are not what was written and synced.
        case unreadable(from: UInt64)
        /// The checksum of the header does not match.
        case checksum
        /// The file is required and does not exist.
        case missing
        /// A record number has different contents in this file and elsewhere in the journal.
        case conflictingRecords(RecordID)
    }
}

extension JournalDamage: CustomStringConvertible {
    /// The damage as a clause for operators.
    package var description: String {
        switch reason {
        case .truncated: "it is truncated"
        case .notAJournalFile: "it is not a Nuthatch file"
        case .version(let major):
            "it is of format \(major), and this program reads \(JournalHeader.major)"
        case .otherNode: "another node wrote it"
        case .unreadable(let offset): "it is damaged from byte \(offset)"
        case .checksum: "the checksum of its header does not match"
        case .missing: "it is missing"
        case .conflictingRecords(let name):
            "it contradicts another copy of record \(name.number) of \(name.stream)"
        }
    }
}
