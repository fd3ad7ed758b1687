package import Ground

/// What became of an offer; see "OFFER_ANSWERED" in <doc:PeerProtocol>.
package struct OfferVerdict: Hashable, Sendable {
    package var digest: EntryDigest
    /// True if the receiver holds the entry, in this version or another; false if it does not want
    /// it, or could not get it.
    package var isKept: Bool

    package init(digest: EntryDigest, isKept: Bool) {
        self.digest = digest
        self.isKept = isKept
    }

    private static let tag: UInt16 = 1
    private static let bytesCount = 17
    private static let kept: UInt8 = 1
    private static let refused: UInt8 = 2

    /// The frame of several.
    ///
    /// - Throws: ``SendRefusal/tooLong(_:)`` for more than ``PeerProtocol/offersMax``.
    package static func frame(_ verdicts: [OfferVerdict]) throws(SendRefusal) -> [UInt8] {
        guard verdicts.count <= PeerProtocol.offersMax else { throw .tooLong(.offers) }
        var writer = StructureWriter.payload
        writer.endFixedPart()
        for verdict in verdicts {
            writer.beginField(tag, bytesCount: bytesCount)
            writer.put(verdict.digest)
            writer.put(verdict.isKept ? kept : refused)
        }
        return try writer.frame(.offerAnswered)
    }

    /// The verdicts in `payload`; one that is not known is a refusal.
    ///
    /// - Throws: what is wrong with it.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> [OfferVerdict] {
        var structure = try PeerStructure(payload, fixedBytes: 2, in: .offerAnswered)
        var verdicts: [OfferVerdict] = []
        while let field = try structure.next(payload) {
            guard field.tag == tag else { continue }
            try structure.require(bytesCount, of: field)
            guard verdicts.count < PeerProtocol.offersMax else { throw .tooLong(.offers) }
            let start = field.range.lowerBound
            verdicts.append(
                OfferVerdict(
                    digest: payload.digest(at: start), isKept: payload[start + 16] == kept))
        }
        return verdicts
    }
}
