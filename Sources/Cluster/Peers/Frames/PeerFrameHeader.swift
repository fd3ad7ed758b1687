import Ground

/// What stands before every payload: 12 bytes that say what follows, how much of it, and on which
/// stream.
package struct PeerFrameHeader: Hashable, Sendable {
    package let kind: PeerFrameKind
    /// 0 for what concerns the connection.
    package let stream: UInt32
    /// Within the limit of ``kind``.
    package let payloadBytes: Int

    /// Size in bytes.
    package static let bytesCount = 12

    /// A head to be written; `payloadBytes` is within the limit of `kind`.
    package init(_ kind: PeerFrameKind, stream: UInt32, payloadBytes: Int) {
        precondition(
            payloadBytes <= kind.payloadBytesMax, "\(payloadBytes) bytes in a frame of \(kind)")
        self.kind = kind
        self.stream = stream
        self.payloadBytes = payloadBytes
    }

    /// The head that these bytes begin with, of which there must be ``bytesCount``.
    ///
    /// - Throws: ``PeerFault/tooLong(_:)`` if the payload is longer than frames of its kind may be;
    ///   then not a byte of it is to be waited for.
    package init(_ bytes: Span<UInt8>) throws(PeerFault) {
        let count = bytes.little32(at: 0)
        kind = PeerFrameKind(rawValue: bytes[4])
        stream = bytes.little32(at: 8)
        guard count <= UInt32(kind.payloadBytesMax) else {
            throw .tooLong(kind == .data ? .data : .payload)
        }
        payloadBytes = Int(count)
    }

    /// As it is written; flags and what is reserved are zeros.
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

/// What a frame is; a kind that this version does not know is skipped.
package struct PeerFrameKind: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    // About the connection, on stream 0.
    package static let hello = PeerFrameKind(rawValue: 1)
    package static let goodbye = PeerFrameKind(rawValue: 2)
    package static let gossip = PeerFrameKind(rawValue: 3)
    package static let touches = PeerFrameKind(rawValue: 4)
    package static let offer = PeerFrameKind(rawValue: 5)
    package static let offerOutcomes = PeerFrameKind(rawValue: 6)

    // What nodes say to each other about invalidations, on stream 0; see ``InvalidationMessage``.
    package static let invalidations = PeerFrameKind(rawValue: 32)
    package static let confirmed = PeerFrameKind(rawValue: 33)
    package static let applied = PeerFrameKind(rawValue: 34)
    package static let repairRequest = PeerFrameKind(rawValue: 35)
    package static let repair = PeerFrameKind(rawValue: 36)
    package static let round = PeerFrameKind(rawValue: 37)
    package static let roundReply = PeerFrameKind(rawValue: 38)

    // From who asks.
    package static let query = PeerFrameKind(rawValue: 16)
    package static let credit = PeerFrameKind(rawValue: 17)

    // From who is asked.
    package static let held = PeerFrameKind(rawValue: 18)
    package static let fetching = PeerFrameKind(rawValue: 19)
    package static let declined = PeerFrameKind(rawValue: 20)
    package static let absent = PeerFrameKind(rawValue: 21)
    package static let behind = PeerFrameKind(rawValue: 22)
    package static let notModified = PeerFrameKind(rawValue: 23)
    package static let originFailed = PeerFrameKind(rawValue: 24)
    package static let data = PeerFrameKind(rawValue: 25)
    package static let end = PeerFrameKind(rawValue: 26)

    /// From either of them.
    package static let reset = PeerFrameKind(rawValue: 27)

    /// The most bytes that follow the head.
    package var payloadBytesMax: Int {
        self == .data ? PeerProtocol.dataBytesMax : PeerProtocol.payloadBytesMax
    }

    /// True for what concerns the connection and not a stream, as far as it is known.
    var isConnectionLevel: Bool { (1...6).contains(rawValue) || isInvalidationFrame }

    /// True for those that ``InvalidationMessageDecoder`` reads.
    package var isInvalidationFrame: Bool { (32...38).contains(rawValue) }
}
