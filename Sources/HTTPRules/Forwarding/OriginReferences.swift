package import Ground

/// How an origin refers to itself in its answers, and what such references are for the clients of
/// its site (RFC 3986 §4.2, RFC 9110 §10.2.2).
///
/// A reference to the origin becomes an absolute path without the path of the site's origin. The
/// client resolves it against the URL that it asked for, so that what is stored is right by
/// whichever host, port and scheme it is read.
package struct OriginReferences: Hashable, Sendable {
    private struct Authority: Hashable {
        /// In lower case, an IPv6 address with its brackets.
        var host: [UInt8]
        var port: UInt16

        init?(_ text: [UInt8], isSecure: Bool) {
            let bytes = text.span
            guard let parts = SiteAuthority(bytes, at: 0..<text.count, isSecure: isSecure),
                !parts.host.isEmpty
            else { return nil }
            host = text[parts.host].map(ASCII.lowercased)
            port = parts.port
        }
    }

    /// That of the origin, and that by which the site asks it.
    private var authorities: [Authority]
    private let isSecure: Bool
    /// Empty, or begins with a slash and ends with none.
    private let basePath: [UInt8]

    package init(_ origin: BaseURL, host: SiteSettings.OriginHostRule) {
        isSecure = origin.isSecure
        basePath = Array(origin.path.utf8)
        var names = [origin.authority]
        if case .name(let name) = host { names.append(name) }
        authorities = names.compactMap { Authority(Array($0.utf8), isSecure: origin.isSecure) }
    }

    /// The reference for a client whose request came by TLS if `isSecure`; nil if `reference` is
    /// right as it is: it names something else, or no more than its client knows.
    ///
    /// An origin is known by host and port, user information left out. Of another scheme it is
    /// itself only if that is the client's: otherwise it wants to be asked by that scheme, and who
    /// was led back would come again.
    func clientReference(_ reference: ArraySlice<UInt8>, isSecure: Bool) -> [UInt8]? {
        // Browsers leave such bytes out, after which the rest may mean something else.
        guard !reference.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        var rest = reference
        var scheme = self.isSecure
        if RedirectTarget.hasScheme(Array(reference)) {
            switch String(decoding: reference.prefix { $0 != 0x3A }, as: UTF8.self).lowercased() {
            case "http": scheme = false
            case "https": scheme = true
            default: return nil
            }
            guard scheme == self.isSecure || scheme == isSecure else { return nil }
            rest = rest.drop { $0 != 0x3A }.dropFirst()
            guard rest.starts(with: "//".utf8) else { return nil }
        }
        if rest.starts(with: "//".utf8) {
            let authority = rest.dropFirst(2).prefix { !"/?#".utf8.contains($0) }
            guard isOwnAuthority(authority, isSecure: scheme) else { return nil }
            rest = rest[authority.endIndex...]
        } else if basePath.isEmpty || rest.first != UInt8(ascii: "/") {
            return nil
        }
        return relativeToBase(rest)
    }

    private func isOwnAuthority(_ authority: ArraySlice<UInt8>, isSecure: Bool) -> Bool {
        let host = authority.lastIndex(of: UInt8(ascii: "@")).map { authority[($0 + 1)...] }
        guard let named = Authority(Array(host ?? authority), isSecure: isSecure) else {
            return false
        }
        return authorities.contains(named)
    }

    /// The reference behind the base path; nil if it lies elsewhere.
    private func relativeToBase(_ rest: ArraySlice<UInt8>) -> [UInt8]? {
        let path = rest.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        guard path.starts(with: basePath) else { return nil }
        let below = path.dropFirst(basePath.count)
        guard below.isEmpty || below.first == UInt8(ascii: "/") else { return nil }
        if !basePath.isEmpty, TargetPath.escapesBase(Array(below)) { return nil }
        let end = rest[path.endIndex...]
        guard let second = below.dropFirst().first else { return [UInt8(ascii: "/")] + end }
        // Two slashes would begin an authority (RFC 3986 §4.2), and browsers take `\` for one.
        let isDouble = second == UInt8(ascii: "/") || second == UInt8(ascii: "\\")
        return Array((isDouble ? "/." : "").utf8) + below + end
    }
}

extension ResponseHead {
    /// The head as clients of the site get it: Location, Content-Location and Refresh say of the
    /// origin what `references` make of it.
    package func rewritingReferences(_ references: OriginReferences, isSecure: Bool) -> ResponseHead
    {
        var head = self
        for (index, line) in lines.enumerated() {
            guard let place = referenceRange(of: line),
                let path = references.clientReference(bytes[place], isSecure: isSecure)
            else { continue }
            let value =
                bytes[line.value.range.lowerBound..<place.lowerBound] + path
                + bytes[place.upperBound..<line.value.range.upperBound]
            head.lines[index].value = Extent(start: head.bytes.count, count: value.count)
            head.bytes += value
        }
        return head
    }

    /// Where the URI reference of a line lies, if it has one.
    private func referenceRange(of line: FieldLine) -> Range<Int>? {
        let span = bytes.span
        if line.id == .location { return line.value.range }
        guard line.id == .other else { return nil }
        if span.matchesIgnoringCase("content-location", at: line.name.range) {
            return line.value.range
        }
        guard span.matchesIgnoringCase("refresh", at: line.name.range) else { return nil }
        return RefreshField.url(span, at: line.value.range)
    }
}

/// The field Refresh, which HTML alone describes ("shared declarative refresh steps").
enum RefreshField {
    /// Where the URL lies in `5; url=URL`, whose semicolon may be a comma and whose `url=` may be
    /// missing; nil if there is none.
    static func url(_ bytes: Span<UInt8>, at value: Range<Int>) -> Range<Int>? {
        var rest = FieldSyntax.trimmed(bytes, at: value)
        let start = rest.lowerBound
        rest = skip(bytes, rest) { ASCII.isDigit($0) || $0 == UInt8(ascii: ".") }
        guard rest.lowerBound > start else { return nil }
        let time = rest.lowerBound
        rest = FieldSyntax.trimmed(bytes, at: rest)
        if let mark = rest.first, bytes[mark] == UInt8(ascii: ";") || bytes[mark] == 0x2C {
            rest = FieldSyntax.trimmed(bytes, at: mark + 1..<rest.upperBound)
        }
        guard rest.lowerBound > time, !rest.isEmpty else { return nil }
        let word = rest.prefix(3)
        if bytes.matchesIgnoringCase("url", at: word) {
            let behind = FieldSyntax.trimmed(bytes, at: word.upperBound..<rest.upperBound)
            if let mark = behind.first, bytes[mark] == UInt8(ascii: "=") {
                rest = FieldSyntax.trimmed(bytes, at: mark + 1..<rest.upperBound)
            }
        }
        guard let first = rest.first else { return nil }
        let quote = bytes[first]
        guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return rest }
        let quoted = first + 1..<rest.upperBound
        return quoted.lowerBound..<skip(bytes, quoted) { $0 != quote }.lowerBound
    }

    private static func skip(
        _ bytes: Span<UInt8>, _ range: Range<Int>, while isPassed: (UInt8) -> Bool
    ) -> Range<Int> {
        var start = range.lowerBound
        while start < range.upperBound, isPassed(bytes[start]) { start += 1 }
        return start..<range.upperBound
    }
}
