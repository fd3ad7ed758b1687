package import Ground

/// What a node says of an entry that it holds, before its body; see "HELD" in <doc:PeerProtocol>.
package struct PeerEntry: Hashable, Sendable {
    /// The status of the origin's answer.
    package var status: UInt16
    package var source: Source
    package var facts: PeerEntryFacts
    /// Of the holder's node, when the request for the entry began.
    package var invalidationVersion: InvalidationVersion
    /// The rendered head.
    ///
    /// Empty in NOT_MODIFIED if the asker's own holds; then no entity tag is sent with the facts.
    package var head: [UInt8]
    /// Where the parts of ``head`` lie; nil if the receiver is to find them.
    package var headOffsets: HeadOffsets?
    package var tags: [[UInt8]]
    /// The entry's key, said if the question did not; else empty.
    package var key: [UInt8]
    /// The digest of the settings of the site that it is an answer of, said with ``key``; 0 for an
    /// image.
    package var policyDigest: UInt64 = 0
    package var terms = Terms()

    /// On which terms an answer is given, and in whose stead.
    package struct Terms: Hashable, Sendable {
        package var restrictions: Restrictions = []
        /// The status of the origin's answer, an error, in whose stead the entry is given; nil if
        /// it gave none.
        ///
        /// Counts with ``Restrictions/standsIn`` alone.
        package var originErrorStatus: UInt16?

        package init() {}
    }

    /// How far an answer may go; of limits that this version does not know it is as if they were
    /// not there.
    package struct Restrictions: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// It is given to the client who caused the fetch, and to nobody else without asking.
        package static let isPrivate = Restrictions(rawValue: 1 << 0)
        /// It is not stored by who asked for it.
        package static let isNoStore = Restrictions(rawValue: 1 << 1)
        /// The next request for it will hardly be answered otherwise.
        package static let isHitForMiss = Restrictions(rawValue: 1 << 2)
        /// It is stale, and given in the stead of an origin that fails (RFC 5861 §4).
        package static let isStaleIfError = Restrictions(rawValue: 1 << 3)
        /// It has fields for the client who caused the fetch (RFC 9111 §5.2.2.4, §5.2.2.7); without
        /// them it is stored, and may go to others.
        package static let hasPrivateFields = Restrictions(rawValue: 1 << 4)
    }

    /// Where the body comes from; one that this version does not know is kept as it is.
    package struct Source: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt8

        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        package static let memory = Source(rawValue: 1)
        package static let disk = Source(rawValue: 2)
        /// It comes from the origin just now.
        package static let fetch = Source(rawValue: 3)
    }

    package init(
        status: UInt16, source: Source, facts: PeerEntryFacts, version: InvalidationVersion,
        head: [UInt8],
        places: HeadOffsets? = nil, tags: [[UInt8]] = [], key: [UInt8] = []
    ) {
        self.status = status
        self.source = source
        self.facts = facts
        self.invalidationVersion = version
        self.head = head
        self.headOffsets = places
        self.tags = tags
        self.key = key
    }

    private enum Tag {
        static let head: UInt16 = 1
        static let tag: UInt16 = 2
        static let key: UInt16 = 3
        static let places: UInt16 = 4
        static let policy: UInt16 = 5
    }

    private static let fixedBytes = 88

    /// The frame: a HELD or a NOT_MODIFIED, as `kind` says.
    func frame(_ kind: PeerFrameKind, stream: UInt32) throws(SendError) -> [UInt8] {
        var facts = facts
        if head.isEmpty { facts.entityTag = .empty }
        // No frame has room for such a head.
        guard facts.entityTag.end <= head.count, headOffsets?.isWithin(in: head.count) ?? true
        else {
            throw .tooLong(.payload)
        }
        guard key.count <= PeerProtocol.keyBytesMax else { throw .tooLong(.key) }
        guard tags.count <= PeerProtocol.tagsMax else { throw .tooLong(.tags) }
        var writer = StructureWriter.payload
        writer.put(status)
        writer.put(source.rawValue)
        writer.put(terms.restrictions.rawValue)
        writer.put(terms.originErrorStatus ?? 0)
        facts.put(into: &writer)
        writer.put(invalidationVersion)
        writer.endFixedPart()
        writer.putField(Tag.head, unlessEmpty: head)
        for tag in tags { writer.putField(Tag.tag, tag) }
        writer.putField(Tag.key, unlessEmpty: key)
        if let headOffsets { writer.putField(Tag.places, value: headOffsets) }
        if policyDigest != 0 { writer.putField(Tag.policy, value: policyDigest) }
        return try writer.frame(kind, stream: stream)
    }

    /// The entry in the payload of a HELD or a NOT_MODIFIED, as `kind` says.
    init(payload: Span<UInt8>, in kind: PeerFrameKind) throws(PeerFault) {
        var structure = try StructureReader(payload, fixedBytes: Self.fixedBytes, in: kind)
        self.init(
            status: payload.little16(at: 2), source: Source(rawValue: payload[4]),
            facts: PeerEntryFacts(payload, at: 8), version: payload.invalidationVersion(at: 72),
            head: [])
        terms.restrictions = Restrictions(rawValue: payload[5])
        if payload.little16(at: 6) != 0 { terms.originErrorStatus = payload.little16(at: 6) }
        while let field = try structure.next(payload) {
            switch field.tag {
            case Tag.head: head = payload.copy(field.range)
            case Tag.tag: tags.append(payload.copy(field.range))
            case Tag.key: key = payload.copy(field.range)
            case Tag.places: headOffsets = try structure.fixedSizeValue(payload, field)
            case Tag.policy: policyDigest = try structure.fixedSizeValue(payload, field)
            default: continue
            }
        }
        guard key.count <= PeerProtocol.keyBytesMax else { throw .tooLong(.key) }
        guard tags.count <= PeerProtocol.tagsMax else { throw .tooLong(.tags) }
        guard facts.entityTag.end <= head.count, headOffsets?.isWithin(in: head.count) ?? true
        else {
            throw .malformed(kind)
        }
    }
}

/// Where the parts of a rendered head begin, in bytes from its beginning; each runs to the end.
package struct HeadOffsets: Hashable, Sendable {
    /// The fields of a 206 with one range, and of a 416.
    package var partialStart: UInt32
    /// The fields of a 206 with several ranges.
    package var multipartStart: UInt32
    /// The fields of a 304.
    package var notModifiedStart: UInt32
    /// The value of Content-Type; empty if there is none.
    package var contentType: Extent

    package init(
        partialStart: UInt32, multipartStart: UInt32, notModifiedStart: UInt32,
        contentType: Extent
    ) {
        self.partialStart = partialStart
        self.multipartStart = multipartStart
        self.notModifiedStart = notModifiedStart
        self.contentType = contentType
    }

    func isWithin(in bytesCount: Int) -> Bool {
        let starts = [partialStart, multipartStart, notModifiedStart]
        return starts.allSatisfy { Int($0) <= bytesCount } && contentType.end <= bytesCount
    }
}

extension HeadOffsets: FixedSizeValue {
    package static let bytesCount = 20

    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(
            partialStart: bytes.little32(at: offset),
            multipartStart: bytes.little32(at: offset + 4),
            notModifiedStart: bytes.little32(at: offset + 8),
            contentType: bytes.extent(at: offset + 12))
    }

    package func put(into writer: inout StructureWriter) {
        for start in [partialStart, multipartStart, notModifiedStart] { writer.put(start) }
        writer.put(contentType)
    }
}

/// The facts of an entry on their way from node to node: instants are lengths of time up to the
/// moment of sending, for the two ends have no clock in common.
package struct PeerEntryFacts: Hashable, Sendable {
    /// Length of the body in bytes; nil while it is being fetched and the origin has not said.
    package var size: UInt64?
    /// How old the answer is; negative if it was born later than it was sent.
    package var ageMilliseconds: Int64
    /// How long ago the request began that the origin last answered with it or with its validation;
    /// the greatest is longer ago than can be said.
    package var validatedMilliseconds: UInt32
    /// For how long it is fresh yet; negative if it was fresh until then.
    package var freshMilliseconds: Int64
    package var flags: EntryFlags
    package var staleWhileRevalidateSeconds: UInt32
    package var staleIfErrorSeconds: UInt32
    /// The reduced request for an image that the answer was selected by; nil if there is none.
    ///
    /// For nodes of earlier versions, which tell variants by it and not by Vary.
    package var selection: Negotiation?
    /// The origin's, not this node's.
    package var lastModified: WallTime?
    package var date: WallTime
    package var entityTag: Extent

    /// Size in bytes.
    static let bytesCount = 64

    private static let unknownSize = UInt64.max

    /// The facts that are sent at `now`; `size` is taken from here, for those have one always.
    ///
    /// Ages are rounded up and what is left is rounded down to milliseconds: nothing is younger or
    /// fresher on the other side.
    package init(_ facts: EntryMetadata, size: UInt64?, now: Instant) {
        self.size = size
        ageMilliseconds = -(facts.generatedAt - now).millisecondsDown
        let validated = -(facts.validatedAt - now).millisecondsDown
        validatedMilliseconds = validated < 0 ? .max : UInt32(clamping: validated)
        freshMilliseconds = (facts.freshUntil - now).millisecondsDown
        flags = facts.flags
        staleWhileRevalidateSeconds = facts.staleWhileRevalidateSeconds
        staleIfErrorSeconds = facts.staleIfErrorSeconds
        lastModified = facts.lastModified
        date = facts.date
        entityTag = facts.entityTag
    }

    /// The facts on the clock of who receives them at `now`, who counts the time on the way as none
    /// or gives an earlier instant; without a size, 0.
    ///
    /// `asked` is when the question was made: what was validated before the answer was sent is held
    /// for as old as if it had been sent then.
    package func entryFacts(at now: Instant, requestedAt: Instant) -> EntryMetadata {
        EntryMetadata(
            size: size ?? 0, bornAt: now - .milliseconds(ageMilliseconds),
            validatedAt: validatedMilliseconds == .max
                ? .distantPast : requestedAt - .milliseconds(Int64(validatedMilliseconds)),
            freshUntil: now + .milliseconds(freshMilliseconds), flags: flags,
            staleWhileRevalidateSeconds: staleWhileRevalidateSeconds,
            staleIfErrorSeconds: staleIfErrorSeconds, lastModified: lastModified, date: date,
            entityTag: entityTag)
    }

    /// The 64 bytes from `offset`.
    init(_ bytes: Span<UInt8>, at offset: Int) {
        let size = bytes.little64(at: offset)
        let modified = bytes.littleSigned64(at: offset + 24)
        self.size = size == Self.unknownSize ? nil : size
        ageMilliseconds = bytes.littleSigned64(at: offset + 8)
        freshMilliseconds = bytes.littleSigned64(at: offset + 16)
        lastModified = modified == PeerProtocol.unknownTime ? nil : WallTime(clamping: modified)
        date = WallTime(clamping: bytes.littleSigned64(at: offset + 32))
        staleWhileRevalidateSeconds = bytes.little32(at: offset + 40)
        staleIfErrorSeconds = bytes.little32(at: offset + 44)
        flags = EntryFlags(rawValue: bytes.little16(at: offset + 48))
        if bytes[offset + 50] != 0 { selection = Negotiation(rawValue: bytes[offset + 51]) }
        entityTag = bytes.extent(at: offset + 52)
        validatedMilliseconds = bytes.little32(at: offset + 60)
    }

    func put(into writer: inout StructureWriter) {
        writer.put(size ?? Self.unknownSize)
        writer.put(ageMilliseconds)
        writer.put(freshMilliseconds)
        writer.put(lastModified?.seconds ?? PeerProtocol.unknownTime)
        writer.put(date.seconds)
        writer.put(staleWhileRevalidateSeconds)
        writer.put(staleIfErrorSeconds)
        writer.put(flags.rawValue)
        // All that a request can be reduced to counts.
        writer.put(selection == nil ? 0 : Negotiation.all.rawValue)
        writer.put(selection?.rawValue ?? 0)
        writer.put(entityTag)
        writer.put(validatedMilliseconds)
    }
}

extension Interval {
    /// Whole milliseconds, rounded towards the past.
    fileprivate var millisecondsDown: Int64 {
        let (quotient, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
        return rest < 0 ? quotient - 1 : quotient
    }
}

extension StructureWriter {
    mutating func put(_ extent: Extent) {
        put(extent.start)
        put(extent.count)
    }
}
