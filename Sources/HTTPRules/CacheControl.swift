package import Ground

/// The directives of all Cache-Control lines of one message (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// Names are matched without regard to case, arguments may be tokens or quoted strings, unknown
/// directives are passed over. Of two arguments for one directive the first counts (RFC 9111
/// §4.2.1). An argument that is no number counts as 0, so that the answer is stale rather than
/// fresh for ever (RFC 9111 §4.2.1). `no-cache` and `private` with a list of fields are treated as
/// without one, which is the stricter reading (RFC 9111 §5.2.2.4, §5.2.2.7).
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

    package init() {}

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

    /// Adds the value of one field line.
    package mutating func add(_ value: Span<UInt8>) {
        add(value, at: 0..<value.count)
    }

    /// Adds the value of one field line, which lies in `range`.
    package mutating func add(_ bytes: Span<UInt8>, at range: Range<Int>) {
        var cursor = range.lowerBound
        while let element = FieldSyntax.nextElement(bytes, at: range, cursor: &cursor) {
            var nameEnd = element.lowerBound
            while nameEnd < element.upperBound, ByteSet.token.contains(bytes[nameEnd]) {
                nameEnd += 1
            }
            let name = element.lowerBound..<nameEnd
            let rest = nameEnd..<element.upperBound
            if let flag = Self.flag(bytes, named: name) {
                flags.insert(flag)
            } else {
                addNumber(bytes, named: name, rest: rest)
            }
        }
    }

    /// The directives of all Cache-Control lines of `head`.
    package init(_ head: AnswerHead) {
        self.init()
        for line in head.lines where line.id == .cacheControl {
            add(head.bytes.span, at: line.value.range)
        }
    }

    private static func flag(_ bytes: Span<UInt8>, named name: Range<Int>) -> Flags? {
        switch name.count {
        case 6: bytes.holdsIgnoringCase("public", at: name) ? .isPublic : nil
        case 7: bytes.holdsIgnoringCase("private", at: name) ? .isPrivate : nil
        case 8:
            bytes.holdsIgnoringCase("no-store", at: name)
                ? .noStore : bytes.holdsIgnoringCase("no-cache", at: name) ? .noCache : nil
        case 9: bytes.holdsIgnoringCase("immutable", at: name) ? .immutable : nil
        case 12: bytes.holdsIgnoringCase("no-transform", at: name) ? .noTransform : nil
        case 14: bytes.holdsIgnoringCase("only-if-cached", at: name) ? .onlyIfCached : nil
        case 15:
            bytes.holdsIgnoringCase("must-revalidate", at: name)
                ? .mustRevalidate
                : bytes.holdsIgnoringCase("must-understand", at: name) ? .mustUnderstand : nil
        case 16: bytes.holdsIgnoringCase("proxy-revalidate", at: name) ? .proxyRevalidate : nil
        default: nil
        }
    }

    private mutating func addNumber(
        _ bytes: Span<UInt8>, named name: Range<Int>, rest: Range<Int>
    ) {
        let number = Self.number(bytes, at: rest)
        switch name.count {
        case 7 where bytes.holdsIgnoringCase("max-age", at: name):
            Self.keepFirst(&maxAge, number)
        case 8 where bytes.holdsIgnoringCase("s-maxage", at: name):
            Self.keepFirst(&sMaxAge, number)
        case 9 where bytes.holdsIgnoringCase("max-stale", at: name):
            Self.keepFirst(&maxStale, rest.isEmpty ? .seconds(DeltaSeconds.max) : number)
        case 9 where bytes.holdsIgnoringCase("min-fresh", at: name):
            Self.keepFirst(&minFresh, number)
        case 14 where bytes.holdsIgnoringCase("stale-if-error", at: name):
            Self.keepFirst(&staleIfError, number)
        case 22 where bytes.holdsIgnoringCase("stale-while-revalidate", at: name):
            Self.keepFirst(&staleWhileRevalidate, number)
        default:
            break
        }
    }

    private static func keepFirst(_ slot: inout Interval?, _ number: Interval) {
        if slot == nil { slot = number }
    }

    /// The number after `=`, quoted or not; 0 if there is none.
    private static func number(_ bytes: Span<UInt8>, at rest: Range<Int>) -> Interval {
        guard let equals = rest.first, bytes[equals] == UInt8(ascii: "=") else { return .zero }
        var value = equals + 1..<rest.upperBound
        if value.count >= 2, bytes[value.lowerBound] == UInt8(ascii: "\""),
            bytes[value.upperBound - 1] == UInt8(ascii: "\"")
        {
            value = value.lowerBound + 1..<value.upperBound - 1
        }
        return DeltaSeconds.parse(bytes, at: value) ?? .zero
    }
}
