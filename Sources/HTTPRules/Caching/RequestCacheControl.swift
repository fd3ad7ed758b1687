package import Ground

/// What a request asks of the caches on its way (RFC 9111 §5.2.1, §5.4, RFC 5861 §4).
///
/// Pragma counts only where there is no Cache-Control (RFC 9111 §5.4). `no-cache` with a list of
/// fields, which no request has, counts as without.
package struct RequestCacheControl: Hashable, Sendable {
    /// Nothing is asked for, which is so of nearly every request.
    package private(set) var isEmpty: Bool
    /// `no-cache`: nothing stored is used without asking the origin (RFC 9111 §5.2.1.4).
    package let isNoCache: Bool
    /// `no-store`: nothing of the answer is stored (RFC 9111 §5.2.1.5).
    package let isNoStore: Bool
    /// `only-if-cached`: what cannot be answered from the store is a 504 (RFC 9111 §5.2.1.7).
    package let isOnlyIfCached: Bool
    /// `max-age`: the greatest age that is wanted (RFC 9111 §5.2.1.1).
    package let maxAge: Interval?
    /// `max-stale`: how long after its freshness an answer is wanted (RFC 9111 §5.2.1.2).
    package let maxStale: Interval?
    /// `min-fresh`: for how long an answer is to be fresh yet (RFC 9111 §5.2.1.3).
    package let minFresh: Interval?
    /// `stale-if-error`: how long after its freshness an answer may stand in for an error (RFC 5861
    /// §4).
    package let staleIfError: Interval?

    /// Of a request that asks for nothing.
    package static let none = RequestCacheControl(CacheControl())

    /// The wishes in the lines of a request, whose extents lie in `bytes`.
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
