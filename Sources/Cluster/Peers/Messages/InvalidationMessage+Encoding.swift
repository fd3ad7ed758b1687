import Ground

/// The encoding of messages about invalidations; see "Invalidations" in <doc:PeerProtocol>.
extension InvalidationMessage {
    /// The tags of fields; their meaning depends on the frame's kind.
    enum Tag {
        static let record: UInt16 = 1
        /// A position: confirmed or applied ones, in a round's response synced ones.
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

    /// The flags of a round's response and, except for the first two, of a confirmation.
    struct Flags: OptionSet {
        let rawValue: UInt8

        static let hasMore = Flags(rawValue: 1 << 0)
        static let hasRound = Flags(rawValue: 1 << 1)
        static let hasVoted = Flags(rawValue: 1 << 2)
        static let isCurrent = Flags(rawValue: 1 << 3)
        static let isUnchanged = Flags(rawValue: 1 << 4)
        static let isRecentlyStarted = Flags(rawValue: 1 << 5)
        /// In a confirmation, members and voter set equal those of the earlier one with this
        /// digest.
        static let isAbbreviated = Flags(rawValue: 1 << 6)
    }

    static let confirmationFixedBytes = 4
    static let roundFixedBytes = 20
    static let roundReplyFixedBytes = 12

    /// Returns the encoded frames: one, or several if one is too small.
    ///
    /// Each frame is a message of its own, except in a round's response, whose last frame completes
    /// the others. Every frame of a confirmation lists all members; the last frame of a repair has
    /// all floors and covered ranges.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` for too many members, ranges or positions.
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

    /// Returns the frames of a confirmation.
    ///
    /// With `isShort` the members and the voter set are replaced by their digest, which the
    /// receiver must have received together with them.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` for too many members.
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
            if let configuration = view.configuration { try writer.put(configuration) }
            writer.putFields(Tag.member, members)
        }
        var cutter = FrameSplitter(.confirmed, writer)
        try cutter.putFields(Tag.position, positions)
        return try cutter.finish()
    }

    /// Returns the digest of the members and the voter set of a confirmation (XXH64).
    static func membershipDigest(_ members: [NodeID], _ configuration: VoterConfiguration?)
        -> UInt64
    {
        var bytes: [UInt8] = []
        for member in members { bytes.append(member) }
        // A voter set that is too long is rejected when it is encoded.
        if let configuration { bytes += (try? configuration.bytes()) ?? [] }
        return XXH64.hash(bytes.span, seed: UInt64(members.count))
    }

    /// Returns the frames of a repair response, the last with all floors and covered ranges.
    private static func repair(_ response: RepairResponse) throws(SendError) -> [[UInt8]] {
        let (floors, covered) = (response.floors, response.covered)
        guard max(floors.count, covered.count) <= PeerProtocol.rangesMax else {
            throw .tooLong(.ranges)
        }
        var cutter = FrameSplitter(.repair)
        for record in response.records { try cutter.put(record) }
        // Both go with the last records, since they state what is missing among them.
        let head = StructureReader.fieldHeaderBytes
        let needed =
            floors.count * (head + StreamPosition.bytesCount)
            + covered.count * (head + StreamRange.bytesCount)
        if cutter.remainingBytes < needed { try cutter.endFrame() }
        try cutter.putFields(Tag.floor, floors)
        try cutter.putFields(Tag.covered, covered)
        return try cutter.finish()
    }

    /// Returns the frames of a round's response: one, or several with positions before one with the
    /// view.
    private static func roundReply(
        _ response: FenceResponse, _ retired: [StreamPosition]
    ) throws(SendError) -> [[UInt8]] {
        guard max(response.synced.count, retired.count) <= PeerProtocol.messagePositionsMax else {
            throw .tooLong(.positions)
        }
        var flags = Flags(response.view)
        if response.round != nil { flags.insert(.hasRound) }
        var last = roundReplyPrefix(flags, round: response.round ?? 0)
        if let configuration = response.view.configuration { try last.put(configuration) }
        last.put(nominee: response.view.nominee)
        var cutter = FrameSplitter(.roundReply, last)
        let count = response.synced.count + retired.count
        let needed = count * (StructureReader.fieldHeaderBytes + StreamPosition.bytesCount)
        let fits = cutter.remainingBytes >= needed
        if !fits { cutter = FrameSplitter(.roundReply, roundReplyPrefix(.hasMore, round: 0)) }
        try cutter.putFields(Tag.position, response.synced)
        try cutter.putFields(Tag.retired, retired)
        return try cutter.finish() + (fits ? [] : [last.frame(.roundReply)])
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
        if view.isRecentlyStarted { insert(.isRecentlyStarted) }
    }

    /// Returns the view that these flags and the other fields of a message describe.
    func view(_ configuration: VoterConfiguration?, _ nominee: NodeID?) -> VoterSetView {
        VoterSetView(
            configuration: configuration, hasVoted: contains(.hasVoted),
            isCurrent: contains(.isCurrent),
            isRecentlyStarted: contains(.isRecentlyStarted), nominee: nominee)
    }
}

extension StructureWriter {
    fileprivate mutating func put(_ configuration: VoterConfiguration) throws(SendError) {
        guard let bytes = try? configuration.bytes() else { throw .tooLong(.confirmationMembers) }
        putField(InvalidationMessage.Tag.voterSet, bytes)
    }

    fileprivate mutating func put(nominee: NodeID?) {
        if let nominee { putField(InvalidationMessage.Tag.nominee, value: nominee) }
    }
}

extension StreamRange: FixedSizeValue {
    /// The encoded size in bytes.
    package static let bytesCount = 32

    /// Encodes the range.
    package func put(into writer: inout StructureWriter) {
        writer.put(process)
        writer.put(numbers.lowerBound)
        writer.put(numbers.upperBound)
    }

    /// Decodes the range in the 32 bytes at `offset`; `nil` if it is empty or begins at 0.
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

/// A message about invalidations with its frames, encoded once for all its receivers.
package struct EncodedInvalidationMessage: Sendable {
    /// The message.
    package let message: InvalidationMessage
    /// The encoded frames; of a confirmation the short form.
    package let frames: [[UInt8]]
    /// The digest of members and voter set, which a peer must have received in full for the short
    /// form; `nil` for other messages.
    let membershipDigest: UInt64?

    /// Encodes `message`.
    ///
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
