import Ground

/// The identifier of a log record: its stream and its number, from 1 without gaps.
package struct RecordID: Hashable, Sendable {
    /// The process that issued the record.
    package var stream: ProcessID
    /// The number in the stream, from 1.
    package var number: UInt64

    /// Creates an identifier from its parts.
    package init(stream: ProcessID, number: UInt64) {
        self.stream = stream
        self.number = number
    }

    /// The position of a node that has this record and all earlier ones of its stream.
    package var position: StreamPosition { StreamPosition(process: stream, count: number) }
}

/// One invalidation as it is kept and forwarded.
///
/// All nodes use the same bytes, even if they do not recognise the content.
package struct InvalidationRecord: Hashable, Sendable {
    /// The identifier.
    package let id: RecordID
    /// The encoded ``Invalidation``.
    package let encodedContent: [UInt8]
    /// The XXH64 of the content, which distinguishes two contents of one number.
    package let hash: UInt64

    /// Creates a record; the number must be 1 or more and the content at most 65,535 bytes.
    package init(_ name: RecordID, content: [UInt8]) {
        precondition(name.number > 0, "a record without a number")
        precondition(content.count <= Int(UInt16.max), "a record of \(content.count) bytes")
        self.id = name
        self.encodedContent = content
        hash = XXH64.hash(content.span, seed: 0)
    }

    /// The decoded content.
    package var invalidation: Invalidation { Invalidation(content: encodedContent.span) }
}

extension InvalidationRecord {
    private enum Tag {
        static let content: UInt16 = 1
    }

    /// The size of the fixed part: its size, the number, the process and the hash.
    private static let fixedBytes = 34

    /// The size of ``bytes``.
    package var bytesCount: Int {
        Self.fixedBytes + StructureReader.fieldHeaderBytes + encodedContent.count
    }

    /// The encoded record for peers and the disk: a structure as in <doc:PeerProtocol>.
    ///
    /// The fixed part is its size (2), the number (8), the process (16) and the hash of the content
    /// (8); field 1 is the content.
    package var bytes: [UInt8] {
        var writer = StructureWriter()
        writer.put(id.number)
        writer.put(id.stream)
        writer.put(hash)
        writer.endFixedPart()
        writer.putField(Tag.content, encodedContent)
        return writer.bytes
    }

    /// Decodes a record; `nil` if the bytes are damaged.
    package static func read(_ bytes: Span<UInt8>) -> InvalidationRecord? {
        guard
            var structure = try? StructureReader(bytes, fixedBytes: fixedBytes, in: .invalidations),
            let range = try? structure.last(bytes, Tag.content)
        else { return nil }
        let name = RecordID(stream: bytes.process(at: 10), number: bytes.little64(at: 2))
        guard name.number > 0 else { return nil }
        let record = InvalidationRecord(name, content: bytes.copy(range))
        return record.hash == bytes.little64(at: 26) ? record : nil
    }
}
