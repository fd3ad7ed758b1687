package import Ground

/// Rewrites references of an origin to itself for the clients of its site (RFC 3986 §4.2, RFC 9110
/// §10.2.2).
///
/// A reference to the origin becomes an absolute path without the base path of the site's origin.
/// The client resolves it against the URL it requested, so that a stored response is right for any
/// host, port and scheme.
package struct OriginReferences: Hashable, Sendable {
    private struct Authority: Hashable {
        /// The host in lower case; an IPv6 address has its brackets.
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

    /// The origin's own authority and the one that the site sends as Host.
    private var authorities: [Authority]
    private let isSecure: Bool
    /// The base path; empty, or begins with a slash and does not end with one.
    private let basePath: [UInt8]

    /// Creates the rewriter of a site.
    ///
    /// - Parameters:
    ///   - origin: the base URL of the site's origin.
    ///   - host: the rule for the Host that the origin receives.
    package init(_ origin: BaseURL, host: SiteSettings.OriginHostRule) {
        isSecure = origin.isSecure
        basePath = Array(origin.path.utf8)
        var names = [origin.authority]
        if case .name(let name) = host { names.append(name) }
        authorities = names.compactMap { Authority(Array($0.utf8), isSecure: origin.isSecure) }
    }

    /// Returns the rewritten reference; `nil` if `reference` needs no change because it names
    /// something else or reveals nothing of the origin.
    ///
    /// The origin is identified by host and port; user information is ignored. A reference with
    /// another scheme than the origin's is rewritten only if that is the client's scheme: otherwise
    /// the origin wants requests by that scheme, and a rewritten redirect would loop.
    ///
    /// - Parameters:
    ///   - reference: the URI reference as the origin sent it.
    ///   - isSecure: true if the client's request came by TLS.
    /// - Returns: the reference without scheme, host and base path, with its query and fragment;
    ///   `nil` if it needs no change.
    func clientReference(_ reference: ArraySlice<UInt8>, isSecure: Bool) -> [UInt8]? {
        // Browsers remove such bytes, after which the rest may mean something else.
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

    /// Returns the reference relative to the base path; `nil` if it is outside.
    private func relativeToBase(_ rest: ArraySlice<UInt8>) -> [UInt8]? {
        let path = rest.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        guard path.starts(with: basePath) else { return nil }
        let below = path.dropFirst(basePath.count)
        guard below.isEmpty || below.first == UInt8(ascii: "/") else { return nil }
        if !basePath.isEmpty, TargetPath.escapesBase(Array(below)) { return nil }
        let end = rest[path.endIndex...]
        guard let second = below.dropFirst().first else { return [UInt8(ascii: "/")] + end }
        // Two slashes would begin an authority (RFC 3986 §4.2), and browsers treat `\` as a slash.
        let isDouble = second == UInt8(ascii: "/") || second == UInt8(ascii: "\\")
        return Array((isDouble ? "/." : "").utf8) + below + end
    }
}

extension ResponseHead {
    /// Returns the head for the site's clients, with references to the origin in Location,
    /// Content-Location and Refresh rewritten.
    ///
    /// - Parameters:
    ///   - references: the rewriter of the site.
    ///   - isSecure: true if the client's request came by TLS.
    /// - Returns: the head; unchanged if no field refers to the origin.
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

    /// Returns the range of the URI reference in a line; `nil` if it has none.
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

/// The field Refresh, which only HTML defines ("shared declarative refresh steps").
enum RefreshField {
    /// Returns the range of the URL in `5; url=URL`; `nil` if there is none.
    ///
    /// The semicolon may be a comma, and `url=` may be missing.
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
