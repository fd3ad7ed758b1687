import Ground

/// Counted sets as they lie in messages, in records and on disk: structures; see "The count in
/// bytes" in <doc:Fence>.
///
/// What is read is strict: a known field that comes twice, or a list that is empty or too long, is
/// a fault, for a set that was misread would be another set.
extension VoterSet {
    private enum Tag {
        static let members: UInt16 = 1
        static let recovery: UInt16 = 2
    }

    private static let fixedBytes = 26

    /// The structure's bytes.
    ///
    /// - Throws: ``InvalidationFault/tooLong`` for more than ``membersMax``.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        guard members.count <= Self.membersMax else { throw .tooLong }
        var writer = StructureWriter()
        writer.put(generation)
        writer.put(founder)
        writer.endFixedPart()
        writer.putField(Tag.members, list: members)
        if lineage.recovery > 0 { writer.putField(Tag.recovery, value: lineage.recovery) }
        return writer.bytes
    }

    /// The set that the whole of `bytes` is, which lie in something of `kind`.
    ///
    /// - Throws: what is wrong with it.
    package static func read(
        _ bytes: Span<UInt8>, in kind: PeerFrameKind
    ) throws(PeerFault) -> VoterSet {
        var fields = try UniqueFields(
            bytes, fixedBytes: fixedBytes, in: kind, Tag.members...Tag.recovery)
        var members: [NodeID]?
        var recovery: UInt64?
        while let field = try fields.next(bytes) {
            switch field.tag {
            case Tag.members:
                members = try fields.structure.list(bytes, field, countMax: membersMax)
            default:
                guard field.range.count == 8 else { throw .malformed(kind) }
                recovery = bytes.little64(at: field.range.lowerBound)
                guard recovery != 0 else { throw .malformed(kind) }
            }
        }
        let generation = bytes.little64(at: 2)
        guard generation <= generationMax, recovery ?? 0 <= generationMax, let members,
            let set = VoterSet(
                opener: NodeID(bytes, at: 10), recovery: recovery ?? 0, generation: generation,
                members: members)
        else { throw .malformed(kind) }
        return set
    }

    /// The most members of a set that is written; as many more as a cluster may have fit that were
    /// not forgotten yet.
    package static let membersMax = 384
    /// The greatest generation, and the greatest round of a ballot, that is taken: counting on from
    /// there cannot overflow.
    static let generationMax: UInt64 = 1 << 62
}

extension VoterConfiguration {
    private enum Tag {
        static let set: UInt16 = 1
        static let previous: UInt16 = 2
    }

    /// The structure's bytes.
    ///
    /// - Throws: ``InvalidationFault/tooLong``.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        var writer = StructureWriter()
        writer.endFixedPart()
        writer.putField(Tag.set, try set.bytes())
        if let previous { writer.putField(Tag.previous, try previous.bytes()) }
        return writer.bytes
    }

    /// The standing that the whole of `bytes` is, which lie in something of `kind`.
    ///
    /// - Throws: what is wrong with it.
    package static func read(
        _ bytes: Span<UInt8>, in kind: PeerFrameKind
    ) throws(PeerFault) -> VoterConfiguration {
        var fields = try UniqueFields(bytes, fixedBytes: 2, in: kind, Tag.set...Tag.previous)
        var (set, previous): (VoterSet?, VoterSet?)
        while let field = try fields.next(bytes) {
            switch field.tag {
            case Tag.set: set = try .read(bytes.extracting(field.range), in: kind)
            default: previous = try .read(bytes.extracting(field.range), in: kind)
            }
        }
        guard let set else { throw .malformed(kind) }
        return VoterConfiguration(set, after: previous)
    }
}

extension VoterSetChange {
    private enum Kind: UInt8 {
        case count = 1
        case forget = 2
    }

    private enum Tag {
        static let nodes: UInt16 = 1
    }

    private static let fixedBytes = 4

    /// The structure's bytes.
    ///
    /// - Throws: ``InvalidationFault/tooLong`` for more than ``VoterSet/membersMax``.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        let (kind, nodes) =
            switch self {
            case .add(let node): (Kind.count, [node])
            case .remove(let nodes): (Kind.forget, nodes)
            }
        guard nodes.count <= VoterSet.membersMax else { throw .tooLong }
        var writer = StructureWriter()
        writer.put(kind.rawValue)
        writer.put(UInt8(0))
        writer.endFixedPart()
        writer.putField(Tag.nodes, list: nodes)
        return writer.bytes
    }

    /// The change that the whole of `bytes` is, which lie in something of `kind`.
    ///
    /// - Throws: what is wrong with it.
    package static func read(
        _ bytes: Span<UInt8>, in frame: PeerFrameKind
    ) throws(PeerFault) -> VoterSetChange {
        var fields = try UniqueFields(
            bytes, fixedBytes: fixedBytes, in: frame, Tag.nodes...Tag.nodes)
        var nodes: [NodeID]?
        while let field = try fields.next(bytes) {
            nodes = try fields.structure.list(bytes, field, countMax: VoterSet.membersMax)
        }
        guard let nodes, nodes.isAscending else { throw .malformed(frame) }
        switch Kind(rawValue: bytes[2]) {
        case .count where nodes.count == 1: return .add(nodes[0])
        case .forget: return .remove(nodes)
        default: throw .malformed(frame)
        }
    }
}

extension [NodeID] {
    /// Each once.
    var isAscending: Bool { zip(self, dropFirst()).allSatisfy { $0 < $1 } }
}
