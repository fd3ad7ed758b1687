import Ground

/// A reader of structures, the common encoding of all compound values.
///
/// A structure is a fixed part, which begins with its own size, then fields with a tag and a length
/// each; see "Structures" in <doc:PeerProtocol>. The rest of a fixed part that is longer than known
/// is skipped, as are fields with unknown tags. The reader holds offsets only; the bytes are passed
/// to every call.
struct StructureReader {
    /// A field: its tag and the range of its value.
    struct Field {
        let tag: UInt16
        let range: Range<Int>
    }

    /// The frame kind to name in faults.
    let kind: PeerFrameKind
    private var position: Int

    /// The size of a field's header in bytes.
    static let fieldHeaderBytes = 4

    /// Creates a reader of the structure that fills all of `bytes`; its fixed part must have at
    /// least `fixedBytes`.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``.
    init(
        _ bytes: Span<UInt8>, fixedBytes: Int, in kind: PeerFrameKind
    ) throws(PeerFault) {
        self.kind = kind
        guard bytes.count >= fixedBytes, bytes.count >= 2 else { throw .truncated(kind) }
        position = Int(bytes.little16(at: 0))
        guard position >= fixedBytes, position <= bytes.count else { throw .truncated(kind) }
    }

    /// Returns the next field; `nil` after the last.
    ///
    /// - Throws: ``PeerFault/truncated(_:)`` if the field exceeds the structure.
    mutating func next(_ bytes: Span<UInt8>) throws(PeerFault) -> Field? {
        guard position < bytes.count else { return nil }
        let start = position + Self.fieldHeaderBytes
        guard start <= bytes.count else { throw .truncated(kind) }
        let end = start + Int(bytes.little16(at: position + 2))
        guard end <= bytes.count else { throw .truncated(kind) }
        let tag = bytes.little16(at: position)
        position = end
        return Field(tag: tag, range: start..<end)
    }

    /// Reads all remaining fields and returns the range of the value of the last one with `tag`;
    /// `nil` if there is none.
    ///
    /// - Throws: ``PeerFault/truncated(_:)`` if a field exceeds the structure.
    mutating func last(_ bytes: Span<UInt8>, _ tag: UInt16) throws(PeerFault) -> Range<Int>? {
        var last: Range<Int>?
        while let field = try next(bytes) {
            if field.tag == tag { last = field.range }
        }
        return last
    }

    /// Checks that `field` has at least `bytesCount` bytes; more are skipped.
    ///
    /// - Throws: ``PeerFault/truncated(_:)`` for fewer.
    func require(_ bytesCount: Int, of field: Field) throws(PeerFault) {
        guard field.range.count >= bytesCount else { throw .truncated(kind) }
    }
}

extension Span<UInt8> {
    func littleSigned64(at offset: Int) -> Int64 {
        Int64(bitPattern: little64(at: offset))
    }

    func digest(at offset: Int) -> EntryDigest {
        EntryDigest(first: little64(at: offset), second: little64(at: offset + 8))
    }

    func invalidationVersion(at offset: Int) -> InvalidationVersion {
        InvalidationVersion(epoch: little64(at: offset), count: little64(at: offset + 8))
    }

    func process(at offset: Int) -> ProcessID {
        ProcessID(high: little64(at: offset + 8), low: little64(at: offset))
    }

    /// Returns the text in `range`, at most the first ``PeerProtocol/textBytesMax`` bytes, with
    /// invalid UTF-8 replaced.
    func peerText(_ range: Range<Int>) -> String {
        let end = Swift.min(range.upperBound, range.lowerBound + PeerProtocol.textBytesMax)
        return String(decoding: copy(range.lowerBound..<end), as: UTF8.self)
    }
}
