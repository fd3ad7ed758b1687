import Ground

/// What is said about invalidations, as frames; see "Invalidations" in <doc:PeerProtocol>.
extension InvalidationMessage {
    enum Tag {
        static let record: UInt16 = 1
        /// Of a confirmation and of what was told; of an answer what is synced.
        static let position: UInt16 = 1
        static let member: UInt16 = 2
        static let range: UInt16 = 1
        static let floor: UInt16 = 2
        static let covered: UInt16 = 3
        static let retired: UInt16 = 2
        static let voterSet: UInt16 = 3
        static let digest: UInt16 = 4
        static let nominee: UInt16 = 5
    }

    /// Of an answer and, but for the first two, of a confirmation.
    struct Flags: OptionSet {
        let rawValue: UInt8

        static let hasMore = Flags(rawValue: 1 << 0)
        static let hasRound = Flags(rawValue: 1 << 1)
        static let hasVoted = Flags(rawValue: 1 << 2)
        static let isCurrent = Flags(rawValue: 1 << 3)
        static let isUnchanged = Flags(rawValue: 1 << 4)
        static let isYoung = Flags(rawValue: 1 << 5)
        /// Of a confirmation: members and set are those of the one before with this digest.
        static let isAbbreviated = Flags(rawValue: 1 << 6)
    }

    static let confirmationFixedBytes = 4
    static let roundFixedBytes = 20
    static let roundReplyFixedBytes = 12

    /// The frames: one, or several if it does not fit in one.
    ///
    /// Each but those of an answer is a message that can be taken by itself: a confirmation's name
    /// all members, a repair's last one all floors and what was looked for. Of an answer the last
    /// one makes the others count.
    ///
    /// - Throws: ``SendError/tooLong(_:)``.
    package func frames() throws(SendError) -> [[UInt8]] {
        switch self {
        case .push(let records):
            var cutter = FrameSplitter(.invalidations)
            for record in records { try cutter.put(record) }
            return try cutter.finish()
        case .confirmation(let positions, let members, let view):
            return try Self.confirm(positions, members, view, isShort: false)
        case .appliedPositions(let positions):
            var cutter = FrameSplitter(.applied)
            try cutter.putFields(Tag.position, positions)
            return try cutter.finish()
        case .repairRequest(let ranges):
            guard ranges.count <= PeerProtocol.rangesMax else { throw .tooLong(.ranges) }
            var cutter = FrameSplitter(.repairRequest)
            try cutter.putFields(Tag.range, ranges)
            return try cutter.finish()
        case .repairResponse(let response): return try Self.repair(response)
        case .roundRequest(let round, let digest):
            var writer = StructureWriter.payload
            writer.put(UInt16(0))
            writer.put(round)
            writer.put(digest)
            writer.endFixedPart()
            return [try writer.frame(.round)]
        case .roundUnchanged(let round, let digest, let view):
            var writer = Self.roundReplyPrefix(
                Flags(view).union([.hasRound, .isUnchanged]), round: round)
            writer.putField(Tag.digest, value: digest)
            writer.put(nominee: view.nominee)
            return [try writer.frame(.roundReply)]
        case .roundResponse(let response, let retired):
            return try Self.roundReply(response, retired)
        }
    }

    /// `isShort`: members and set are not said, but a digest of them, which the receiver has heard
    /// with them.
    static func confirm(
        _ positions: [StreamPosition], _ members: [NodeID], _ view: VoterSetView, isShort: Bool
    ) throws(SendError) -> [[UInt8]] {
        guard members.count <= PeerProtocol.confirmationMembersMax else {
            throw .tooLong(.confirmationMembers)
        }
        var writer = StructureWriter.payload
        let flags = Flags(view).union(isShort ? .isAbbreviated : [])
        writer.put(flags.rawValue)
        writer.put(UInt8(0))
        writer.endFixedPart()
        writer.putField(Tag.digest, value: membershipDigest(members, view.configuration))
        writer.put(nominee: view.nominee)
        if !isShort {
            if let standing = view.configuration { try writer.put(standing) }
            writer.putFields(Tag.member, members)
        }
        var cutter = FrameSplitter(.confirmed, writer)
        try cutter.putFields(Tag.position, positions)
        return try cutter.finish()
    }

    /// What tells members and set of one confirmation from those of another (XXH64).
    static func membershipDigest(_ members: [NodeID], _ standing: VoterConfiguration?) -> UInt64 {
        var bytes: [UInt8] = []
        for member in members { bytes.append(member) }
        // One that is too long to be written is refused where it is.
        if let standing { bytes += (try? standing.bytes()) ?? [] }
        return XXH64.hash(bytes.span, seed: UInt64(members.count))
    }

    private static func repair(_ response: RepairResponse) throws(SendError) -> [[UInt8]] {
        let (floors, covered) = (response.floors, response.covered)
        guard max(floors.count, covered.count) <= PeerProtocol.rangesMax else {
            throw .tooLong(.ranges)
        }
        var cutter = FrameSplitter(.repair)
        for record in response.records { try cutter.put(record) }
        // Both go with the last of the records, for they say what is missing among them.
        let head = StructureReader.fieldHeaderBytes
        let needed =
            floors.count * (head + StreamPosition.bytesCount)
            + covered.count * (head + StreamRange.bytesCount)
        if cutter.remainingBytes < needed { try cutter.endFrame() }
        try cutter.putFields(Tag.floor, floors)
        try cutter.putFields(Tag.covered, covered)
        return try cutter.finish()
    }

    private static func roundReply(
        _ response: FenceResponse, _ retired: [StreamPosition]
    ) throws(SendError) -> [[UInt8]] {
        guard max(response.synced.count, retired.count) <= PeerProtocol.messagePositionsMax else {
            throw .tooLong(.positions)
        }
        var flags = Flags(response.view)
        if response.round != nil { flags.insert(.hasRound) }
        var last = roundReplyPrefix(flags, round: response.round ?? 0)
        if let standing = response.view.configuration { try last.put(standing) }
        last.put(nominee: response.view.nominee)
        var cutter = FrameSplitter(.roundReply, last)
        let count = response.synced.count + retired.count
        let needed = count * (StructureReader.fieldHeaderBytes + StreamPosition.bytesCount)
        if cutter.remainingBytes < needed {
            cutter = FrameSplitter(.roundReply, roundReplyPrefix(.hasMore, round: 0))
            try cutter.putFields(Tag.position, response.synced)
            try cutter.putFields(Tag.retired, retired)
            return try cutter.finish() + [last.frame(.roundReply)]
        }
        try cutter.putFields(Tag.position, response.synced)
        try cutter.putFields(Tag.retired, retired)
        return try cutter.finish()
    }

    private static func roundReplyPrefix(_ flags: Flags, round: UInt64) -> StructureWriter {
        var writer = StructureWriter.payload
        writer.put(flags.rawValue)
        writer.put(UInt8(0))
        writer.put(round)
        writer.endFixedPart()
        return writer
    }
}

extension InvalidationMessage.Flags {
    fileprivate init(_ view: VoterSetView) {
        self = []
        if view.hasVoted { insert(.hasVoted) }
        if view.isCurrent { insert(.isCurrent) }
        if view.isRecentlyStarted { insert(.isYoung) }
    }

    /// What they and the rest of a message say of the count.
    func view(_ standing: VoterConfiguration?, _ nominee: NodeID?) -> VoterSetView {
        VoterSetView(
            standing: standing, hasVoted: contains(.hasVoted), isCurrent: contains(.isCurrent),
            isYoung: contains(.isYoung), nominee: nominee)
    }
}

extension StructureWriter {
    fileprivate mutating func put(_ standing: VoterConfiguration) throws(SendError) {
        guard let bytes = try? standing.bytes() else { throw .tooLong(.confirmationMembers) }
        putField(InvalidationMessage.Tag.voterSet, bytes)
    }

    fileprivate mutating func put(nominee: NodeID?) {
        if let nominee { putField(InvalidationMessage.Tag.nominee, value: nominee) }
    }
}

extension StreamRange: FixedSizeValue {
    package static let bytesCount = 32

    package func put(into writer: inout StructureWriter) {
        writer.put(process)
        writer.put(numbers.lowerBound)
        writer.put(numbers.upperBound)
    }

    /// The range of the 32 bytes from `offset`; nil if it is of no numbers.
    package init?(_ bytes: Span<UInt8>, at offset: Int) {
        let (first, last) = (bytes.little64(at: offset + 16), bytes.little64(at: offset + 24))
        guard first > 0, first <= last else { return nil }
        self.init(process: bytes.process(at: offset), numbers: first...last)
    }
}

extension FrameSplitter {
    fileprivate mutating func put(_ record: InvalidationRecord) throws(SendError) {
        try putField(InvalidationMessage.Tag.record, record.bytes)
    }
}

/// A message about invalidations with its frames, made once for all who get it.
package struct EncodedInvalidationMessage: Sendable {
    package let message: InvalidationMessage
    /// Of a confirmation the short form.
    package let frames: [[UInt8]]
    /// The digest of members and set, which a peer has to have heard in whole for the short form.
    let membershipDigest: UInt64?

    /// - Throws: ``SendError/tooLong(_:)``.
    package init(_ message: InvalidationMessage) throws(SendError) {
        self.message = message
        guard case .confirmation(let positions, let members, let view) = message else {
            frames = try message.frames()
            membershipDigest = nil
            return
        }
        frames = try InvalidationMessage.confirm(positions, members, view, isShort: true)
        membershipDigest = InvalidationMessage.membershipDigest(members, view.configuration)
    }
}
