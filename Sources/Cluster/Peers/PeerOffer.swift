package import Ground

/// An entry that a node would hand over; who wants it asks for it by its digest; see "OFFER" in
/// <doc:PeerProtocol>.
package struct PeerOffer: Hashable, Sendable {
    /// Names the entry.
    package var digest: EntryDigest
    /// About what it takes, in bytes: of one that lies on disk its record, else its body.
    package var size: UInt64
    /// How often it was used, of late.
    package var touches: UInt32
    /// It was just fetched: who holds one that is older wants it, too.
    package var isNew: Bool
    /// Whole minutes since its last use.
    package var idleMinutes: UInt16

    package init(
        digest: EntryDigest, size: UInt64, touches: UInt32, isNew: Bool, idleMinutes: UInt16 = 0
    ) {
        self.idleMinutes = idleMinutes
        self.digest = digest
        self.size = size
        self.touches = touches
        self.isNew = isNew
    }

    private static let tag: UInt16 = 1
    private static let bytesCount = 32
    /// Of the flags; the others mean nothing yet.
    private static let new: UInt16 = 1 << 0

    /// The frame of several.
    ///
    /// - Throws: ``SendRefusal/tooLong(_:)`` for more than ``PeerProtocol/offersMax``.
    package static func frame(_ offers: [PeerOffer]) throws(SendRefusal) -> [UInt8] {
        guard offers.count <= PeerProtocol.offersMax else { throw .tooLong(.offers) }
        var writer = StructureWriter.payload
        writer.endFixedPart()
        for offer in offers {
            writer.beginField(tag, bytesCount: bytesCount)
            writer.put(offer.digest)
            writer.put(offer.size)
            writer.put(offer.touches)
            writer.put(offer.isNew ? new : 0)
            writer.put(offer.idleMinutes)
        }
        return try writer.frame(.offer)
    }

    /// The offers in `payload`.
    ///
    /// - Throws: what is wrong with it.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> [PeerOffer] {
        var structure = try PeerStructure(payload, fixedBytes: 2, in: .offer)
        var offers: [PeerOffer] = []
        while let field = try structure.next(payload) {
            guard field.tag == tag else { continue }
            try structure.require(bytesCount, of: field)
            guard offers.count < PeerProtocol.offersMax else { throw .tooLong(.offers) }
            let start = field.range.lowerBound
            offers.append(
                PeerOffer(
                    digest: payload.digest(at: start), size: payload.little64(at: start + 16),
                    touches: payload.little32(at: start + 24),
                    isNew: payload.little16(at: start + 28) & new != 0,
                    idleMinutes: payload.little16(at: start + 30)))
        }
        return offers
    }
}
