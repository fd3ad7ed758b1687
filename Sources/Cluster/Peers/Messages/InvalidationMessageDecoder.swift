import Ground

/// A decoder of the messages about invalidations on one connection, frame by frame in order.
package struct InvalidationMessageDecoder: Sendable {
    /// The earlier frames of a round's response whose last frame has not arrived.
    private var partialReply: PartialReply?
    /// The members and the voter set of the last full confirmation, with their digest.
    private var lastMembership:
        (digest: UInt64, members: [NodeID], configuration: VoterConfiguration?)?

    /// True if the peer has sent a digest, and therefore understands digests.
    package var peerSupportsDigests: Bool { lastMembership != nil }

    private struct PartialReply: Sendable {
        var synced: [StreamPosition] = []
        var retired: [StreamPosition] = []
    }

    /// Creates a decoder for a new connection.
    package init() {}

    /// Decodes a frame for which ``PeerFrameKind/isInvalidationFrame`` is true.
    ///
    /// - Returns: The message; `nil` if further frames of it follow.
    /// - Throws: The fault, if the frame is invalid or out of order.
    package mutating func read(
        _ kind: PeerFrameKind, payload: Span<UInt8>
    ) throws(PeerFault) -> InvalidationMessage? {
        precondition(kind.isInvalidationFrame, "a frame of type \(kind.rawValue)")
        guard partialReply == nil || kind == .roundReply else { throw .unexpectedFrame(kind) }
        let fixedBytes =
            switch kind {
            case .confirmed: InvalidationMessage.confirmationFixedBytes
            case .round: InvalidationMessage.roundFixedBytes
            case .roundReply: InvalidationMessage.roundReplyFixedBytes
            default: 2
            }
        var structure = try StructureReader(payload, fixedBytes: fixedBytes, in: kind)
        switch kind {
        case .confirmed: return try confirmation(&structure, payload)
        case .applied: return .appliedPositions(try structure.values(payload, Tag.position))
        case .repairRequest: return .repairRequest(try Self.ranges(&structure, payload))
        case .repair: return .repairResponse(try Self.repair(&structure, payload))
        case .round:
            while try structure.next(payload) != nil {}
            return .roundRequest(payload.little64(at: 4), digest: payload.little64(at: 12))
        case .roundReply: return try roundReply(&structure, payload)
        default: return .push(try Self.records(&structure, payload))
        }
    }

    private typealias Tag = InvalidationMessage.Tag

    private static func records(
        _ structure: inout StructureReader, _ payload: Span<UInt8>
    ) throws(PeerFault) -> [InvalidationRecord] {
        var records: [InvalidationRecord] = []
        while let field = try structure.next(payload) {
            guard field.tag == Tag.record else { continue }
            records.append(try structure.record(payload, field))
        }
        return records
    }

    /// Decodes a confirmation; members and voter set of a short one are those of the last full one.
    ///
    /// - Throws: The fault, if the frame is invalid or its digest is not that of the last full one.
    private mutating func confirmation(
        _ structure: inout StructureReader, _ payload: Span<UInt8>
    ) throws(PeerFault) -> InvalidationMessage {
        var positions: [StreamPosition] = []
        var members: [NodeID] = []
        var configuration: VoterConfiguration?
        var nominee: NodeID?
        var digest: UInt64?
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.digest: digest = try structure.fixedSizeValue(payload, field)
            case Tag.position: positions.append(try structure.fixedSizeValue(payload, field))
            case Tag.member:
                let member: NodeID = try structure.fixedSizeValue(payload, field)
                guard members.count < PeerProtocol.confirmationMembersMax else {
                    throw .tooLong(.confirmationMembers)
                }
                members.append(member)
            case Tag.voterSet:
                configuration = try .read(payload.extracting(field.range), in: .confirmed)
            case Tag.nominee: nominee = try structure.fixedSizeValue(payload, field)
            default: continue
            }
        }
        let flags = InvalidationMessage.Flags(rawValue: payload[2])
        if flags.contains(.isAbbreviated) {
            guard let lastMembership, lastMembership.digest == digest else {
                throw .malformed(.confirmed)
            }
            (members, configuration) = (lastMembership.members, lastMembership.configuration)
        } else if let digest {
            lastMembership = (digest, members, configuration)
        }
        return .confirmation(positions, members: members, view: flags.view(configuration, nominee))
    }

    private static func ranges(
        _ structure: inout StructureReader, _ payload: Span<UInt8>
    ) throws(PeerFault) -> [StreamRange] {
        var ranges: [StreamRange] = []
        while let field = try structure.next(payload) {
            guard field.tag == Tag.range else { continue }
            guard ranges.count < PeerProtocol.rangesMax else { throw .tooLong(.ranges) }
            ranges.append(try structure.fixedSizeValue(payload, field))
        }
        return ranges
    }

    private static func repair(
        _ structure: inout StructureReader, _ payload: Span<UInt8>
    ) throws(PeerFault) -> RepairResponse {
        var response = RepairResponse()
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.record: response.records.append(try structure.record(payload, field))
            case Tag.floor:
                guard response.floors.count < PeerProtocol.rangesMax else {
                    throw .tooLong(.ranges)
                }
                response.floors.append(try structure.fixedSizeValue(payload, field))
            case Tag.covered:
                guard response.covered.count < PeerProtocol.rangesMax else {
                    throw .tooLong(.ranges)
                }
                response.covered.append(try structure.fixedSizeValue(payload, field))
            default: continue
            }
        }
        return response
    }

    /// Decodes a frame of a round's response; returns the message with its last frame, otherwise
    /// `nil`.
    private mutating func roundReply(
        _ structure: inout StructureReader, _ payload: Span<UInt8>
    ) throws(PeerFault) -> InvalidationMessage? {
        let flags = InvalidationMessage.Flags(rawValue: payload[2])
        var configuration: VoterConfiguration?
        var nominee: NodeID?
        var digest: UInt64?
        var positions = partialReply ?? PartialReply()
        partialReply = nil
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.position: positions.synced.append(try structure.fixedSizeValue(payload, field))
            case Tag.retired: positions.retired.append(try structure.fixedSizeValue(payload, field))
            case Tag.voterSet:
                configuration = try .read(payload.extracting(field.range), in: .roundReply)
            case Tag.nominee: nominee = try structure.fixedSizeValue(payload, field)
            case Tag.digest: digest = try structure.fixedSizeValue(payload, field)
            default: continue
            }
        }
        guard
            max(positions.synced.count, positions.retired.count) <= PeerProtocol.messagePositionsMax
        else { throw .tooLong(.positions) }
        guard !flags.contains(.hasMore) else {
            partialReply = positions
            return nil
        }
        let view = flags.view(configuration, nominee)
        if flags.contains(.isUnchanged) {
            guard let digest, flags.contains(.hasRound) else { throw .malformed(.roundReply) }
            return .roundUnchanged(round: payload.little64(at: 4), digest: digest, view: view)
        }
        let round = flags.contains(.hasRound) ? payload.little64(at: 4) : nil
        return .roundResponse(
            FenceResponse(round: round, synced: positions.synced, view: view),
            retired: positions.retired)
    }
}

extension StructureReader {
    fileprivate func record(
        _ bytes: Span<UInt8>, _ field: Field
    ) throws(PeerFault) -> InvalidationRecord {
        guard let record = InvalidationRecord.read(bytes.extracting(field.range)) else {
            throw .malformed(kind)
        }
        return record
    }
}
