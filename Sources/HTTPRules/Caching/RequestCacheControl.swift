package import Ground

/// The cache directives of a request (RFC 9111 §5.2.1, §5.4, RFC 5861 §4).
///
/// Pragma counts only without Cache-Control (RFC 9111 §5.4). A `no-cache` with a list of fields,
/// which requests do not define, counts as one without.
package struct RequestCacheControl: Hashable, Sendable {
    /// True if the request has none of the following directives, like nearly every request.
    package private(set) var isEmpty: Bool
    /// True for `no-cache`: a stored response requires validation (RFC 9111 §5.2.1.4).
    package let isNoCache: Bool
    /// True for `no-store`: no part of the response is stored (RFC 9111 §5.2.1.5).
    package let isNoStore: Bool
    /// True for `only-if-cached`: a request that the store cannot satisfy receives 504 (RFC 9111
    /// §5.2.1.7).
    package let isOnlyIfCached: Bool
    /// The `max-age` directive: the maximum age of an acceptable response (RFC 9111 §5.2.1.1).
    package let maxAge: Interval?
    /// The `max-stale` directive: how long past its lifetime a response is acceptable (RFC 9111
    /// §5.2.1.2).
    package let maxStale: Interval?
    /// The `min-fresh` directive: how long an acceptable response must remain fresh (RFC 9111
    /// §5.2.1.3).
    package let minFresh: Interval?
    /// The `stale-if-error` directive: how long past its lifetime a response may replace an error
    /// (RFC 5861 §4).
    package let staleIfError: Interval?

    /// The directives of a request that has none.
    package static let none = RequestCacheControl(CacheControl())

    /// Collects the directives of a request.
    ///
    /// - Parameters:
    ///   - lines: the field lines; their extents lie in `bytes`.
    ///   - bytes: the bytes of the request's head.
    package init(lines: [FieldLine], in bytes: Span<UInt8>) {
        var control = CacheControl()
        var hasControl = false
        var isPragma = false
        for line in lines {
            switch line.id {
            case .cacheControl:
                hasControl = true
                control.add(bytes, at: line.value.range)
            case .pragma:
                isPragma = isPragma || Self.holdsNoCache(bytes, at: line.value.range)
            default: break
            }
        }
        if isPragma && !hasControl { control.flags.insert(.noCache) }
        self.init(control)
    }

    private init(_ control: CacheControl) {
        isNoCache = control.flags.contains(.noCache) || !control.noCacheFields.isEmpty
        isNoStore = control.flags.contains(.noStore)
        isOnlyIfCached = control.flags.contains(.onlyIfCached)
        maxAge = control.maxAge
        maxStale = control.maxStale
        minFresh = control.minFresh
        staleIfError = control.staleIfError
        let isFlagged = isNoCache || isNoStore || isOnlyIfCached
        let isNumbered = maxAge != nil || maxStale != nil || minFresh != nil
        isEmpty = !isFlagged && !isNumbered && staleIfError == nil
    }

    private static func holdsNoCache(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        var cursor = range.lowerBound
        while let element = FieldSyntax.nextElement(bytes, at: range, cursor: &cursor) {
            if bytes.matchesIgnoringCase("no-cache", at: element) { return true }
        }
        return false
    }
}
