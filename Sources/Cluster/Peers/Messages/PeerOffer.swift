package import Ground

/// An entry offered by a node; a peer that wants it queries it by its digest; see "OFFER" in
/// <doc:PeerProtocol>.
package struct PeerOffer: Hashable, Sendable {
    /// The digest that identifies the entry.
    package var digest: EntryDigest
    /// The approximate size in bytes: of an entry on disk its record, otherwise its body.
    package var size: UInt64
    /// The number of recent uses.
    package var touches: UInt32
    /// True if the entry was just fetched: peers that hold an older one want it too.
    package var isJustFetched: Bool
    /// Whole minutes since the last use.
    package var idleMinutes: UInt16

    /// Creates an offer from its parts.
    package init(
        digest: EntryDigest, size: UInt64, touches: UInt32, isJustFetched: Bool,
        idleMinutes: UInt16 = 0
    ) {
        self.idleMinutes = idleMinutes
        self.digest = digest
        self.size = size
        self.touches = touches
        self.isJustFetched = isJustFetched
    }
}

extension PeerOffer: BatchElement {
    /// The kind of the frame.
    package static let kind = PeerFrameKind.offer
    /// Maximum number of offers in one frame.
    package static let countMax = PeerProtocol.offersMax
    /// The limit to report when a frame has more.
    package static let limit = PeerLimit.offers
    /// The encoded size in bytes.
    package static let bytesCount = 32

    /// The only flag with a meaning so far.
    private static let justFetchedFlag: UInt16 = 1 << 0

    /// Decodes the offer at `offset`.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(
            digest: bytes.digest(at: offset), size: bytes.little64(at: offset + 16),
            touches: bytes.little32(at: offset + 24),
            isJustFetched: bytes.little16(at: offset + 28) & Self.justFetchedFlag != 0,
            idleMinutes: bytes.little16(at: offset + 30))
    }

    /// Encodes the offer.
    package func put(into writer: inout StructureWriter) {
        writer.put(digest)
        writer.put(size)
        writer.put(touches)
        writer.put(isJustFetched ? Self.justFetchedFlag : 0)
        writer.put(idleMinutes)
    }
}

/// The outcome of an offer; see "OFFER_ANSWERED" in <doc:PeerProtocol>.
package struct OfferOutcome: Hashable, Sendable {
    /// The digest of the offered entry.
    package var digest: EntryDigest
    /// True if the receiver holds the entry, in this or another version; false if it does not want
    /// it or could not get it.
    package var isStored: Bool

    /// Creates an outcome from its parts.
    package init(digest: EntryDigest, isStored: Bool) {
        self.digest = digest
        self.isStored = isStored
    }
}

extension OfferOutcome: BatchElement {
    /// The kind of the frame.
    package static let kind = PeerFrameKind.offerOutcomes
    /// Maximum number of outcomes in one frame.
    package static let countMax = PeerProtocol.offersMax
    /// The limit to report when a frame has more.
    package static let limit = PeerLimit.offers
    /// The encoded size in bytes.
    package static let bytesCount = 17

    private static let storedCode: UInt8 = 1
    private static let rejectedCode: UInt8 = 2

    /// Decodes the outcome at `offset`; an unknown code is a refusal.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(digest: bytes.digest(at: offset), isStored: bytes[offset + 16] == Self.storedCode)
    }

    /// Encodes the outcome.
    package func put(into writer: inout StructureWriter) {
        writer.put(digest)
        writer.put(isStored ? Self.storedCode : Self.rejectedCode)
    }
}
