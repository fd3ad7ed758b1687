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
    package var isJustFetched: Bool
    /// Whole minutes since its last use.
    package var idleMinutes: UInt16

    package init(
        digest: EntryDigest, size: UInt64, touches: UInt32, isNew: Bool, idleMinutes: UInt16 = 0
    ) {
        self.idleMinutes = idleMinutes
        self.digest = digest
        self.size = size
        self.touches = touches
        self.isJustFetched = isNew
    }
}

extension PeerOffer: BatchElement {
    package static let kind = PeerFrameKind.offer
    package static let countMax = PeerProtocol.offersMax
    package static let limit = PeerLimit.offers
    package static let bytesCount = 32

    /// Of the flags; the others mean nothing yet.
    private static let justFetchedFlag: UInt16 = 1 << 0

    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(
            digest: bytes.digest(at: offset), size: bytes.little64(at: offset + 16),
            touches: bytes.little32(at: offset + 24),
            isNew: bytes.little16(at: offset + 28) & Self.justFetchedFlag != 0,
            idleMinutes: bytes.little16(at: offset + 30))
    }

    package func put(into writer: inout StructureWriter) {
        writer.put(digest)
        writer.put(size)
        writer.put(touches)
        writer.put(isJustFetched ? Self.justFetchedFlag : 0)
        writer.put(idleMinutes)
    }
}

/// What became of an offer; see "OFFER_ANSWERED" in <doc:PeerProtocol>.
package struct OfferOutcome: Hashable, Sendable {
    package var digest: EntryDigest
    /// True if the receiver holds the entry, in this version or another; false if it does not want
    /// it, or could not get it.
    package var isStored: Bool

    package init(digest: EntryDigest, isKept: Bool) {
        self.digest = digest
        self.isStored = isKept
    }
}

extension OfferOutcome: BatchElement {
    package static let kind = PeerFrameKind.offerOutcomes
    package static let countMax = PeerProtocol.offersMax
    package static let limit = PeerLimit.offers
    package static let bytesCount = 17

    private static let storedCode: UInt8 = 1
    private static let rejectedCode: UInt8 = 2

    /// One that is not known is a refusal.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(digest: bytes.digest(at: offset), isKept: bytes[offset + 16] == Self.storedCode)
    }

    package func put(into writer: inout StructureWriter) {
        writer.put(digest)
        writer.put(isStored ? Self.storedCode : Self.rejectedCode)
    }
}
