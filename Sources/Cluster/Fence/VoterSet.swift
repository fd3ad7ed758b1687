package import Ground

/// Counted sets that follow each other.
package struct VoterSetLineage: Hashable, Sendable {
    /// The node that opened it.
    package var founder: NodeID
    /// Where two lines meet, the one with the higher number holds.
    ///
    /// It is 0 for a line that a newcomer opened; one that the operator opened in the place of
    /// another has one more than that.
    package var recovery: UInt64
}

/// The members that majorities are of.
///
/// Sets follow each other in one line from the node that opened the cluster: a generation's set is
/// made of the one before by one ``VoterSetChange``, and no generation has two. So any majority of
/// one shares a member with any majority of the next: see <doc:Fence>.
package struct VoterSet: Hashable, Sendable {
    /// Tells two clusters apart that were opened separately.
    package let lineage: VoterSetLineage
    package var founder: NodeID { lineage.founder }
    /// 1 for the opener alone, one more with each change.
    package let generation: UInt64
    /// Ascending, each once, never empty.
    package let members: [NodeID]

    /// A set as somebody says it; nil if no change can have made it.
    package init?(
        opener: NodeID, recovery: UInt64 = 0, generation: UInt64, members: [NodeID]
    ) {
        let isAscending = zip(members, members.dropFirst()).allSatisfy { $0 < $1 }
        guard generation > 0, !members.isEmpty, isAscending else { return nil }
        guard generation > 1 || members == [opener] else { return nil }
        lineage = VoterSetLineage(founder: opener, recovery: recovery)
        self.generation = generation
        self.members = members
    }

    /// The first set of a new cluster.
    package init(foundedBy node: NodeID, recovery: UInt64 = 0) {
        lineage = VoterSetLineage(founder: node, recovery: recovery)
        generation = 1
        members = [node]
    }

    private init(after set: VoterSet, members: [NodeID]) {
        lineage = set.lineage
        generation = set.generation + 1
        self.members = members
    }

    package func contains(_ node: NodeID) -> Bool {
        members.sortedIndex(of: node) != nil
    }

    /// True if more than half of the members, those in `without` left out of account, are among
    /// `nodes`.
    package func isMajority(_ nodes: [NodeID], excluding: [NodeID] = []) -> Bool {
        let voters = excluding.isEmpty ? members : members.filter { !excluding.contains($0) }
        let found = Set(nodes)
        return voters.count { found.contains($0) } * 2 > voters.count
    }

    /// True if every majority of this set has a member in every majority of those that stay when
    /// `goneCount` of it do not run any more: then what was durable is known to those that decide.
    package func quorumsIntersect(excludingCount goneCount: Int) -> Bool {
        let left = members.count - goneCount
        return (left / 2 + 1) + (members.count / 2 + 1) > members.count
    }

    /// The next set; nil if the change does not fit this one.
    package func applying(by change: VoterSetChange) -> VoterSet? {
        switch change {
        case .add(let node):
            // A greater one could not be written: see ``membersMax``.
            guard !contains(node), members.count < Self.membersMax else { return nil }
            return VoterSet(after: self, members: (members + [node]).sorted())
        case .remove(let nodes):
            let left = members.filter { !nodes.contains($0) }
            guard !left.isEmpty, left.count + nodes.count == members.count else { return nil }
            return VoterSet(after: self, members: left)
        }
    }

    /// What makes `next` of this one; nil if no change does.
    func change(to next: VoterSet) -> VoterSetChange? {
        let come = next.members.first { !contains($0) }
        let change =
            come.map { .add($0) } ?? VoterSetChange.remove(members.filter { !next.contains($0) })
        return applying(by: change) == next ? change : nil
    }
}

/// What makes a ``VoterSet`` of the one before.
package enum VoterSetChange: Hashable, Sendable {
    /// A node that has caught up with a majority is counted from now on.
    case add(NodeID)
    /// Counted no more: it left, or was away for too long, or the operator says so. Several only by
    /// the operator's word; ascending, each once.
    case remove([NodeID])
}

/// A counted set and, until it is settled, the one before it.
///
/// A set is settled once a majority of it has synced everything that a majority of the one before
/// had. Until then nobody changes it, and whoever reads needs a majority of both.
package struct VoterConfiguration: Hashable, Sendable {
    package var set: VoterSet
    package var previous: VoterSet?

    package init(_ set: VoterSet, after previous: VoterSet? = nil) {
        self.set = set
        self.previous = previous
    }

    package var isSettled: Bool { previous == nil }
}

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

/// Reads the fields of a structure that are known, each of which comes once; others are passed
/// over.
struct UniqueFields {
    private(set) var structure: StructureReader
    /// All below 64.
    private let tags: ClosedRange<UInt16>
    /// By bit.
    private var seen: UInt64 = 0

    /// As ``StructureReader/init(_:fixedBytes:in:)``.
    init(
        _ bytes: Span<UInt8>, fixedBytes: Int, in kind: PeerFrameKind, _ tags: ClosedRange<UInt16>
    ) throws(PeerFault) {
        structure = try StructureReader(bytes, fixedBytes: fixedBytes, in: kind)
        self.tags = tags
    }

    /// The next field that is known; nil after the last.
    mutating func next(_ bytes: Span<UInt8>) throws(PeerFault) -> StructureReader.Field? {
        while let field = try structure.next(bytes) {
            guard tags.contains(field.tag) else { continue }
            let bit: UInt64 = 1 << UInt64(field.tag)
            guard seen & bit == 0 else { throw .malformed(structure.kind) }
            seen |= bit
            return field
        }
        return nil
    }
}
