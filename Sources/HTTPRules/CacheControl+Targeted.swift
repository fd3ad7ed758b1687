import Ground

extension CacheControl {
    /// The directives of a field that is aimed at this cache (RFC 9213 §2.1).
    ///
    /// A value of the wrong type is not used. So what would let an answer be stored or kept is
    /// without effect; a lifetime is 0 (RFC 9111 §4.2.1); and what restricts its use holds in
    /// full, unless it is plainly false. Parameters mean nothing.
    init(_ dictionary: StructuredDictionary) {
        for entry in dictionary.entries { add(entry.key, entry.member.bareItem) }
    }

    private mutating func add(_ name: [UInt8], _ value: StructuredBareItem?) {
        switch String(decoding: name, as: UTF8.self) {
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
        default: unknown.append(UnknownDirective(name: name, argument: Self.text(value)))
        }
    }

    private mutating func restrict(_ flag: Flags, _ value: StructuredBareItem?) {
        if value != .boolean(false) { flags.insert(flag) }
    }

    private mutating func restrict(
        _ flag: Flags, _ value: StructuredBareItem?,
        _ names: WritableKeyPath<CacheControl, FieldNames>
    ) {
        guard case .string(let list)? = value, let fields = Self.fields(list) else {
            return restrict(flag, value)
        }
        self[keyPath: names] = fields
    }

    private mutating func permit(_ flag: Flags, _ value: StructuredBareItem?) {
        if value == .boolean(true) { flags.insert(flag) }
    }

    private static func seconds(_ value: StructuredBareItem?) -> Interval? {
        guard case .integer(let number)? = value, number >= 0 else { return nil }
        return .seconds(min(number, DeltaSeconds.max))
    }

    private static func text(_ value: StructuredBareItem?) -> [UInt8]? {
        switch value {
        case nil, .boolean(true)?: return nil
        case .string(let text)?, .token(let text)?: return text
        case let other?:
            var text: [UInt8] = []
            other.append(to: &text)
            return text
        }
    }
}
