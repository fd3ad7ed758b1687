package import Ground

/// What a request's preconditions say about a stored answer.
package enum PreconditionResult: Hashable, Sendable {
    /// They hold, or there are none.
    case proceed
    /// The client has what is stored: 304.
    case notModified
    /// The client wants something else than what is stored: 412.
    case failed
}

/// The preconditions of a GET or HEAD, gathered line by line and evaluated in the order of RFC 9110
/// §13.2.2.
///
/// A date that cannot be read, and a second line of a field that holds one date, make that field
/// count as absent (RFC 9110 §13.1.3, §13.1.4).
package struct Preconditions: Hashable, Sendable {
    /// A field is not there; or it is, and its condition is true or false.
    private enum Condition: Hashable, Sendable {
        case absent
        case holds
        case fails
    }

    private let now: WallTime
    private var ifMatch = Condition.absent
    private var ifNoneMatch = Condition.absent
    private var ifModifiedSince = Condition.absent
    private var ifUnmodifiedSince = Condition.absent
    private var modifiedSinceLines = 0
    private var unmodifiedSinceLines = 0

    /// `now` serves only to place years of two digits.
    package init(now: WallTime) {
        self.now = now
    }

    /// The fields that ``add(_:in:entityTag:facts:)`` looks at; a request without any of them
    /// always proceeds.
    package static var fields: FieldSet {
        var set = FieldSet()
        set.insert(.ifMatch)
        set.insert(.ifNoneMatch)
        set.insert(.ifModifiedSince)
        set.insert(.ifUnmodifiedSince)
        return set
    }

    /// Takes note of one line of the request; lines of other fields are passed over.
    ///
    /// `entityTag` holds the stored answer's tag with quotes and `W/`, or nothing.
    package mutating func add(
        _ line: FieldLine, in bytes: Span<UInt8>, entityTag: Span<UInt8>, metadata: EntryMetadata
    ) {
        let value = line.value.range
        switch line.id {
        case .ifMatch:
            if ifMatch == .holds { return }
            let found = Self.matchesStoredTag(entityTag, in: bytes, at: value, by: .strong)
            ifMatch = found ? .holds : .fails
        case .ifNoneMatch:
            if ifNoneMatch == .fails { return }
            let found = Self.matchesStoredTag(entityTag, in: bytes, at: value, by: .weak)
            ifNoneMatch = found ? .fails : .holds
        case .ifModifiedSince:
            modifiedSinceLines += 1
            guard let date = HTTPDate.parse(bytes, at: value, now: now) else { return }
            // Date stands in for a Last-Modified that is not there (RFC 9111 §4.3.2).
            ifModifiedSince = (metadata.lastModified ?? metadata.date) <= date ? .fails : .holds
        case .ifUnmodifiedSince:
            unmodifiedSinceLines += 1
            guard let date = HTTPDate.parse(bytes, at: value, now: now),
                let lastModified = metadata.lastModified
            else { return }
            ifUnmodifiedSince = lastModified <= date ? .holds : .fails
        default:
            break
        }
    }

    /// The answer to all lines added, in the order of RFC 9110 §13.2.2.
    package var result: PreconditionResult {
        if ifMatch == .fails { return .failed }
        if ifMatch == .absent, ifUnmodifiedSince == .fails, unmodifiedSinceLines == 1 {
            return .failed
        }
        if ifNoneMatch == .fails { return .notModified }
        if ifNoneMatch == .absent, ifModifiedSince == .fails, modifiedSinceLines == 1 {
            return .notModified
        }
        return .proceed
    }

    /// True if the value is `*`, or a list that holds the stored tag.
    private static func matchesStoredTag(
        _ entityTag: Span<UInt8>, in bytes: Span<UInt8>, at value: Range<Int>,
        by comparison: EntityTag.Comparison
    ) -> Bool {
        if value.count == 1, bytes[value.lowerBound] == UInt8(ascii: "*") { return true }
        guard let tag = EntityTag(entityTag, at: 0..<entityTag.count) else { return false }
        return EntityTag.list(
            bytes, at: value, contains: tag, in: entityTag, by: comparison)
    }

    /// True if the If-Range in `range` holds, so that Range counts (RFC 9110 §13.1.5).
    ///
    /// A tag must match strongly; a date must be exactly the Last-Modified, and that a strong
    /// validator.
    package static func ifRangeHolds(
        _ bytes: Span<UInt8>, at range: Range<Int>, entityTag: Span<UInt8>, metadata: EntryMetadata,
        now: WallTime
    ) -> Bool {
        if let wanted = EntityTag(bytes, at: range) {
            guard let tag = EntityTag(entityTag, at: 0..<entityTag.count) else { return false }
            return wanted.matches(in: bytes, tag, in: entityTag, by: .strong)
        }
        guard metadata.flags.contains(.strongDate), let lastModified = metadata.lastModified else {
            return false
        }
        return HTTPDate.parse(bytes, at: range, now: now) == lastModified
    }
}
