package import Ground
import RawStructuredFieldValues

/// The directives of all Cache-Control lines of one message (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// Names are matched case-insensitively; arguments may be tokens or quoted strings. If a directive
/// comes twice, the first argument counts (RFC 9111 §4.2.1). An argument that is not a number
/// counts as 0, so that the response is stale rather than fresh for ever (RFC 9111 §4.2.1).
/// `no-cache` and `private` with a list of fields concern these fields only; an empty or malformed
/// list counts as none, which is the stricter reading (RFC 9111 §5.2.2.4, §5.2.2.7). Unknown
/// directives have no effect (RFC 9111 §5.2.3).
package struct CacheControl: Hashable, Sendable {
    /// The directives without a number.
    package var flags: Flags = []
    /// The `max-age` directive of a response or request (RFC 9111 §5.2.1.1, §5.2.2.1).
    package var maxAge: Interval?
    /// The `s-maxage` directive of a response (RFC 9111 §5.2.2.10).
    package var sMaxAge: Interval?
    /// The `stale-while-revalidate` directive of a response (RFC 5861 §3).
    package var staleWhileRevalidate: Interval?
    /// The `stale-if-error` directive of a response or request (RFC 5861 §4).
    package var staleIfError: Interval?
    /// The `max-stale` directive of a request; the greatest number if it has no argument (RFC 9111
    /// §5.2.1.2).
    package var maxStale: Interval?
    /// The `min-fresh` directive of a request (RFC 9111 §5.2.1.3).
    package var minFresh: Interval?
    /// The fields of `private="…"`, which a shared cache must not store (RFC 9111 §5.2.2.7).
    package var privateFields = FieldNames()
    /// The fields of `no-cache="…"`, which must not be reused without revalidation (RFC 9111
    /// §5.2.2.4).
    package var noCacheFields = FieldNames()
    /// Creates an empty set of directives.
    package init() {}

    /// The directives that are either present or absent.
    package struct Flags: OptionSet, Hashable, Sendable {
        /// The bits, one for each directive.
        package let rawValue: UInt16

        /// Creates a set from its bits.
        package init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        /// The `no-store` directive (RFC 9111 §5.2.1.5, §5.2.2.5).
        package static let noStore = Flags(rawValue: 1 << 0)
        /// The `no-cache` directive without a list of fields (RFC 9111 §5.2.1.4, §5.2.2.4).
        package static let noCache = Flags(rawValue: 1 << 1)
        /// The `private` directive without a list of fields (RFC 9111 §5.2.2.7).
        package static let isPrivate = Flags(rawValue: 1 << 2)
        /// The `public` directive (RFC 9111 §5.2.2.9).
        package static let isPublic = Flags(rawValue: 1 << 3)
        /// The `must-revalidate` directive (RFC 9111 §5.2.2.2).
        package static let mustRevalidate = Flags(rawValue: 1 << 4)
        /// The `proxy-revalidate` directive (RFC 9111 §5.2.2.8).
        package static let proxyRevalidate = Flags(rawValue: 1 << 5)
        /// The `must-understand` directive (RFC 9111 §5.2.2.3).
        package static let mustUnderstand = Flags(rawValue: 1 << 6)
        /// The `immutable` directive (RFC 8246 §2).
        package static let immutable = Flags(rawValue: 1 << 7)
        /// The `no-transform` directive (RFC 9111 §5.2.1.6, §5.2.2.6).
        package static let noTransform = Flags(rawValue: 1 << 8)
        /// The `only-if-cached` directive of a request (RFC 9111 §5.2.1.7).
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

    /// These directives with a qualified `no-cache` or `private` applied to the whole response.
    package var ofWholeResponse: CacheControl {
        var control = self
        if !privateFields.isEmpty { control.flags.insert(.isPrivate) }
        if !noCacheFields.isEmpty { control.flags.insert(.noCache) }
        control.privateFields = FieldNames()
        control.noCacheFields = FieldNames()
        return control
    }
}

extension CacheControl {
    /// Creates the directives of a targeted field (RFC 9213 §2.1).
    ///
    /// A value of the wrong type is not used. A directive that would permit storing or reuse then
    /// has no effect, a lifetime is 0 (RFC 9111 §4.2.1), and a restriction applies in full unless
    /// its value is false. Parameters are ignored.
    init(_ dictionary: OrderedMap<String, ItemOrInnerList>) {
        for (name, member) in dictionary {
            guard case .item(let item) = member else {
                add(name, nil)
                continue
            }
            add(name, item.rfc9651BareItem)
        }
    }

    /// Adds one directive; `value` is `nil` for an inner list, which is the wrong type for all.
    private mutating func add(_ name: String, _ value: RFC9651BareItem?) {
        switch name {
        case "max-age": maxAge = Self.seconds(value) ?? .zero
        case "s-maxage": sMaxAge = Self.seconds(value) ?? .zero
        case "stale-while-revalidate": staleWhileRevalidate = Self.seconds(value)
        case "stale-if-error": staleIfError = Self.seconds(value)
        case "no-store": restrict(.noStore, value)
        case "no-cache": restrict(.noCache, value, \.noCacheFields)
        case "private": restrict(.isPrivate, value, \.privateFields)
        case "must-revalidate": restrict(.mustRevalidate, value)
        case "proxy-revalidate": restrict(.proxyRevalidate, value)
        case "no-transform": restrict(.noTransform, value)
        case "public": permit(.isPublic, value)
        case "must-understand": permit(.mustUnderstand, value)
        case "immutable": permit(.immutable, value)
        default: break
        }
    }

    /// Inserts a restriction unless its value is false.
    private mutating func restrict(_ flag: Flags, _ value: RFC9651BareItem?) {
        if value != .bool(false) { flags.insert(flag) }
    }

    /// Stores the field names that `value` lists; if it is no list of names, inserts `flag` unless
    /// it is false.
    private mutating func restrict(
        _ flag: Flags, _ value: RFC9651BareItem?,
        _ names: WritableKeyPath<CacheControl, FieldNames>
    ) {
        guard case .string(let list)? = value, let fields = Self.fields(Array(list.utf8)) else {
            return restrict(flag, value)
        }
        self[keyPath: names] = fields
    }

    /// Inserts a permission only if its value is true.
    private mutating func permit(_ flag: Flags, _ value: RFC9651BareItem?) {
        if value == .bool(true) { flags.insert(flag) }
    }

    /// Returns a non-negative integer as seconds, at most ``DeltaSeconds/max``; `nil` for any other
    /// value.
    private static func seconds(_ value: RFC9651BareItem?) -> Interval? {
        guard case .integer(let number)? = value, number >= 0 else { return nil }
        return .seconds(min(number, DeltaSeconds.max))
    }
}
