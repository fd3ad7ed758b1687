package import Ground

/// The result of evaluating a request's preconditions against a stored response.
package enum PreconditionResult: Hashable, Sendable {
    /// The preconditions hold, or there are none.
    case proceed
    /// The client has the stored response: send 304.
    case notModified
    /// The stored response is not the one that the client requires: send 412.
    case failed
}

/// The preconditions of a GET or HEAD, added line by line and evaluated in the order of RFC 9110
/// §13.2.2.
///
/// A field counts as absent if its date cannot be parsed, or if a field that holds one date comes
/// twice (RFC 9110 §13.1.3, §13.1.4). So does If-Unmodified-Since if the stored response has no
/// Last-Modified.
package struct Preconditions: Hashable, Sendable {
    /// The state of one field: absent, or present with a condition that holds or fails.
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

    /// Creates an empty set of preconditions; `now` serves only to place years of two digits.
    package init(now: WallTime) {
        self.now = now
    }

    /// The fields that ``add(_:in:entityTag:metadata:)`` evaluates; a request without any of them
    /// always proceeds.
    package static var fields: FieldSet {
        var set = FieldSet()
        set.insert(.ifMatch)
        set.insert(.ifNoneMatch)
        set.insert(.ifModifiedSince)
        set.insert(.ifUnmodifiedSince)
        return set
    }

    /// Evaluates one line of the request; lines of other fields are ignored.
    ///
    /// - Parameters:
    ///   - line: the line; its extents lie in `bytes`.
    ///   - bytes: the bytes of the request's head.
    ///   - entityTag: the stored response's entity tag with quotes and `W/`, or empty.
    ///   - metadata: the stored response's metadata.
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
            // Date replaces a missing Last-Modified (RFC 9111 §4.3.2).
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

    /// The result of all lines added, in the order of RFC 9110 §13.2.2.
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

    /// Returns true if the value is `*`, or a list that holds the stored tag.
    private static func matchesStoredTag(
        _ entityTag: Span<UInt8>, in bytes: Span<UInt8>, at value: Range<Int>,
        by comparison: EntityTag.Comparison
    ) -> Bool {
        if value.count == 1, bytes[value.lowerBound] == UInt8(ascii: "*") { return true }
        guard let tag = EntityTag(entityTag, at: 0..<entityTag.count) else { return false }
        return EntityTag.list(
            bytes, at: value, contains: tag, in: entityTag, by: comparison)
    }

    /// Returns true if the If-Range in `range` holds, so that Range applies (RFC 9110 §13.1.5).
    ///
    /// A tag must match strongly. A date must equal Last-Modified, which must be a strong
    /// validator.
    ///
    /// - Parameters:
    ///   - bytes: the bytes of the request's head.
    ///   - range: the value of If-Range.
    ///   - entityTag: the stored response's entity tag with quotes and `W/`, or empty.
    ///   - metadata: the stored response's metadata.
    ///   - now: the current time; places years of two digits.
    /// - Returns: true if the condition holds; false also if the value is neither an entity tag nor
    ///   a date.
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
