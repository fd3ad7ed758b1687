package import Ground

/// The first bytes of a file of the journal; see <doc:Journal>.
package struct JournalHeader: Hashable, Sendable {
    package var node: NodeID
    /// Of the files that count the one with the greatest number goes on.
    package var number: UInt64
    /// The boot epoch in which the file was written.
    package var epoch: UInt64
    /// Drawn anew with each file.
    package var salt: UInt64
    /// Which file went on before, and how much of it was synced then; nil for the first.
    package var previous: JournalPosition?
    /// Its checkpoint says what files that are gone had invalidated.
    package private(set) var hasMarks = true

    package init(
        node: NodeID, number: UInt64, epoch: UInt64, salt: UInt64, previous: JournalPosition?
    ) {
        self.node = node
        self.number = number
        self.epoch = epoch
        self.salt = salt
        self.previous = previous
    }

    /// Size in bytes.
    package static let bytesCount = 80
    /// Files of another major version are not read.
    package static let major: UInt16 = 1
    /// A newer minor version is read as far as it is understood.
    package static let minor: UInt16 = 1

    private static let magic = "NUTHJRNL"

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

    /// What a file of this number that begins with these bytes says of itself.
    ///
    /// - Throws: what is wrong with it, or that it is not this node's.
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

/// A place in the journal, or how far a file counts; in the order in which it was written.
package struct JournalPosition: Hashable, Comparable, Sendable {
    /// From 1.
    package var file: UInt64
    /// Bytes from the file's beginning.
    package var offset: UInt64

    package init(file: UInt64, offset: UInt64) {
        self.file = file
        self.offset = offset
    }

    package static func < (left: JournalPosition, right: JournalPosition) -> Bool {
        (left.file, left.offset) < (right.file, right.offset)
    }
}

extension JournalPosition: FixedSizeValue {
    package static let bytesCount = 16

    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(file: bytes.little64(at: offset), offset: bytes.little64(at: offset + 8))
    }

    package func put(into writer: inout StructureWriter) {
        writer.put(file)
        writer.put(offset)
    }
}

/// What is wrong with a journal.
package struct JournalDamage: Hashable, Sendable {
    /// The file's number.
    package var file: UInt64
    package var reason: Reason

    package init(file: UInt64, reason: Reason) {
        self.file = file
        self.reason = reason
    }

    package enum Reason: Error, Hashable, Sendable {
        /// It ends before it should.
        case truncated
        /// It does not begin as such a file begins, or is another than its name says.
        case notAJournalFile
        /// Another major version wrote it.
        case version(UInt16)
        /// Another node wrote it.
        case otherNode
        /// From this byte on it is not what was written and synced.
        case unreadable(from: UInt64)
        /// Bytes in its header have changed.
        case checksum
        /// It is not there, and should be.
        case missing
        /// A number of a stream has one content here and another elsewhere in the journal.
        case conflictingRecords(RecordID)
    }
}

extension JournalDamage: CustomStringConvertible {
    package var description: String {
        switch reason {
        case .truncated: "it is cut off"
        case .notAJournalFile: "it is not a file of this program"
        case .version(let major):
            "it is of format \(major), and this program reads \(JournalHeader.major)"
        case .otherNode: "another node wrote it"
        case .unreadable(let offset): "its bytes from \(offset) on are not what was written"
        case .checksum: "the checksum of its header does not fit its bytes"
        case .missing: "it is missing"
        case .conflictingRecords(let name):
            "record \(name.number) of \(name.stream) has two contents, one of them in it"
        }
    }
}
