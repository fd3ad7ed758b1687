/// Reads the fields of a structure that are known, each of which comes once; others are passed
/// over.
struct UniqueFields {
    private(set) var structure: StructureReader
    /// All below 64.
    private let tags: ClosedRange<UInt16>
    /// By bit.
    private var seen: UInt64 = 0

    /// As ``StructureReader/init(_:fixedBytes:in:)``.
    init(
        _ bytes: Span<UInt8>, fixedBytes: Int, in kind: PeerFrameKind, _ tags: ClosedRange<UInt16>
    ) throws(PeerFault) {
        structure = try StructureReader(bytes, fixedBytes: fixedBytes, in: kind)
        self.tags = tags
    }

    /// The next field that is known; nil after the last.
    mutating func next(_ bytes: Span<UInt8>) throws(PeerFault) -> StructureReader.Field? {
        while let field = try structure.next(bytes) {
            guard tags.contains(field.tag) else { continue }
            let bit: UInt64 = 1 << UInt64(field.tag)
            guard seen & bit == 0 else { throw .malformed(structure.kind) }
            seen |= bit
            return field
        }
        return nil
    }
}
