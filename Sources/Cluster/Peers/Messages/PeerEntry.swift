package import Ground

/// The description of an entry that a node holds, sent before its body; see "HELD" in
/// <doc:PeerProtocol>.
package struct PeerEntry: Hashable, Sendable {
    /// The status of the origin's response.
    package var status: UInt16
    /// The source of the body.
    package var source: Source
    /// The entry's metadata.
    package var facts: PeerEntryFacts
    /// The invalidation version of the holder's node when the request for the entry began.
    package var invalidationVersion: InvalidationVersion
    /// The rendered head.
    ///
    /// Empty in NOT_MODIFIED if the requester's own head remains valid; then the metadata has no
    /// entity tag.
    package var head: [UInt8]
    /// The offsets of the parts of ``head``; `nil` if the receiver is to find them.
    package var headOffsets: HeadOffsets?
    /// The entry's tags, at most ``PeerProtocol/tagsMax``.
    package var tags: [[UInt8]]
    /// The entry's key, present if the query had none; else empty.
    package var key: [UInt8]
    /// The digest of the settings of the entry's site, sent with ``key``; 0 for an image.
    package var policyDigest: UInt64 = 0
    /// The restrictions on the use of the response.
    package var terms = Terms()

    /// The restrictions on the use of a response, with the origin's error if it replaces one.
    package struct Terms: Hashable, Sendable {
        /// The restrictions.
        package var restrictions: Restrictions = []
        /// The status of the origin's error response that the entry replaces; `nil` if there was
        /// none.
        ///
        /// Meaningful only with ``Restrictions/isStaleIfError``.
        package var originErrorStatus: UInt16?

        /// Creates terms without restrictions.
        package init() {}
    }

    /// Restrictions on the use of a response; unknown ones are ignored.
    package struct Restrictions: OptionSet, Hashable, Sendable {
        /// The bits on the wire.
        package let rawValue: UInt8

        /// Creates restrictions from their bits.
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The response is for the client that caused the fetch; others need a revalidation.
        package static let isPrivate = Restrictions(rawValue: 1 << 0)
        /// The requester must not store the response.
        package static let isNoStore = Restrictions(rawValue: 1 << 1)
        /// Hit-for-miss: the next response for the entry is expected to be just as unshareable.
        package static let isHitForMiss = Restrictions(rawValue: 1 << 2)
        /// The response is stale, and served because the origin fails (RFC 5861 §4).
        package static let isStaleIfError = Restrictions(rawValue: 1 << 3)
        /// The response has fields for the client that caused the fetch alone (RFC 9111 §5.2.2.4,
        /// §5.2.2.7); without them it may be stored and served to others.
        package static let hasPrivateFields = Restrictions(rawValue: 1 << 4)
    }

    /// The source of a body; unknown ones are preserved.
    package struct Source: RawRepresentable, Hashable, Sendable {
        /// The number on the wire.
        package let rawValue: UInt8

        /// Creates a source, known or not.
        package init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The holder's memory.
        package static let memory = Source(rawValue: 1)
        /// The holder's disk.
        package static let disk = Source(rawValue: 2)
        /// The origin; the fetch is in progress.
        package static let fetch = Source(rawValue: 3)
    }

    /// Creates an entry without restrictions, from its parts.
    ///
    /// - Parameters:
    ///   - status: The status of the origin's response.
    ///   - source: The source of the body.
    ///   - facts: The entry's metadata.
    ///   - version: The invalidation version when the request for the entry began.
    ///   - head: The rendered head.
    ///   - headOffsets: The offsets of the parts of `head`, if known.
    ///   - tags: The entry's tags.
    ///   - key: The entry's key, if the query had none.
    package init(
        status: UInt16, source: Source, facts: PeerEntryFacts, version: InvalidationVersion,
        head: [UInt8],
        headOffsets: HeadOffsets? = nil, tags: [[UInt8]] = [], key: [UInt8] = []
    ) {
        self.status = status
        self.source = source
        self.facts = facts
        self.invalidationVersion = version
        self.head = head
        self.headOffsets = headOffsets
        self.tags = tags
        self.key = key
    }

    private enum Tag {
        static let head: UInt16 = 1
        static let tag: UInt16 = 2
        static let key: UInt16 = 3
        static let headOffsets: UInt16 = 4
        static let policy: UInt16 = 5
    }

    private static let fixedBytes = 88

    /// Returns the frame; `kind` is HELD or NOT_MODIFIED.
    ///
    /// - Throws: ``SendError/tooLong(_:)`` if head, tags and key do not fit, or if the entity tag
    ///   or ``headOffsets`` exceed the head.
    func frame(_ kind: PeerFrameKind, stream: UInt32) throws(SendError) -> [UInt8] {
        var facts = facts
        if head.isEmpty { facts.entityTag = .empty }
        // Offsets beyond the head come from a head that exceeds every frame.
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
        if let headOffsets { writer.putField(Tag.headOffsets, value: headOffsets) }
        if policyDigest != 0 { writer.putField(Tag.policy, value: policyDigest) }
        return try writer.frame(kind, stream: stream)
    }

    /// Decodes the payload of a HELD or a NOT_MODIFIED, according to `kind`.
    ///
    /// - Throws: The fault, if a part is truncated or too long, or if the entity tag or
    ///   ``headOffsets`` exceed the head.
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
            case Tag.headOffsets: headOffsets = try structure.fixedSizeValue(payload, field)
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

/// The offsets of the parts of a rendered head, in bytes from its beginning; each part extends to
/// the end.
package struct HeadOffsets: Hashable, Sendable {
    /// The start of the fields of a 206 with one range, and of a 416.
    package var partialStart: UInt32
    /// The start of the fields of a 206 with several ranges.
    package var multipartStart: UInt32
    /// The start of the fields of a 304.
    package var notModifiedStart: UInt32
    /// The value of Content-Type; empty if there is none.
    package var contentType: Extent

    /// Creates offsets from their parts.
    package init(
        partialStart: UInt32, multipartStart: UInt32, notModifiedStart: UInt32,
        contentType: Extent
    ) {
        self.partialStart = partialStart
        self.multipartStart = multipartStart
        self.notModifiedStart = notModifiedStart
        self.contentType = contentType
    }

    /// Returns true if all parts lie within a head of `bytesCount` bytes.
    func isWithin(in bytesCount: Int) -> Bool {
        let starts = [partialStart, multipartStart, notModifiedStart]
        return starts.allSatisfy { Int($0) <= bytesCount } && contentType.end <= bytesCount
    }
}

extension HeadOffsets: FixedSizeValue {
    /// The encoded size in bytes.
    package static let bytesCount = 20

    /// Decodes the offsets at `offset`.
    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(
            partialStart: bytes.little32(at: offset),
            multipartStart: bytes.little32(at: offset + 4),
            notModifiedStart: bytes.little32(at: offset + 8),
            contentType: bytes.extent(at: offset + 12))
    }

    /// Encodes the offsets.
    package func put(into writer: inout StructureWriter) {
        for start in [partialStart, multipartStart, notModifiedStart] { writer.put(start) }
        writer.put(contentType)
    }
}

/// The metadata of an entry in transfer between nodes.
///
/// Instants are replaced by durations relative to the moment of sending, since the two ends share
/// no clock.
package struct PeerEntryFacts: Hashable, Sendable {
    /// The length of the body in bytes; `nil` during a fetch for which the origin gave no length.
    package var size: UInt64?
    /// The age of the response; negative if it was generated after it was sent.
    package var ageMilliseconds: Int64
    /// The time since the start of the request that last fetched or validated the response; the
    /// maximum stands for anything longer.
    package var validatedMilliseconds: UInt32
    /// The remaining freshness lifetime; negative if it expired before.
    package var freshMilliseconds: Int64
    /// The entry's flags.
    package var flags: EntryFlags
    /// The stale-while-revalidate period in seconds.
    package var staleWhileRevalidateSeconds: UInt32
    /// The stale-if-error period in seconds.
    package var staleIfErrorSeconds: UInt32
    /// The reduced request for an image that selected the response; `nil` if there is none.
    ///
    /// For nodes of earlier versions, which distinguish variants by it instead of by Vary.
    package var selection: Negotiation?
    /// The origin's Last-Modified, not one of this node.
    package var lastModified: WallTime?
    /// The value of Date.
    package var date: WallTime
    /// The position of the entity tag in the head.
    package var entityTag: Extent

    /// The encoded size in bytes.
    static let bytesCount = 64

    private static let unknownSize = UInt64.max

    /// Creates the metadata to send at `now`; `size` is passed separately, as `facts` always has
    /// one.
    ///
    /// Ages are rounded up and remaining times down to milliseconds, so the entry never appears
    /// younger or fresher to the receiver.
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

    /// Returns the metadata on the clock of a receiver at `now`; a missing size becomes 0.
    ///
    /// The receiver ignores the transfer time or passes an earlier instant. `requestedAt` is when
    /// the query was made: the time of validation is computed as if the response had been sent
    /// then.
    package func entryFacts(at now: Instant, requestedAt: Instant) -> EntryMetadata {
        EntryMetadata(
            size: size ?? 0, generatedAt: now - .milliseconds(ageMilliseconds),
            validatedAt: validatedMilliseconds == .max
                ? .distantPast : requestedAt - .milliseconds(Int64(validatedMilliseconds)),
            freshUntil: now + .milliseconds(freshMilliseconds), flags: flags,
            staleWhileRevalidateSeconds: staleWhileRevalidateSeconds,
            staleIfErrorSeconds: staleIfErrorSeconds, lastModified: lastModified, date: date,
            entityTag: entityTag)
    }

    /// Decodes the metadata in the 64 bytes at `offset`.
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

    /// Encodes the metadata in 64 bytes.
    func put(into writer: inout StructureWriter) {
        writer.put(size ?? Self.unknownSize)
        writer.put(ageMilliseconds)
        writer.put(freshMilliseconds)
        writer.put(lastModified?.seconds ?? PeerProtocol.unknownTime)
        writer.put(date.seconds)
        writer.put(staleWhileRevalidateSeconds)
        writer.put(staleIfErrorSeconds)
        writer.put(flags.rawValue)
        // All dimensions of a reduced request count.
        writer.put(selection == nil ? 0 : Negotiation.all.rawValue)
        writer.put(selection?.rawValue ?? 0)
        writer.put(entityTag)
        writer.put(validatedMilliseconds)
    }
}

extension Interval {
    /// The whole milliseconds, rounded towards the past.
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
