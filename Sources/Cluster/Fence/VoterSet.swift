package import Ground

/// A lineage: the voter sets that follow each other from one founder.
package struct VoterSetLineage: Hashable, Sendable {
    /// The node that opened the lineage.
    package var founder: NodeID
    /// The number of recoveries; where two lineages meet, the higher number wins.
    ///
    /// 0 for a lineage opened by a newcomer; one more than the replaced lineage's for one that the
    /// operator ordered.
    package var recovery: UInt64
}

/// The members that majorities are counted of (Design, "The voter set").
///
/// The sets of a lineage follow each other: one ``VoterSetChange`` makes the set of a generation
/// from the set before, and no generation has two sets. So any majority of a set shares a member
/// with any majority of the next; see <doc:Fence>.
package struct VoterSet: Hashable, Sendable {
    /// The lineage, which distinguishes clusters that were opened separately.
    package let lineage: VoterSetLineage
    /// The node that opened the lineage.
    package var founder: NodeID { lineage.founder }
    /// The generation: 1 for the founder alone, one more with each change.
    package let generation: UInt64
    /// The members, ascending and distinct; never empty.
    package let members: [NodeID]

    /// Creates a set from received parts; `nil` if no change can have made it.
    package init?(
        founder: NodeID, recovery: UInt64 = 0, generation: UInt64, members: [NodeID]
    ) {
        guard generation > 0, !members.isEmpty, members.isAscending else { return nil }
        guard generation > 1 || members == [founder] else { return nil }
        lineage = VoterSetLineage(founder: founder, recovery: recovery)
        self.generation = generation
        self.members = members
    }

    /// Creates the first set of a new lineage, whose only member is `node`.
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

    /// Returns true if `node` is a member.
    package func contains(_ node: NodeID) -> Bool {
        members.sortedIndex(of: node) != nil
    }

    /// Returns true if `nodes` include more than half of the members that are not in `excluding`.
    package func isMajority(_ nodes: [NodeID], excluding: [NodeID] = []) -> Bool {
        let voters = excluding.isEmpty ? members : members.filter { !excluding.contains($0) }
        let found = Set(nodes)
        return voters.count { found.contains($0) } * 2 > voters.count
    }

    /// Returns true if every majority of this set meets every majority of those that stay.
    ///
    /// Then those that decide know what was durable. `goneCount` is the number of members that no
    /// longer run.
    package func quorumsIntersect(excludingCount goneCount: Int) -> Bool {
        let left = members.count - goneCount
        return (left / 2 + 1) + (members.count / 2 + 1) > members.count
    }

    /// Returns the next set, or `nil` if the change does not fit this one.
    package func applying(by change: VoterSetChange) -> VoterSet? {
        switch change {
        case .add(let node):
            // A larger set could not be encoded: see ``membersMax``.
            guard !contains(node), members.count < Self.membersMax else { return nil }
            return VoterSet(after: self, members: (members + [node]).sorted())
        case .remove(let nodes):
            let left = members.filter { !nodes.contains($0) }
            guard !left.isEmpty, left.count + nodes.count == members.count else { return nil }
            return VoterSet(after: self, members: left)
        }
    }

    /// Returns the change that makes `next` from this set, or `nil` if there is none.
    func change(to next: VoterSet) -> VoterSetChange? {
        let added = next.members.first { !contains($0) }
        let change =
            added.map { .add($0) } ?? VoterSetChange.remove(members.filter { !next.contains($0) })
        return applying(by: change) == next ? change : nil
    }
}

/// The change that makes a ``VoterSet`` from the one before.
package enum VoterSetChange: Hashable, Sendable {
    /// Adds a node, which has caught up with a majority.
    case add(NodeID)
    /// Removes members that left, were away too long, or are declared lost by the operator.
    ///
    /// More than one only by order of the operator. Ascending and distinct.
    case remove([NodeID])
}

/// A voter set and, until it is settled, the one before it.
///
/// A set is settled once a majority of it has synced everything that a majority of the one before
/// had. Until then it cannot be changed, and proving a node current needs a majority of both sets.
package struct VoterConfiguration: Hashable, Sendable {
    /// The newest set.
    package var set: VoterSet
    /// The set before; `nil` once ``set`` is settled.
    package var previous: VoterSet?

    /// Creates a configuration, settled if `previous` is `nil`.
    package init(_ set: VoterSet, after previous: VoterSet? = nil) {
        self.set = set
        self.previous = previous
    }

    /// True if the set is settled.
    package var isSettled: Bool { previous == nil }
}

/// The encoding of voter sets in messages, records and on disk; see "Encoding" in
/// <doc:Fence>.
///
/// Decoding is strict: a known field that occurs twice, or a list that is empty or too long, is a
/// fault, because a misread set would be another set.
extension VoterSet {
    private enum Tag {
        static let members: UInt16 = 1
        static let recovery: UInt16 = 2
    }

    private static let fixedBytes = 26

    /// Returns the encoded structure.
    ///
    /// - Throws: ``InvalidationFault/tooLong`` for more than ``membersMax`` members.
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

    /// Decodes the set that occupies all of `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: The encoded structure.
    ///   - kind: The kind of the enclosing frame, which a fault names.
    /// - Returns: The set.
    /// - Throws: The ``PeerFault`` of a malformed structure.
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
                founder: NodeID(bytes, at: 10), recovery: recovery ?? 0, generation: generation,
                members: members)
        else { throw .malformed(kind) }
        return set
    }

    /// The maximum number of members of an encoded set.
    ///
    /// That is 128 more than a cluster has, for members that are not removed yet.
    package static let membersMax = 384
    /// The highest accepted generation and ballot round; increments from there cannot overflow.
    static let generationMax: UInt64 = 1 << 62
}

extension VoterConfiguration {
    private enum Tag {
        static let set: UInt16 = 1
        static let previous: UInt16 = 2
    }

    /// Returns the encoded structure.
    ///
    /// - Throws: ``InvalidationFault/tooLong`` for more than ``VoterSet/membersMax`` members.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        var writer = StructureWriter()
        writer.endFixedPart()
        writer.putField(Tag.set, try set.bytes())
        if let previous { writer.putField(Tag.previous, try previous.bytes()) }
        return writer.bytes
    }

    /// Decodes the configuration that occupies all of `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: The encoded structure.
    ///   - kind: The kind of the enclosing frame, which a fault names.
    /// - Returns: The configuration.
    /// - Throws: The ``PeerFault`` of a malformed structure.
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
        case add = 1
        case remove = 2
    }

    private enum Tag {
        static let nodes: UInt16 = 1
    }

    private static let fixedBytes = 4

    /// Returns the encoded structure.
    ///
    /// - Throws: ``InvalidationFault/tooLong`` for more than ``VoterSet/membersMax`` nodes.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        let (kind, nodes) =
            switch self {
            case .add(let node): (Kind.add, [node])
            case .remove(let nodes): (Kind.remove, nodes)
            }
        guard nodes.count <= VoterSet.membersMax else { throw .tooLong }
        var writer = StructureWriter()
        writer.put(kind.rawValue)
        writer.put(UInt8(0))
        writer.endFixedPart()
        writer.putField(Tag.nodes, list: nodes)
        return writer.bytes
    }

    /// Decodes the change that occupies all of `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: The encoded structure.
    ///   - frame: The kind of the enclosing frame, which a fault names.
    /// - Returns: The change.
    /// - Throws: The ``PeerFault`` of a malformed structure.
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
        case .add where nodes.count == 1: return .add(nodes[0])
        case .remove: return .remove(nodes)
        default: throw .malformed(frame)
        }
    }
}

extension [NodeID] {
    /// True if the ids are ascending and distinct.
    var isAscending: Bool { zip(self, dropFirst()).allSatisfy { $0 < $1 } }
}

/// A reader of a structure's known fields, each of which may occur once; skips unknown fields.
struct UniqueFields {
    private(set) var structure: StructureReader
    /// The tags of known fields, all below 64.
    private let tags: ClosedRange<UInt16>
    /// The tags that have occurred, one bit for each.
    private var seen: UInt64 = 0

    /// Begins to read, as ``StructureReader/init(_:fixedBytes:in:)`` does.
    init(
        _ bytes: Span<UInt8>, fixedBytes: Int, in kind: PeerFrameKind, _ tags: ClosedRange<UInt16>
    ) throws(PeerFault) {
        structure = try StructureReader(bytes, fixedBytes: fixedBytes, in: kind)
        self.tags = tags
    }

    /// Returns the next known field, or `nil` after the last.
    ///
    /// - Throws: ``PeerFault/malformed(_:)`` for a second field with one tag, or a fault of the
    ///   structure.
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
