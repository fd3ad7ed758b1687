package import Ground

/// The response to a query, before any body; see "Replies" in <doc:PeerProtocol>.
package enum PeerReply: Hashable, Sendable {
    /// The entry; its body follows.
    case held(PeerEntry)
    /// The entry is being fetched; repeated every ``fetchingRepeatInterval``.
    case fetching
    /// The entry is being fetched, and the origin has sent an interim response (RFC 9110 §15.2).
    ///
    /// The value is its head, including the empty line, as the origin's site forwards it.
    case interim([UInt8])
    /// The requester must fetch from the origin itself.
    case declined(DeclineReason)
    /// A probe found nothing.
    case absent
    /// The responder lacks invalidations that the requester knows of; the requester must fetch from
    /// the origin itself.
    case behind
    /// The requester's entry with the validator that it named is still valid; the value has its
    /// updated metadata.
    case notModified(PeerEntry)
    /// The origin gave no usable response.
    case originFailed(PeerOriginFailure)

    /// The interval at which ``fetching`` is repeated.
    package static let fetchingRepeatInterval = Interval.milliseconds(250)

    /// True if nothing follows on the stream.
    package var isFinal: Bool {
        switch self {
        case .held, .fetching, .interim: false
        case .declined, .absent, .behind, .notModified, .originFailed: true
        }
    }

    /// Returns the frame.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` if head, tags and key do not fit into one.
    package func frame(stream: UInt32) throws(SendError) -> [UInt8] {
        switch self {
        case .held(let entry): return try entry.frame(.held, stream: stream)
        case .notModified(let entry): return try entry.frame(.notModified, stream: stream)
        case .originFailed(let failure): return try failure.frame(stream: stream)
        case .fetching: return try Self.bare(.fetching, stream)
        case .interim(let head):
            var writer = StructureWriter.payload
            writer.endFixedPart()
            writer.putField(Self.interimHeadTag, head)
            return try writer.frame(.fetching, stream: stream)
        case .absent: return try Self.bare(.absent, stream)
        case .behind: return try Self.bare(.behind, stream)
        case .declined(let reason):
            var writer = StructureWriter.payload
            writer.put(reason.rawValue)
            writer.put(UInt8(0))
            writer.endFixedPart()
            return try writer.frame(.declined, stream: stream)
        }
    }

    private static let interimHeadTag: UInt16 = 1

    private static func bare(
        _ kind: PeerFrameKind, _ stream: UInt32
    ) throws(SendError) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.endFixedPart()
        return try writer.frame(kind, stream: stream)
    }

    /// Decodes a response from a frame of `kind`; `nil` if that is not a response.
    ///
    /// - Throws: The fault, if the payload is invalid.
    package static func read(
        _ kind: PeerFrameKind, payload: Span<UInt8>
    ) throws(PeerFault) -> PeerReply? {
        switch kind {
        case .held: return .held(try PeerEntry(payload: payload, in: kind))
        case .notModified: return .notModified(try PeerEntry(payload: payload, in: kind))
        case .originFailed: return .originFailed(try PeerOriginFailure(payload: payload))
        case .fetching:
            var structure = try StructureReader(payload, fixedBytes: 2, in: kind)
            guard let head = try structure.last(payload, interimHeadTag) else { return .fetching }
            return .interim(payload.copy(head))
        case .absent, .behind:
            try StructureReader.validate(payload, fixedBytes: 2, in: kind)
            return kind == .absent ? .absent : .behind
        case .declined:
            try StructureReader.validate(payload, fixedBytes: 4, in: kind)
            return .declined(DeclineReason(rawValue: payload[2]))
        default: return nil
        }
    }
}

/// The reason why the requester must fetch from the origin itself; unknown ones are preserved.
package struct DeclineReason: RawRepresentable, Hashable, Sendable {
    /// The number on the wire.
    package let rawValue: UInt8

    /// Creates a reason, known or not.
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The origin's response may not be shared.
    package static let unshareable = DeclineReason(rawValue: 1)
    /// The responder is overloaded.
    package static let overloaded = DeclineReason(rawValue: 2)
    /// The responder is handing off its objects before it leaves.
    package static let draining = DeclineReason(rawValue: 3)
    /// Head, tags and key do not fit into a frame, or the body exceeds a limit.
    package static let tooLarge = DeclineReason(rawValue: 5)
    /// The responder's version does not know the query's kind.
    package static let notUnderstood = DeclineReason(rawValue: 6)
    /// The responder has other settings for the site, or none.
    package static let otherPolicy = DeclineReason(rawValue: 8)
    /// The responder's settings do not permit this origin, or it is fenced.
    package static let notAllowed = DeclineReason(rawValue: 7)
}

/// The origin's failure as the responder saw it; see "ORIGIN_FAILED" in <doc:PeerProtocol>.
package struct PeerOriginFailure: Hashable, Sendable {
    /// The status of the origin's response; 0 if there was none.
    package var status: UInt16
    /// The cause of the failure.
    package var cause: Cause
    /// True if a requester may serve its stale entry, as far as that entry permits.
    package var mayServeStale: Bool
    /// An explanation for operators; at most ``PeerProtocol/textBytesMax`` bytes are sent.
    package var text: String

    /// The cause of a failure; unknown ones are preserved.
    package struct Cause: RawRepresentable, Hashable, Sendable {
        /// The number on the wire.
        package let rawValue: UInt8

        /// Creates a cause, known or not.
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The origin responded with a status that is not stored.
        package static let status = Cause(rawValue: 1)
        /// The origin's name did not resolve.
        package static let name = Cause(rawValue: 2)
        /// The origin accepted no connection.
        package static let connect = Cause(rawValue: 3)
        /// TLS failed.
        package static let tls = Cause(rawValue: 4)
        /// The origin took too long.
        package static let timeout = Cause(rawValue: 5)
        /// The origin's response was truncated or invalid.
        package static let answer = Cause(rawValue: 6)
        /// The origin failed too often; its circuit breaker is open.
        package static let circuitOpen = Cause(rawValue: 7)
        /// The origin is not permitted.
        package static let refused = Cause(rawValue: 8)
    }

    /// Creates a failure from its parts.
    package init(status: UInt16, cause: Cause, mayServeStale: Bool, text: String = "") {
        self.status = status
        self.cause = cause
        self.mayServeStale = mayServeStale
        self.text = text
    }

    private enum Tag {
        static let text: UInt16 = 1
    }

    private static let fixedBytes = 6
    private static let staleFlag: UInt8 = 1

    /// Returns the frame.
    func frame(stream: UInt32) throws(SendError) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(status)
        writer.put(cause.rawValue)
        writer.put(mayServeStale ? Self.staleFlag : 0)
        writer.endFixedPart()
        writer.putField(Tag.text, unlessEmpty: text.peerText)
        return try writer.frame(.originFailed, stream: stream)
    }

    /// Decodes the payload of an ORIGIN_FAILED.
    ///
    /// - Throws: ``PeerFault/truncated(_:)``.
    init(payload: Span<UInt8>) throws(PeerFault) {
        var structure = try StructureReader(payload, fixedBytes: Self.fixedBytes, in: .originFailed)
        self.init(
            status: payload.little16(at: 2), cause: Cause(rawValue: payload[4]),
            mayServeStale: payload[5] & Self.staleFlag != 0)
        if let range = try structure.last(payload, Tag.text) { text = payload.peerText(range) }
    }
}
