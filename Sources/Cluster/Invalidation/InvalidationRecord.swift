import Ground

/// Names a record of the log: whose it is and its number, from 1 without gaps.
package struct RecordID: Hashable, Sendable {
    /// The process that issued it.
    package var stream: ProcessID
    package var number: UInt64

    package init(stream: ProcessID, number: UInt64) {
        self.stream = stream
        self.number = number
    }

    /// The position of a node that has this record and all before it in its stream.
    package var position: StreamPosition { StreamPosition(process: stream, count: number) }
}

/// One invalidation as it is kept and told on: by all nodes with the same bytes, whether they
/// understand it or not.
package struct InvalidationRecord: Hashable, Sendable {
    package let id: RecordID
    /// What ``UnsafeMethodInvalidation`` reads.
    package let content: [UInt8]
    /// XXH64 of the content: tells two contents of one number apart.
    package let hash: UInt64

    /// `name` has a number from 1; `content` fits in a field.
    package init(_ name: RecordID, content: [UInt8]) {
        precondition(name.number > 0, "a record without a number")
        precondition(content.count <= Int(UInt16.max), "a record of \(content.count) bytes")
        self.id = name
        self.content = content
        hash = XXH64.hash(content.span, seed: 0)
    }

    package var invalidation: Invalidation { Invalidation(content: content.span) }
}

extension InvalidationRecord {
    private enum Tag {
        static let content: UInt16 = 1
    }

    /// Its size, the number, the process, the hash.
    private static let fixedBytes = 34

    /// Size of ``bytes``.
    package var bytesCount: Int {
        Self.fixedBytes + StructureReader.fieldHeaderBytes + content.count
    }

    /// As it goes to peers and to disk: a structure as in <doc:PeerProtocol>, whose fixed part is
    /// its size (2), the number (8), the process (16) and the hash of the content (8); field 1 is
    /// the content.
    package var bytes: [UInt8] {
        var writer = StructureWriter()
        writer.put(id.number)
        writer.put(id.stream)
        writer.put(hash)
        writer.endFixedPart()
        writer.putField(Tag.content, content)
        return writer.bytes
    }

    /// The record in `bytes`; nil if they are damaged.
    package static func read(_ bytes: Span<UInt8>) -> InvalidationRecord? {
        guard
            var structure = try? StructureReader(bytes, fixedBytes: fixedBytes, in: .invalidations)
        else { return nil }
        let name = RecordID(stream: bytes.process(at: 10), number: bytes.little64(at: 2))
        var content: [UInt8]?
        do throws(PeerFault) {
            while let field = try structure.next(bytes) {
                if field.tag == Tag.content { content = bytes.copy(field.range) }
            }
        } catch {
            return nil
        }
        guard let content, name.number > 0 else { return nil }
        let record = InvalidationRecord(name, content: content)
        return record.hash == bytes.little64(at: 26) ? record : nil
    }
}
