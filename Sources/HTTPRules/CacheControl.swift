package import Ground

/// The directives of all Cache-Control lines of one message (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// Names are matched without regard to case; arguments may be tokens or quoted strings. Of two
/// arguments for one directive the first counts (RFC 9111 §4.2.1). An argument that is no number
/// counts as 0, so that the answer is stale rather than fresh for ever (RFC 9111 §4.2.1).
/// `no-cache` and `private` with a list of fields concern these fields only; a list that is empty
/// or broken counts as none, which is the stricter reading (RFC 9111 §5.2.2.4, §5.2.2.7). What is
/// not known has no effect and is kept apart (RFC 9111 §5.2.3).
package struct CacheControl: Hashable, Sendable {
    /// Directives without a number.
    package var flags: Flags = []
    /// `max-age`, of answers and requests.
    package var maxAge: Interval?
    /// `s-maxage` (RFC 9111 §5.2.2.10).
    package var sMaxAge: Interval?
    /// `stale-while-revalidate` (RFC 5861 §3).
    package var staleWhileRevalidate: Interval?
    /// `stale-if-error` (RFC 5861 §4).
    package var staleIfError: Interval?
    /// `max-stale` of a request; the greatest number if it came without one (RFC 9111 §5.2.1.2).
    package var maxStale: Interval?
    /// `min-fresh` of a request (RFC 9111 §5.2.1.3).
    package var minFresh: Interval?
    /// The fields of `private="…"`, which no shared cache stores (RFC 9111 §5.2.2.7).
    package var privateFields = FieldNames()
    /// The fields of `no-cache="…"`, which are not used again without asking the origin (RFC 9111
    /// §5.2.2.4).
    package var noCacheFields = FieldNames()
    /// The directives that are not known, in the order received; what follows no grammar is left
    /// out.
    package var unknown: [UnknownDirective] = []

    package init() {}

    /// A directive that Nuthatch has no rule for.
    package struct UnknownDirective: Hashable, Sendable {
        /// In lower case.
        package var name: [UInt8]
        /// Without quotes and escapes; nil if there is no `=`.
        package var argument: [UInt8]?

        package init(name: [UInt8], argument: [UInt8]?) {
            self.name = name
            self.argument = argument
        }
    }

    /// The directives that are there or not.
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        package static let noStore = Flags(rawValue: 1 << 0)
        package static let noCache = Flags(rawValue: 1 << 1)
        package static let isPrivate = Flags(rawValue: 1 << 2)
        package static let isPublic = Flags(rawValue: 1 << 3)
        package static let mustRevalidate = Flags(rawValue: 1 << 4)
        package static let proxyRevalidate = Flags(rawValue: 1 << 5)
        package static let mustUnderstand = Flags(rawValue: 1 << 6)
        package static let immutable = Flags(rawValue: 1 << 7)
        package static let noTransform = Flags(rawValue: 1 << 8)
        package static let onlyIfCached = Flags(rawValue: 1 << 9)
    }

    /// The directives of all Cache-Control lines of `head`.
    package init(_ head: ResponseHead) {
        self.init(lines: head.lines, in: head.bytes.span)
    }

    /// The directives of all Cache-Control lines among `lines`, whose extents lie in `bytes`.
    package init(lines: [FieldLine], in bytes: Span<UInt8>) {
        for line in lines where line.id == .cacheControl {
            add(bytes, at: line.value.range)
        }
    }

    /// The same with `no-cache` and `private` of single fields taken to be of the whole answer.
    package var ofWholeResponse: CacheControl {
        var control = self
        if !privateFields.isEmpty { control.flags.insert(.isPrivate) }
        if !noCacheFields.isEmpty { control.flags.insert(.noCache) }
        control.privateFields = FieldNames()
        control.noCacheFields = FieldNames()
        return control
    }
}
