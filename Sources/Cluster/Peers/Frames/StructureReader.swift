import Ground

/// Reads the one shape of everything that has parts: a fixed part that begins with its own size,
/// then fields with a tag and a length each; see "Structures" in <doc:PeerProtocol>.
///
/// A fixed part that is longer than known is skipped to its end, and so is a field whose tag is not
/// known. Holds places in the bytes, which are given to every call.
struct StructureReader {
    /// One field: its tag, and where its value lies.
    struct Field {
        let tag: UInt16
        let range: Range<Int>
    }

    /// What a damaged structure is reported as.
    let kind: PeerFrameKind
    private var position: Int

    /// Size of what stands before a field's value.
    static let fieldHeaderBytes = 4

    /// The structure that is the whole of `bytes`, whose fixed part has at least `fixedBytes`.
    init(
        _ bytes: Span<UInt8>, fixedBytes: Int, in kind: PeerFrameKind
    ) throws(PeerFault) {
        self.kind = kind
        guard bytes.count >= fixedBytes, bytes.count >= 2 else { throw .truncated(kind) }
        position = Int(bytes.little16(at: 0))
        guard position >= fixedBytes, position <= bytes.count else { throw .truncated(kind) }
    }

    /// The next field; nil after the last.
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

    /// Throws unless `field` has the `bytesCount` that are known of it; more are skipped.
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

    /// The text in `range`, at most ``PeerProtocol/textBytesMax`` of it; what is not UTF-8 is
    /// replaced.
    func peerText(_ range: Range<Int>) -> String {
        let end = Swift.min(range.upperBound, range.lowerBound + PeerProtocol.textBytesMax)
        return String(decoding: copy(range.lowerBound..<end), as: UTF8.self)
    }
}
