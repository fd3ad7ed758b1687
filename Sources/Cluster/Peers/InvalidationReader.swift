import Ground

/// Reads what a peer says about invalidations from the frames of one connection, in their order.
package struct InvalidationReader: Sendable {
    /// What came of an answer whose last frame did not.
    private var begun: Positions?
    /// Members and set of the last confirmation that said them, with their digest.
    private var company: (digest: UInt64, members: [NodeID], standing: CountStanding?)?

    /// The peer says digests, and so understands them.
    package var hearsDigests: Bool { company != nil }

    private struct Positions: Sendable {
        var holds: [StreamPosition] = []
        var retired: [StreamPosition] = []
    }

    package init() {}

    /// What a frame says whose kind ``PeerFrameKind/isOfInvalidations``; nil if the rest of it is
    /// yet to come.
    ///
    /// - Throws: what is wrong with it.
    package mutating func read(
        _ kind: PeerFrameKind, payload: Span<UInt8>
    ) throws(PeerFault) -> InvalidationMessage? {
        precondition(kind.isOfInvalidations, "a frame of type \(kind.rawValue)")
        guard begun == nil || kind == .roundAnswered else { throw .outOfPlace(kind) }
        let fixedBytes =
            switch kind {
            case .confirmed: InvalidationMessage.confirmationFixedBytes
            case .round: InvalidationMessage.roundFixedBytes
            case .roundAnswered: InvalidationMessage.answerFixedBytes
            default: 2
            }
        var structure = try PeerStructure(payload, fixedBytes: fixedBytes, in: kind)
        switch kind {
        case .confirmed: return try confirmation(&structure, payload)
        case .told: return .told(try structure.values(payload, Tag.position))
        case .wanted: return .ask(try Self.ranges(&structure, payload))
        case .repair: return .repair(try Self.repair(&structure, payload))
        case .round:
            while try structure.next(payload) != nil {}
            return .round(payload.little64(at: 4), digest: payload.little64(at: 12))
        case .roundAnswered: return try answer(&structure, payload)
        default: return .push(try Self.records(&structure, payload))
        }
    }

    private typealias Tag = InvalidationMessage.Tag

    private static func records(
        _ structure: inout PeerStructure, _ payload: Span<UInt8>
    ) throws(PeerFault) -> [InvalidationRecord] {
        var records: [InvalidationRecord] = []
        while let field = try structure.next(payload) {
            guard field.tag == Tag.record else { continue }
            records.append(try structure.record(payload, field))
        }
        return records
    }

    private mutating func confirmation(
        _ structure: inout PeerStructure, _ payload: Span<UInt8>
    ) throws(PeerFault) -> InvalidationMessage {
        var positions: [StreamPosition] = []
        var members: [NodeID] = []
        var standing: CountStanding?
        var nominee: NodeID?
        var digest: UInt64?
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.digest: digest = try structure.fixed(payload, field)
            case Tag.position: positions.append(try structure.fixed(payload, field))
            case Tag.member:
                let member: NodeID = try structure.fixed(payload, field)
                guard members.count < PeerProtocol.companyMax else { throw .tooLong(.company) }
                members.append(member)
            case Tag.standing:
                standing = try .read(payload.extracting(field.range), in: .confirmed)
            case Tag.nominee: nominee = try structure.fixed(payload, field)
            default: continue
            }
        }
        let flags = InvalidationMessage.Flags(rawValue: payload[2])
        if flags.contains(.isShort) {
            guard let company, company.digest == digest else { throw .malformed(.confirmed) }
            (members, standing) = (company.members, company.standing)
        } else if let digest {
            company = (digest, members, standing)
        }
        return .confirm(positions, members: members, view: flags.view(standing, nominee))
    }

    private static func ranges(
        _ structure: inout PeerStructure, _ payload: Span<UInt8>
    ) throws(PeerFault) -> [StreamRange] {
        var ranges: [StreamRange] = []
        while let field = try structure.next(payload) {
            guard field.tag == Tag.range else { continue }
            guard ranges.count < PeerProtocol.rangesMax else { throw .tooLong(.ranges) }
            ranges.append(try structure.fixed(payload, field))
        }
        return ranges
    }

    private static func repair(
        _ structure: inout PeerStructure, _ payload: Span<UInt8>
    ) throws(PeerFault) -> RepairAnswer {
        var answer = RepairAnswer()
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.record: answer.records.append(try structure.record(payload, field))
            case Tag.floor:
                guard answer.floors.count < PeerProtocol.rangesMax else {
                    throw .tooLong(.ranges)
                }
                answer.floors.append(try structure.fixed(payload, field))
            case Tag.covered:
                guard answer.covered.count < PeerProtocol.rangesMax else {
                    throw .tooLong(.ranges)
                }
                answer.covered.append(try structure.fixed(payload, field))
            default: continue
            }
        }
        return answer
    }

    private mutating func answer(
        _ structure: inout PeerStructure, _ payload: Span<UInt8>
    ) throws(PeerFault) -> InvalidationMessage? {
        let flags = InvalidationMessage.Flags(rawValue: payload[2])
        var standing: CountStanding?
        var nominee: NodeID?
        var digest: UInt64?
        var positions = begun ?? Positions()
        begun = nil
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.position: positions.holds.append(try structure.fixed(payload, field))
            case Tag.retired: positions.retired.append(try structure.fixed(payload, field))
            case Tag.standing:
                standing = try .read(payload.extracting(field.range), in: .roundAnswered)
            case Tag.nominee: nominee = try structure.fixed(payload, field)
            case Tag.digest: digest = try structure.fixed(payload, field)
            default: continue
            }
        }
        guard max(positions.holds.count, positions.retired.count) <= PeerProtocol.knowledgeMax
        else { throw .tooLong(.positions) }
        guard !flags.contains(.goesOn) else {
            begun = positions
            return nil
        }
        let view = flags.view(standing, nominee)
        if flags.contains(.isUnchanged) {
            guard let digest, flags.contains(.hasRound) else { throw .malformed(.roundAnswered) }
            return .unchanged(round: payload.little64(at: 4), digest: digest, view: view)
        }
        let round = flags.contains(.hasRound) ? payload.little64(at: 4) : nil
        return .answer(
            FenceAnswer(round: round, holds: positions.holds, view: view),
            retired: positions.retired)
    }
}

extension PeerStructure {
    fileprivate func record(
        _ bytes: Span<UInt8>, _ field: Field
    ) throws(PeerFault) -> InvalidationRecord {
        guard let record = InvalidationRecord.read(bytes.extracting(field.range)) else {
            throw .malformed(kind)
        }
        return record
    }
}
