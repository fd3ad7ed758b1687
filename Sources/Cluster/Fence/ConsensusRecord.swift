package import Ground

/// Orders the attempts at one change of the counted set; a later one finishes what an earlier one
/// may have decided.
package struct Ballot: Hashable, Comparable, Sendable {
    /// From 1; nobody uses one that he has seen.
    package var round: UInt64
    /// Who makes the attempt.
    package var proposer: NodeID
    /// Members that the operator says are gone for good, so that majorities are of the others.
    ///
    /// Empty but for the operator's word.
    package var excluded: [NodeID]

    /// The ballot of repeated votes, for a change that is decided; see
    /// ``VoterSetConsensus/repeatVote(synced:issue:)``.
    init(repeatingExcluding gone: [NodeID]) {
        self.init(round: 1, proposer: NodeID(low: 0, high: 0), excluding: gone)
    }

    /// The ballot is one of repeated votes: nobody's, and lower than all others.
    package var isRepeated: Bool { proposer == NodeID(low: 0, high: 0) }

    package init(round: UInt64, proposer: NodeID, excluding: [NodeID] = []) {
        self.round = round
        self.proposer = proposer
        self.excluded = excluding
    }

    package static func < (left: Ballot, right: Ballot) -> Bool {
        (left.round, left.proposer) < (right.round, right.proposer)
    }
}

/// A record of the log by which members agree on the next counted set; each writes its own into its
/// own stream, so that whoever reads it knows that it is synced there.
///
/// It is single-decree Paxos (Lamport, "Paxos Made Simple", 2001) for each generation, with the log
/// for its messages: an owner's first promise is the call for promises, its vote the proposal.
package struct ConsensusRecord: Hashable, Sendable {
    package enum Payload: Hashable, Sendable {
        /// This node follows this line of sets, and has left every other; `previous` as in
        /// ``VoterConfiguration``. The ballot's round numbers this node's joins; the last one
        /// holds.
        case joined(previous: VoterSet?)
        /// No lower ballot gets this node's vote; with the highest vote that it has given.
        case promise(voted: Vote?)
        /// For `change`, by a node that has synced `holds`.
        case vote(VoterSetChange, synced: [StreamPosition])
    }

    /// What is to be changed; it was decided and, except under ``StoredBody/joined``, is settled.
    package var base: VoterSet
    /// Whose word it is.
    package var member: NodeID
    package var ballot: Ballot
    package var body: Payload

    package init(base: VoterSet, member: NodeID, ballot: Ballot, body: Payload) {
        self.base = base
        self.member = member
        self.ballot = ballot
        self.body = body
    }

    var vote: Vote? {
        guard case .vote(let change, _) = body else { return nil }
        return Vote(ballot: ballot, change: change)
    }

    var isPromise: Bool {
        guard case .promise = body else { return false }
        return true
    }
}

/// A vote that was given.
package struct Vote: Hashable, Sendable {
    package var ballot: Ballot
    package var change: VoterSetChange

    package init(ballot: Ballot, change: VoterSetChange) {
        self.ballot = ballot
        self.change = change
    }
}

/// What a member says of the counted set with every answer and every confirmation.
///
/// Made at the same moment as the positions beside it.
package struct VoterSetView: Hashable, Sendable {
    /// Nil for a newcomer.
    package var configuration: VoterConfiguration?
    /// It has voted on its set, be the vote synced or not.
    package var hasVoted: Bool
    /// It is proven current itself: it has caught up with a majority, and does not go.
    package var isCurrent: Bool
    /// It has started within the last fence, and had followed a count before: there may be nodes
    /// that its answers from before prove current, and that it does not know.
    package var isRecentlyStarted: Bool
    /// Of a newcomer, who is to open the cluster as far as it is asked; see ``ClusterFormation``.
    package var nominee: NodeID?

    package init(
        standing: VoterConfiguration?, hasVoted: Bool = false, isCurrent: Bool,
        isYoung: Bool = false, nominee: NodeID? = nil
    ) {
        self.configuration = standing
        self.hasVoted = hasVoted
        self.isCurrent = isCurrent
        self.isRecentlyStarted = isYoung
        self.nominee = nominee
    }
}

/// Ballots, votes and records of the count in bytes: structures, read as strictly as sets.
extension Ballot {
    private enum Tag {
        static let without: UInt16 = 1
    }

    private static let fixedBytes = 26

    /// The structure's bytes.
    ///
    /// - Throws: ``InvalidationFault/tooLong`` for more members than ``VoterSet/membersMax``.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        guard excluded.count <= VoterSet.membersMax else { throw .tooLong }
        var writer = StructureWriter()
        writer.put(round)
        writer.put(proposer)
        writer.endFixedPart()
        writer.putField(Tag.without, list: excluded)
        return writer.bytes
    }

    /// The ballot that the whole of `bytes` is, which lie in something of `kind`.
    ///
    /// - Throws: what is wrong with it.
    package static func read(
        _ bytes: Span<UInt8>, in kind: PeerFrameKind
    ) throws(PeerFault) -> Ballot {
        var fields = try UniqueFields(
            bytes, fixedBytes: fixedBytes, in: kind, Tag.without...Tag.without)
        let round = bytes.little64(at: 2)
        guard (1...VoterSet.generationMax).contains(round) else { throw .malformed(kind) }
        var ballot = Ballot(round: round, proposer: NodeID(bytes, at: 10))
        while let field = try fields.next(bytes) {
            ballot.excluded = try fields.structure.list(
                bytes, field, countMax: VoterSet.membersMax)
            guard ballot.excluded.isAscending else { throw .malformed(kind) }
        }
        return ballot
    }
}

extension Vote {
    private enum Tag {
        static let ballot: UInt16 = 1
        static let change: UInt16 = 2
    }

    /// The structure's bytes.
    ///
    /// - Throws: ``InvalidationFault/tooLong``.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        var writer = StructureWriter()
        writer.endFixedPart()
        writer.putField(Tag.ballot, try ballot.bytes())
        writer.putField(Tag.change, try change.bytes())
        return writer.bytes
    }

    /// The vote that the whole of `bytes` is, which lie in something of `kind`.
    ///
    /// - Throws: what is wrong with it.
    package static func read(
        _ bytes: Span<UInt8>, in kind: PeerFrameKind
    ) throws(PeerFault) -> Vote {
        var fields = try UniqueFields(bytes, fixedBytes: 2, in: kind, Tag.ballot...Tag.change)
        var (ballot, change): (Ballot?, VoterSetChange?)
        while let field = try fields.next(bytes) {
            switch field.tag {
            case Tag.ballot: ballot = try .read(bytes.extracting(field.range), in: kind)
            default: change = try .read(bytes.extracting(field.range), in: kind)
            }
        }
        guard let ballot, let change else { throw .malformed(kind) }
        return Vote(ballot: ballot, change: change)
    }
}

extension ConsensusRecord {
    private enum Kind: UInt8 {
        case joined = 1
        case promise = 2
        case vote = 3
    }

    private enum Tag {
        static let base: UInt16 = 1
        static let ballot: UInt16 = 2
        /// Of a join.
        static let previous: UInt16 = 3
        /// Of a promise.
        static let voted: UInt16 = 4
        /// Of a vote.
        static let change: UInt16 = 5
        static let holds: UInt16 = 6
    }

    private static let fixedBytes = 20
    /// The most positions that a vote names, so that it fits in a record: as many streams as a log
    /// has.
    package static let positionsMax = 1_280

    /// The structure's bytes; they fit in a record of the log.
    ///
    /// - Throws: ``InvalidationFault/tooLong`` for too many members or positions.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        let kind: Kind =
            switch body {
            case .joined: .joined
            case .promise: .promise
            case .vote: .vote
            }
        var writer = StructureWriter()
        writer.put(kind.rawValue)
        writer.put(UInt8(0))
        writer.put(member)
        writer.endFixedPart()
        writer.putField(Tag.base, try base.bytes())
        writer.putField(Tag.ballot, try ballot.bytes())
        switch body {
        case .joined(let previous?): writer.putField(Tag.previous, try previous.bytes())
        case .promise(let voted?): writer.putField(Tag.voted, try voted.bytes())
        case .vote(let change, let holds):
            guard holds.count <= Self.positionsMax else { throw .tooLong }
            writer.putField(Tag.change, try change.bytes())
            writer.putField(Tag.holds, list: holds)
        case .joined(nil), .promise(nil): break
        }
        return writer.bytes
    }

    /// The record that the whole of `bytes` is, which lie in something of `kind`.
    ///
    /// - Throws: what is wrong with it; a kind of a later version is, too.
    package static func read(
        _ bytes: Span<UInt8>, in frame: PeerFrameKind
    ) throws(PeerFault) -> ConsensusRecord {
        var fields = try UniqueFields(
            bytes, fixedBytes: fixedBytes, in: frame, Tag.base...Tag.holds)
        var (base, previous): (VoterSet?, VoterSet?)
        var (ballot, voted, change): (Ballot?, Vote?, VoterSetChange?)
        var holds: [StreamPosition]?
        while let field = try fields.next(bytes) {
            let value = bytes.extracting(field.range)
            switch field.tag {
            case Tag.base: base = try .read(value, in: frame)
            case Tag.ballot: ballot = try .read(value, in: frame)
            case Tag.previous: previous = try .read(value, in: frame)
            case Tag.voted: voted = try .read(value, in: frame)
            case Tag.change: change = try .read(value, in: frame)
            default: holds = try fields.structure.list(bytes, field, countMax: positionsMax)
            }
        }
        guard let kind = Kind(rawValue: bytes[2]), let base, let ballot else {
            throw .malformed(frame)
        }
        let body: Payload
        switch (kind, previous, voted, change, holds) {
        case (.joined, let previous, nil, nil, nil): body = .joined(previous: previous)
        case (.promise, nil, let voted, nil, nil): body = .promise(voted: voted)
        case (.vote, nil, nil, let change?, let holds): body = .vote(change, synced: holds ?? [])
        default: throw .malformed(frame)
        }
        return ConsensusRecord(
            base: base, member: NodeID(bytes, at: 4), ballot: ballot, body: body)
    }
}
