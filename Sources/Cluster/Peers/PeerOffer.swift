package import Ground

/// An entry that a node would hand over; who wants it asks for it by name; see "OFFER" in
/// <doc:PeerProtocol>.
package struct PeerOffer: Hashable, Sendable {
    package var name: EntryName
    /// Bytes of the body.
    package var size: UInt64
    /// How often it was used, of late.
    package var touches: UInt32
    /// Of the holder's node, when the request for the entry began.
    package var stamp: Stamp

    package init(name: EntryName, size: UInt64, touches: UInt32, stamp: Stamp) {
        self.name = name
        self.size = size
        self.touches = touches
        self.stamp = stamp
    }

    private static let tag: UInt16 = 1
    private static let bytesCount = 60

    /// The frame of several.
    ///
    /// - Throws: ``SendRefusal/tooLong(_:)`` for more than ``PeerProtocol/offersMax``.
    package static func frame(_ offers: [PeerOffer]) throws(SendRefusal) -> [UInt8] {
        guard offers.count <= PeerProtocol.offersMax else { throw .tooLong(.offers) }
        var writer = StructureWriter.payload
        writer.endFixedPart()
        for offer in offers {
            writer.beginField(tag, bytesCount: bytesCount)
            writer.put(offer.name)
            writer.put(offer.size)
            writer.put(offer.touches)
            writer.put(offer.stamp)
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
                    name: EntryName(payload, at: start), size: payload.little64(at: start + 32),
                    touches: payload.little32(at: start + 40),
                    stamp: payload.stamp(at: start + 44)))
        }
        return offers
    }
}
