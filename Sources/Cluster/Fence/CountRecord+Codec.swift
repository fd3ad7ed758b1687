import Ground

/// Ballots, votes and records of the count in bytes: structures, read as strictly as sets.
extension CountBallot {
    private enum Tag {
        static let without: UInt16 = 1
    }

    private static let fixedBytes = 26

    /// The structure's bytes.
    ///
    /// - Throws: ``InvalidationFault/tooLong`` for more members than ``CountedSet/membersMax``.
    package func bytes() throws(InvalidationFault) -> [UInt8] {
        guard without.count <= CountedSet.membersMax else { throw .tooLong }
        var writer = StructureWriter()
        writer.put(round)
        writer.put(owner)
        writer.endFixedPart()
        writer.putField(Tag.without, list: without)
        return writer.bytes
    }

    /// The ballot that the whole of `bytes` is, which lie in something of `kind`.
    ///
    /// - Throws: what is wrong with it.
    package static func read(
        _ bytes: Span<UInt8>, in kind: PeerFrameKind
    ) throws(PeerFault) -> CountBallot {
        var fields = try OnceFields(
            bytes, fixedBytes: fixedBytes, in: kind, Tag.without...Tag.without)
        let round = bytes.little64(at: 2)
        guard (1...CountedSet.countMax).contains(round) else { throw .malformed(kind) }
        var ballot = CountBallot(round: round, owner: NodeID(bytes, at: 10))
        while let field = try fields.next(bytes) {
            ballot.without = try fields.structure.list(
                bytes, field, countMax: CountedSet.membersMax)
            guard ballot.without.isAscending else { throw .malformed(kind) }
        }
        return ballot
    }
}

extension CountVote {
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
    ) throws(PeerFault) -> CountVote {
        var fields = try OnceFields(bytes, fixedBytes: 2, in: kind, Tag.ballot...Tag.change)
        var (ballot, change): (CountBallot?, CountChange?)
        while let field = try fields.next(bytes) {
            switch field.tag {
            case Tag.ballot: ballot = try .read(bytes.extracting(field.range), in: kind)
            default: change = try .read(bytes.extracting(field.range), in: kind)
            }
        }
        guard let ballot, let change else { throw .malformed(kind) }
        return CountVote(ballot: ballot, change: change)
    }
}

extension CountRecord {
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
    package static let holdsMax = 1_280

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
            guard holds.count <= Self.holdsMax else { throw .tooLong }
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
    ) throws(PeerFault) -> CountRecord {
        var fields = try OnceFields(
            bytes, fixedBytes: fixedBytes, in: frame, Tag.base...Tag.holds)
        var (base, previous): (CountedSet?, CountedSet?)
        var (ballot, voted, change): (CountBallot?, CountVote?, CountChange?)
        var holds: [StreamPosition]?
        while let field = try fields.next(bytes) {
            let value = bytes.extracting(field.range)
            switch field.tag {
            case Tag.base: base = try .read(value, in: frame)
            case Tag.ballot: ballot = try .read(value, in: frame)
            case Tag.previous: previous = try .read(value, in: frame)
            case Tag.voted: voted = try .read(value, in: frame)
            case Tag.change: change = try .read(value, in: frame)
            default: holds = try fields.structure.list(bytes, field, countMax: holdsMax)
            }
        }
        guard let kind = Kind(rawValue: bytes[2]), let base, let ballot else {
            throw .malformed(frame)
        }
        let body: Body
        switch (kind, previous, voted, change, holds) {
        case (.joined, let previous, nil, nil, nil): body = .joined(previous: previous)
        case (.promise, nil, let voted, nil, nil): body = .promise(voted: voted)
        case (.vote, nil, nil, let change?, let holds): body = .vote(change, holds: holds ?? [])
        default: throw .malformed(frame)
        }
        return CountRecord(
            base: base, member: NodeID(bytes, at: 4), ballot: ballot, body: body)
    }
}
