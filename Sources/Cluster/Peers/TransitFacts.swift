package import Ground

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
