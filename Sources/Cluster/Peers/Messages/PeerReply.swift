package import Ground

/// What is said to a question before any body; see "Answers" in <doc:PeerProtocol>.
package enum PeerReply: Hashable, Sendable {
    /// Here it is; the body follows.
    case held(PeerEntry)
    /// It is being fetched; said again every ``fetchingInterval``.
    case fetching
    /// It is being fetched, and the origin has given an interim answer (RFC 9110 §15.2): its head,
    /// with the empty line, as the origin's site passes it on.
    case interim([UInt8])
    /// The asker is to ask the origin.
    case declined(DeclineReason)
    /// A probe found nothing.
    case absent
    /// The answerer lacks invalidations that the asker knows of: it is to ask the origin.
    case behind
    /// What the asker holds by the validator that it named is current: what is now true of it.
    case notModified(PeerEntry)
    /// There is no answer of the origin.
    case originFailed(PeerOriginFailure)

    /// How often ``fetching`` is said.
    package static let fetchingRepeatInterval = Interval.milliseconds(250)

    /// True if nothing follows on the stream.
    package var isFinal: Bool {
        switch self {
        case .held, .fetching, .interim: false
        case .declined, .absent, .behind, .notModified, .originFailed: true
        }
    }

    /// The frame.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` if head, tags and key do not fit in one.
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

    /// The answer in the payload of a frame of `kind`; nil if that is no answer.
    ///
    /// - Throws: what is wrong with it.
    package static func read(
        _ kind: PeerFrameKind, payload: Span<UInt8>
    ) throws(PeerFault) -> PeerReply? {
        switch kind {
        case .held: return .held(try PeerEntry(payload: payload, in: kind))
        case .notModified: return .notModified(try PeerEntry(payload: payload, in: kind))
        case .originFailed: return .originFailed(try PeerOriginFailure(payload: payload))
        case .fetching:
            var structure = try StructureReader(payload, fixedBytes: 2, in: kind)
            var head: [UInt8]?
            while let field = try structure.next(payload) {
                if field.tag == interimHeadTag { head = payload.copy(field.range) }
            }
            return head.map { .interim($0) } ?? .fetching
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

/// Why the asker is to ask the origin itself; one that this version does not know is kept as it is.
package struct DeclineReason: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The origin's answer may not be given to others.
    package static let unshareable = DeclineReason(rawValue: 1)
    /// The answerer has too much to do.
    package static let overloaded = DeclineReason(rawValue: 2)
    /// It hands on what it holds, to leave.
    package static let draining = DeclineReason(rawValue: 3)
    /// Head, tags and key do not fit in a frame, or the body is above a limit.
    package static let tooLarge = DeclineReason(rawValue: 5)
    /// The question is of a kind that the answerer's version does not know.
    package static let notUnderstood = DeclineReason(rawValue: 6)
    /// It has other settings for the site, or none.
    package static let otherPolicy = DeclineReason(rawValue: 8)
    /// Its settings do not let it ask this origin, or it is fenced.
    package static let notAllowed = DeclineReason(rawValue: 7)
}

/// How the origin failed the answerer; see "ORIGIN_FAILED" in <doc:PeerProtocol>.
package struct PeerOriginFailure: Hashable, Sendable {
    /// The status that the origin answered with; 0 if it did not answer.
    package var status: UInt16
    package var cause: Cause
    /// True if an asker that holds a stale answer may give it, as far as that answer grants it.
    package var mayServeStale: Bool
    /// For operators; at most ``PeerProtocol/textBytesMax`` bytes of it are sent.
    package var text: String

    /// What went wrong; one that this version does not know is kept as it is.
    package struct Cause: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// It answered with a status that is not stored.
        package static let status = Cause(rawValue: 1)
        /// Its name has no address.
        package static let name = Cause(rawValue: 2)
        /// It took no connection.
        package static let connect = Cause(rawValue: 3)
        /// TLS failed.
        package static let tls = Cause(rawValue: 4)
        /// It took too long.
        package static let timeout = Cause(rawValue: 5)
        /// Its answer broke off or broke the rules.
        package static let answer = Cause(rawValue: 6)
        /// It failed too often and is left alone.
        package static let circuitOpen = Cause(rawValue: 7)
        /// It may not be asked.
        package static let refused = Cause(rawValue: 8)
    }

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

    func frame(stream: UInt32) throws(SendError) -> [UInt8] {
        var writer = StructureWriter.payload
        writer.put(status)
        writer.put(cause.rawValue)
        writer.put(mayServeStale ? Self.staleFlag : 0)
        writer.endFixedPart()
        writer.putField(Tag.text, unlessEmpty: text.peerText)
        return try writer.frame(.originFailed, stream: stream)
    }

    init(payload: Span<UInt8>) throws(PeerFault) {
        var structure = try StructureReader(payload, fixedBytes: Self.fixedBytes, in: .originFailed)
        self.init(
            status: payload.little16(at: 2), cause: Cause(rawValue: payload[4]),
            mayServeStale: payload[5] & Self.staleFlag != 0)
        while let field = try structure.next(payload) {
            if field.tag == Tag.text { text = payload.peerText(field.range) }
        }
    }
}
