/// What goes in frames of its own, several in one, each in a field.
package protocol BatchElement: FixedSizeValue {
    static var kind: PeerFrameKind { get }
    /// The most in one frame.
    static var countMax: Int { get }
    /// What is passed by more.
    static var limit: PeerLimit { get }
}

extension BatchElement {
    private static var tag: UInt16 { 1 }

    /// The frame of several.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` for more than ``countMax``.
    package static func frame(_ batch: [Self]) throws(SendError) -> [UInt8] {
        guard batch.count <= countMax else { throw .tooLong(limit) }
        var writer = StructureWriter.payload
        writer.endFixedPart()
        writer.putFields(tag, batch)
        return try writer.frame(kind)
    }

    /// Those in `payload`.
    ///
    /// - Throws: what is wrong with it.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> [Self] {
        var structure = try StructureReader(payload, fixedBytes: 2, in: kind)
        var batch: [Self] = []
        while let field = try structure.next(payload) {
            guard field.tag == tag else { continue }
            let value: Self = try structure.fixedSizeValue(payload, field)
            guard batch.count < countMax else { throw .tooLong(limit) }
            batch.append(value)
        }
        return batch
    }
}
