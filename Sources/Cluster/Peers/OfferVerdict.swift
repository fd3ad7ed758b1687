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
}

extension OfferVerdict: Batched {
    package static let kind = PeerFrameKind.offerAnswered
    package static let countMax = PeerProtocol.offersMax
    package static let limit = PeerLimit.offers
    package static let bytesCount = 17

    private static let kept: UInt8 = 1
    private static let refused: UInt8 = 2

    /// One that is not known is a refusal.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(digest: bytes.digest(at: offset), isKept: bytes[offset + 16] == Self.kept)
    }

    package func put(into writer: inout StructureWriter) {
        writer.put(digest)
        writer.put(isKept ? Self.kept : Self.refused)
    }
}
