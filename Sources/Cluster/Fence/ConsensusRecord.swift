package import Ground

/// The number of an attempt to change the voter set.
///
/// A later attempt completes what an earlier one may have decided.
package struct Ballot: Hashable, Comparable, Sendable {
    /// The round, from 1; a proposer never uses a round that it has seen.
    package var round: UInt64
    /// The node that makes the attempt.
    package var proposer: NodeID
    /// The members that the operator declared permanently lost; majorities are counted without
    /// them.
    ///
    /// Empty unless the operator ordered the attempt.
    package var excluded: [NodeID]

    /// Creates the ballot of repeated votes for a decided change; see
    /// ``VoterSetConsensus/repeatVote(synced:records:)``.
    init(repeatingExcluding removed: [NodeID]) {
        self.init(round: 1, proposer: NodeID(low: 0, high: 0), excluding: removed)
    }

    /// True for the ballot of repeated votes, which has no proposer and is lower than all others.
    package var isRepeated: Bool { proposer == NodeID(low: 0, high: 0) }

    /// Creates a ballot from its parts.
    package init(round: UInt64, proposer: NodeID, excluding: [NodeID] = []) {
        self.round = round
        self.proposer = proposer
        self.excluded = excluding
    }

    /// Orders ballots by round, then by proposer.
    package static func < (left: Ballot, right: Ballot) -> Bool {
        (left.round, left.proposer) < (right.round, right.proposer)
    }
}

/// A log record by which members agree on the next voter set.
///
/// Each member writes its records into its own stream, so a reader knows that they are synced
/// there. The protocol is single-decree Paxos (Lamport, "Paxos Made Simple", 2001) for each
/// generation, with log records as messages: the proposer's own promise is the request for
/// promises, its own vote is the proposal.
package struct ConsensusRecord: Hashable, Sendable {
    /// The kind of the record, with its content.
    package enum Payload: Hashable, Sendable {
        /// The member follows this lineage of sets and has left every other.
        ///
        /// `previous` is as in ``VoterConfiguration``. The ballot's round counts the member's
        /// joins; the highest one holds.
        case joined(previous: VoterSet?)
        /// The member votes in no lower ballot; `voted` is the highest vote that it has cast.
        case promise(voted: Vote?)
        /// A vote for the change by a member that has synced the positions.
        case vote(VoterSetChange, synced: [StreamPosition])
    }

    /// The set to be changed, which is decided and, except in ``Payload/joined(previous:)``,
    /// settled.
    package var base: VoterSet
    /// The member that wrote the record.
    package var member: NodeID
    /// The ballot of the promise or vote; of a join, the number of the join.
    package var ballot: Ballot
    /// The kind and content.
    package var body: Payload

    /// Creates a record from its parts.
    package init(base: VoterSet, member: NodeID, ballot: Ballot, body: Payload) {
        self.base = base
        self.member = member
        self.ballot = ballot
        self.body = body
    }

    /// The vote in the record, without its positions; `nil` for another kind.
    var vote: Vote? {
        guard case .vote(let change, _) = body else { return nil }
        return Vote(ballot: ballot, change: change)
    }

    /// True if the record is a promise.
    var isPromise: Bool {
        guard case .promise = body else { return false }
        return true
    }
}

/// A vote that was cast.
package struct Vote: Hashable, Sendable {
    /// The ballot in which it was cast.
    package var ballot: Ballot
    /// The change that it supports.
    package var change: VoterSetChange

    /// Creates a vote from its parts.
    package init(ballot: Ballot, change: VoterSetChange) {
        self.ballot = ballot
        self.change = change
    }
}

/// A member's view of the voter set, sent with every round response and confirmation.
///
/// Made at the same moment as the positions sent with it.
package struct VoterSetView: Hashable, Sendable {
    /// The member's configuration; `nil` for a newcomer.
    package var configuration: VoterConfiguration?
    /// True if the member has voted on its set, whether or not the vote is synced.
    package var hasVoted: Bool
    /// True if the member is current itself, having caught up with a majority, and is not leaving.
    package var isCurrent: Bool
    /// True if the member started within the last fence duration and followed a voter set before.
    ///
    /// Nodes may then be current by responses of its former process, and it does not know of them.
    package var isRecentlyStarted: Bool
    /// The node that a newcomer nominates to open the cluster; see ``ClusterFormation``.
    package var nominee: NodeID?

    /// Creates a view from its parts.
    package init(
        configuration: VoterConfiguration?, hasVoted: Bool = false, isCurrent: Bool,
        isRecentlyStarted: Bool = false, nominee: NodeID? = nil
    ) {
        self.configuration = configuration
        self.hasVoted = hasVoted
        self.isCurrent = isCurrent
        self.isRecentlyStarted = isRecentlyStarted
        self.nominee = nominee
    }
}

/// The encoding of ballots, votes and consensus records: structures, decoded as strictly as sets.
extension Ballot {
    private enum Tag {
        static let excluded: UInt16 = 1
    }

    private static let fixedBytes = 26

    /// Returns the encoded structure.
    ///
    /// - Throws: ``InvalidationFault/tooLong`` for more members than ``VoterSet/membersMax``.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        guard excluded.count <= VoterSet.membersMax else { throw .tooLong }
        var writer = StructureWriter()
        writer.put(round)
        writer.put(proposer)
        writer.endFixedPart()
        writer.putField(Tag.excluded, list: excluded)
        return writer.bytes
    }

    /// Decodes the ballot that occupies all of `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: The encoded structure.
    ///   - kind: The kind of the enclosing frame, which a fault names.
    /// - Returns: The ballot.
    /// - Throws: The ``PeerFault`` of a malformed structure.
    package static func read(
        _ bytes: Span<UInt8>, in kind: PeerFrameKind
    ) throws(PeerFault) -> Ballot {
        var fields = try UniqueFields(
            bytes, fixedBytes: fixedBytes, in: kind, Tag.excluded...Tag.excluded)
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

    /// Returns the encoded structure.
    ///
    /// - Throws: ``InvalidationFault/tooLong`` for too many members.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        var writer = StructureWriter()
        writer.endFixedPart()
        writer.putField(Tag.ballot, try ballot.bytes())
        writer.putField(Tag.change, try change.bytes())
        return writer.bytes
    }

    /// Decodes the vote that occupies all of `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: The encoded structure.
    ///   - kind: The kind of the enclosing frame, which a fault names.
    /// - Returns: The vote.
    /// - Throws: The ``PeerFault`` of a malformed structure.
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
        /// The previous set, only in a join.
        static let previous: UInt16 = 3
        /// The earlier vote, only in a promise.
        static let voted: UInt16 = 4
        /// The change, only in a vote.
        static let change: UInt16 = 5
        static let synced: UInt16 = 6
    }

    private static let fixedBytes = 20
    /// The maximum number of positions in a vote, so that it fits in a log record: as many as a log
    /// has streams.
    package static let positionsMax = 1_280

    /// Returns the encoded structure, which fits in a log record.
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
        case .vote(let change, let synced):
            guard synced.count <= Self.positionsMax else { throw .tooLong }
            writer.putField(Tag.change, try change.bytes())
            writer.putField(Tag.synced, list: synced)
        case .joined(nil), .promise(nil): break
        }
        return writer.bytes
    }

    /// Decodes the record that occupies all of `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: The encoded structure.
    ///   - frame: The kind of the enclosing frame, which a fault names.
    /// - Returns: The record.
    /// - Throws: The ``PeerFault`` of a malformed structure, or of a record kind of a later
    ///   version.
    package static func read(
        _ bytes: Span<UInt8>, in frame: PeerFrameKind
    ) throws(PeerFault) -> ConsensusRecord {
        var fields = try UniqueFields(
            bytes, fixedBytes: fixedBytes, in: frame, Tag.base...Tag.synced)
        var (base, previous): (VoterSet?, VoterSet?)
        var (ballot, voted, change): (Ballot?, Vote?, VoterSetChange?)
        var synced: [StreamPosition]?
        while let field = try fields.next(bytes) {
            let value = bytes.extracting(field.range)
            switch field.tag {
            case Tag.base: base = try .read(value, in: frame)
            case Tag.ballot: ballot = try .read(value, in: frame)
            case Tag.previous: previous = try .read(value, in: frame)
            case Tag.voted: voted = try .read(value, in: frame)
            case Tag.change: change = try .read(value, in: frame)
            default: synced = try fields.structure.list(bytes, field, countMax: positionsMax)
            }
        }
        guard let kind = Kind(rawValue: bytes[2]), let base, let ballot else {
            throw .malformed(frame)
        }
        let body: Payload
        switch (kind, previous, voted, change, synced) {
        case (.joined, let previous, nil, nil, nil): body = .joined(previous: previous)
        case (.promise, nil, let voted, nil, nil): body = .promise(voted: voted)
        case (.vote, nil, nil, let change?, let synced): body = .vote(change, synced: synced ?? [])
        default: throw .malformed(frame)
        }
        return ConsensusRecord(
            base: base, member: NodeID(bytes, at: 4), ballot: ballot, body: body)
    }
}
