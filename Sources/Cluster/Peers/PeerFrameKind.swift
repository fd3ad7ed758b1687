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
