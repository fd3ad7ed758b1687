import Ground

/// The header of a frame: 12 bytes with the payload's length, the kind and the stream.
package struct PeerFrameHeader: Hashable, Sendable {
    /// The kind of the frame.
    package let kind: PeerFrameKind
    /// The stream; 0 for a frame about the connection.
    package let stream: UInt32
    /// The length of the payload in bytes, within the limit of ``kind``.
    package let payloadBytes: Int

    /// The size of a header in bytes.
    package static let bytesCount = 12

    /// Creates a header to send; `payloadBytes` must be within the limit of `kind`.
    package init(_ kind: PeerFrameKind, stream: UInt32, payloadBytes: Int) {
        precondition(
            payloadBytes <= kind.payloadBytesMax, "\(payloadBytes) bytes in a frame of \(kind)")
        self.kind = kind
        self.stream = stream
        self.payloadBytes = payloadBytes
    }

    /// Decodes a header from the first ``bytesCount`` bytes, which must be present.
    ///
    /// - Throws: ``PeerFault/tooLong(_:)`` if the payload exceeds the limit of its kind; the
    ///   payload must then not be read.
    package init(_ bytes: Span<UInt8>) throws(PeerFault) {
        let count = bytes.little32(at: 0)
        kind = PeerFrameKind(rawValue: bytes[4])
        stream = bytes.little32(at: 8)
        guard count <= UInt32(kind.payloadBytesMax) else {
            throw .tooLong(kind == .data ? .data : .payload)
        }
        payloadBytes = Int(count)
    }

    /// The encoded header; flags and reserved bytes are zero.
    package var bytes: InlineArray<12, UInt8> {
        let count = UInt32(payloadBytes)
        return [
            UInt8(truncatingIfNeeded: count), UInt8(truncatingIfNeeded: count >> 8),
            UInt8(truncatingIfNeeded: count >> 16), UInt8(truncatingIfNeeded: count >> 24),
            kind.rawValue, 0, 0, 0,
            UInt8(truncatingIfNeeded: stream), UInt8(truncatingIfNeeded: stream >> 8),
            UInt8(truncatingIfNeeded: stream >> 16), UInt8(truncatingIfNeeded: stream >> 24),
        ]
    }
}

/// The kind of a frame; a receiver skips unknown kinds.
package struct PeerFrameKind: RawRepresentable, Hashable, Sendable {
    /// The number of the kind on the wire.
    package let rawValue: UInt8

    /// Creates a kind from its number, known or not.
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    // Frames about the connection, on stream 0.

    /// The first frame of each side.
    package static let hello = PeerFrameKind(rawValue: 1)
    /// The last frame of each side, with the reason.
    package static let goodbye = PeerFrameKind(rawValue: 2)
    /// A membership message.
    package static let gossip = PeerFrameKind(rawValue: 3)
    /// Recent uses of entries on the sender.
    package static let touches = PeerFrameKind(rawValue: 4)
    /// Entries that the sender offers.
    package static let offer = PeerFrameKind(rawValue: 5)
    /// Outcomes of offers.
    package static let offerOutcomes = PeerFrameKind(rawValue: 6)
    /// The sender's summary of itself for operators.
    package static let summary = PeerFrameKind(rawValue: 7)

    // Frames about invalidations, on stream 0; see ``InvalidationMessage``.

    /// Invalidation records.
    package static let invalidations = PeerFrameKind(rawValue: 32)
    /// Synced positions of streams, with the sender's members and voter set.
    package static let confirmed = PeerFrameKind(rawValue: 33)
    /// Applied positions of streams.
    package static let applied = PeerFrameKind(rawValue: 34)
    /// A request for missing records.
    package static let repairRequest = PeerFrameKind(rawValue: 35)
    /// The response with missing records.
    package static let repair = PeerFrameKind(rawValue: 36)
    /// A request of a fence round.
    package static let round = PeerFrameKind(rawValue: 37)
    /// The response in a fence round.
    package static let roundReply = PeerFrameKind(rawValue: 38)

    // Frames sent by the requester.

    /// A query, which opens a stream.
    package static let query = PeerFrameKind(rawValue: 16)
    /// A grant of further body bytes.
    package static let credit = PeerFrameKind(rawValue: 17)

    // Frames sent by the responder.

    /// The entry; its body follows.
    package static let held = PeerFrameKind(rawValue: 18)
    /// A notice that the entry is being fetched.
    package static let fetching = PeerFrameKind(rawValue: 19)
    /// A refusal: the requester fetches from the origin itself.
    package static let declined = PeerFrameKind(rawValue: 20)
    /// A probe found no entry.
    package static let absent = PeerFrameKind(rawValue: 21)
    /// The responder lacks invalidations that the requester knows of.
    package static let behind = PeerFrameKind(rawValue: 22)
    /// The requester's entry is still valid.
    package static let notModified = PeerFrameKind(rawValue: 23)
    /// The origin failed.
    package static let originFailed = PeerFrameKind(rawValue: 24)
    /// A part of a body.
    package static let data = PeerFrameKind(rawValue: 25)
    /// The end of a complete body.
    package static let end = PeerFrameKind(rawValue: 26)

    /// The abort of a stream, sent by either side.
    package static let reset = PeerFrameKind(rawValue: 27)

    /// Maximum payload bytes of a frame of this kind.
    package var payloadBytesMax: Int {
        self == .data ? PeerProtocol.dataBytesMax : PeerProtocol.payloadBytesMax
    }

    /// True for known kinds that concern the connection rather than a stream.
    var isConnectionLevel: Bool { (1...7).contains(rawValue) || isInvalidationFrame }

    /// True for the kinds that ``InvalidationMessageDecoder`` reads.
    package var isInvalidationFrame: Bool { (32...38).contains(rawValue) }
}
