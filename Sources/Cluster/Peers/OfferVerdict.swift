package import Ground

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
