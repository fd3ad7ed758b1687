import Ground

extension CacheControl {
    /// Adds the directives in the value of one Cache-Control line.
    package mutating func add(_ value: Span<UInt8>) {
        add(value, at: 0..<value.count)
    }

    /// Adds the directives in the value of one Cache-Control line.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that hold the value.
    ///   - range: the value's bytes, without the field name.
    package mutating func add(_ bytes: Span<UInt8>, at range: Range<Int>) {
        var cursor = range.lowerBound
        while let element = FieldSyntax.nextElement(bytes, at: range, cursor: &cursor) {
            var nameEnd = element.lowerBound
            while nameEnd < element.upperBound, ByteSet.token.contains(bytes[nameEnd]) {
                nameEnd += 1
            }
            let name = element.lowerBound..<nameEnd
            let rest = nameEnd..<element.upperBound
            switch Self.flag(bytes, named: name) {
            case .isPrivate?:
                if !Self.addFields(bytes, at: rest, to: &privateFields) { flags.insert(.isPrivate) }
            case .noCache?:
                if !Self.addFields(bytes, at: rest, to: &noCacheFields) { flags.insert(.noCache) }
            case let flag?: flags.insert(flag)
            case nil: addNumber(bytes, named: name, rest: rest)
            }
        }
    }

    private static func flag(_ bytes: Span<UInt8>, named name: Range<Int>) -> Flags? {
        switch name.count {
        case 6: bytes.matchesIgnoringCase("public", at: name) ? .isPublic : nil
        case 7: bytes.matchesIgnoringCase("private", at: name) ? .isPrivate : nil
        case 8:
            bytes.matchesIgnoringCase("no-store", at: name)
                ? .noStore : bytes.matchesIgnoringCase("no-cache", at: name) ? .noCache : nil
        case 9: bytes.matchesIgnoringCase("immutable", at: name) ? .immutable : nil
        case 12: bytes.matchesIgnoringCase("no-transform", at: name) ? .noTransform : nil
        case 14: bytes.matchesIgnoringCase("only-if-cached", at: name) ? .onlyIfCached : nil
        case 15:
            bytes.matchesIgnoringCase("must-revalidate", at: name)
                ? .mustRevalidate
                : bytes.matchesIgnoringCase("must-understand", at: name) ? .mustUnderstand : nil
        case 16: bytes.matchesIgnoringCase("proxy-revalidate", at: name) ? .proxyRevalidate : nil
        default: nil
        }
    }

    /// Stores the argument if `name` is a directive with a number; other names have no effect.
    private mutating func addNumber(
        _ bytes: Span<UInt8>, named name: Range<Int>, rest: Range<Int>
    ) {
        let number = Self.number(bytes, at: rest)
        switch name.count {
        case 7 where bytes.matchesIgnoringCase("max-age", at: name):
            Self.keepFirst(&maxAge, number)
        case 8 where bytes.matchesIgnoringCase("s-maxage", at: name):
            Self.keepFirst(&sMaxAge, number)
        case 9 where bytes.matchesIgnoringCase("max-stale", at: name):
            Self.keepFirst(&maxStale, rest.isEmpty ? .seconds(DeltaSeconds.max) : number)
        case 9 where bytes.matchesIgnoringCase("min-fresh", at: name):
            Self.keepFirst(&minFresh, number)
        case 14 where bytes.matchesIgnoringCase("stale-if-error", at: name):
            Self.keepFirst(&staleIfError, number)
        case 22 where bytes.matchesIgnoringCase("stale-while-revalidate", at: name):
            Self.keepFirst(&staleWhileRevalidate, number)
        default: break
        }
    }

    private static func keepFirst(_ slot: inout Interval?, _ number: Interval) {
        if slot == nil { slot = number }
    }

    /// Returns the number after `=`, quoted or not; 0 if it is missing or invalid (RFC 9111
    /// §4.2.1).
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

    /// Adds the field names after `=` to `names`; returns false if there are none or the list
    /// cannot be parsed.
    private static func addFields(
        _ bytes: Span<UInt8>, at rest: Range<Int>, to names: inout FieldNames
    ) -> Bool {
        guard let argument = argument(bytes, at: rest), let fields = fields(argument) else {
            return false
        }
        names.formUnion(fields)
        return true
    }

    /// The maximum number of field names in one list.
    ///
    /// A longer list counts as malformed: no honest origin sends one, and parsing it costs time.
    static let fieldsMax = 64

    /// Returns the field names of a list; `nil` if it is empty or holds anything else.
    static func fields(_ list: [UInt8]) -> FieldNames? {
        let bytes = list.span
        var names = FieldNames()
        var cursor = 0
        while let name = FieldSyntax.nextElement(bytes, at: 0..<bytes.count, cursor: &cursor) {
            guard FieldSyntax.isToken(bytes, at: name), names.count < fieldsMax else { return nil }
            names.insert(bytes, at: name)
        }
        return names.isEmpty ? nil : names
    }

    /// Returns the token or quoted string after `=`, without quotes and escapes (RFC 9110 §5.6.4);
    /// `nil` if there is neither.
    private static func argument(_ bytes: Span<UInt8>, at rest: Range<Int>) -> [UInt8]? {
        guard let equals = rest.first, bytes[equals] == UInt8(ascii: "=") else { return nil }
        var text: [UInt8] = []
        var index = equals + 1
        guard index < rest.upperBound, bytes[index] == UInt8(ascii: "\"") else {
            for index in index..<rest.upperBound {
                guard ByteSet.token.contains(bytes[index]) else { return nil }
                text.append(bytes[index])
            }
            return text.isEmpty ? nil : text
        }
        index += 1
        while index < rest.upperBound {
            if bytes[index] == UInt8(ascii: "\"") {
                return index + 1 == rest.upperBound ? text : nil
            }
            if bytes[index] == UInt8(ascii: "\\") { index += 1 }
            guard index < rest.upperBound else { return nil }
            text.append(bytes[index])
            index += 1
        }
        return nil
    }
}
