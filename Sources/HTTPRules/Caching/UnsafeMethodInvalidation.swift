import Ground

/// Selects the stored responses that an unsafe request invalidates (RFC 9111 §4.4).
package enum UnsafeMethodInvalidation {
    /// Returns true if a response with `status` to a request with this method invalidates anything:
    /// the status is not an error, and the method is unsafe or unknown.
    package static func isRequired(_ method: MethodProperties, status: UInt16) -> Bool {
        !method.contains(.isSafe) && 200...399 ~= status
    }

    /// Returns the targets, path and query, to invalidate; all are of the request's own host.
    ///
    /// The first is `target` as written. Then follow, each once, the targets that Location and
    /// Content-Location name with the same scheme, host and port.
    ///
    /// - Parameters:
    ///   - isSecure: true if the scheme is https.
    ///   - authority: the request's host and, unless it is the scheme's default, port.
    ///   - target: the target of the request.
    ///   - response: the head of its response.
    /// - Returns: at least one target, `target` itself, and no target twice.
    package static func expanded(
        isSecure: Bool, authority: [UInt8], target: [UInt8], response: ResponseHead
    ) -> [[UInt8]] {
        let base = Base(isSecure: isSecure, authority: authority, target: target)
        var targets = [target]
        let bytes = response.bytes.span
        for line in response.lines {
            guard
                line.id == .location
                    || bytes.matchesIgnoringCase("content-location", at: line.name.range),
                let named = base.resolve(bytes.copy(line.value.range)), !targets.contains(named)
            else { continue }
            targets.append(named)
        }
        return targets
    }

    /// The base URI of relative references (RFC 3986 §5.1).
    private struct Base {
        var isSecure: Bool
        var authority: [UInt8]
        /// The path and query; without a path if the target is not in origin form (RFC 9112
        /// §3.2.1).
        var target: [UInt8]

        /// Returns the path and query that `reference` names, without its fragment; `nil` if it
        /// names another origin or is not an http URI.
        func resolve(_ reference: [UInt8]) -> [UInt8]? {
            guard !reference.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
            var rest = reference.prefix { $0 != UInt8(ascii: "#") }
            if RedirectTarget.hasScheme(reference) {
                let scheme = isSecure ? "https:" : "http:"
                let written = rest.prefix(scheme.utf8.count).map(ASCII.lowercased)
                guard written == Array(scheme.utf8) else { return nil }
                rest = rest.dropFirst(written.count)
                guard rest.starts(with: "//".utf8) else { return nil }
            }
            if rest.starts(with: "//".utf8) { return resolveAbsolute(rest.dropFirst(2)) }
            let path = target.prefix { $0 != UInt8(ascii: "?") }
            switch rest.first {
            case nil: return target
            case UInt8(ascii: "?"): return path + UnsafeMethodInvalidation.percentEncoded(rest)
            case UInt8(ascii: "/"): return UnsafeMethodInvalidation.normalisedTarget(rest)
            default:
                let slash = path.lastIndex(of: UInt8(ascii: "/"))
                let directory = slash.map { path[...$0] } ?? [UInt8(ascii: "/")]
                return UnsafeMethodInvalidation.normalisedTarget(directory + rest)
            }
        }

        /// Returns the path and query of a reference that begins with an authority; `nil` if that
        /// is another origin.
        private func resolveAbsolute(_ rest: ArraySlice<UInt8>) -> [UInt8]? {
            let other = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
            guard let own = origin(authority[...]), own == origin(other) else { return nil }
            let named = rest[other.endIndex...]
            let isRooted = named.first == UInt8(ascii: "/")
            return UnsafeMethodInvalidation.normalisedTarget(
                isRooted ? named : [UInt8(ascii: "/")] + named)
        }

        /// Returns the canonical URL of the root of `authority`; `nil` if it is malformed or has
        /// user info.
        private func origin(_ authority: ArraySlice<UInt8>) -> [UInt8]? {
            let url = Array(isSecure ? "https://".utf8 : "http://".utf8) + authority + "/".utf8
            var canonical: [UInt8] = []
            let made = CacheKey.normalise(url: url.span, at: 0..<url.count, into: &canonical)
            return made == .normalised ? canonical : nil
        }
    }

    /// Returns the path, which begins with a slash, without dot segments, and the query, spelt as
    /// in a request.
    private static func normalisedTarget(_ reference: ArraySlice<UInt8>) -> [UInt8] {
        let query = reference.firstIndex(of: UInt8(ascii: "?")) ?? reference.endIndex
        return percentEncoded(removingDotSegments(reference[..<query])[...])
            + percentEncoded(reference[query...])
    }

    /// Removes dot segments from a path that begins with a slash (RFC 3986 §5.2.4).
    private static func removingDotSegments(_ path: ArraySlice<UInt8>) -> [UInt8] {
        let segments = path.dropFirst().split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        var kept: [ArraySlice<UInt8>] = []
        for segment in segments.dropLast() {
            if segment.elementsEqual("..".utf8) {
                _ = kept.popLast()
            } else if !segment.elementsEqual(".".utf8) {
                kept.append(segment)
            }
        }
        var last = segments.last ?? []
        if last.elementsEqual("..".utf8) { _ = kept.popLast() }
        if last.elementsEqual("..".utf8) || last.elementsEqual(".".utf8) { last = [] }
        var plain: [UInt8] = []
        for segment in kept + [last] {
            plain.append(UInt8(ascii: "/"))
            plain += segment
        }
        return plain
    }

    /// Escapes bytes that are illegal in a URI and that clients escape when they follow a
    /// reference.
    private static func percentEncoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var escaped: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: " "), UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
                0x80...:
                URLNormaliser.appendEscape(byte, to: &escaped)
            default: escaped.append(byte)
            }
        }
        return escaped
    }
}

/// The properties of a method that matter to a cache (RFC 9110 §9.2, RFC 9111 §4).
package struct MethodProperties: OptionSet, Hashable, Sendable {
    /// The bits, one for each property.
    package let rawValue: UInt8

    /// Creates a set from its bits.
    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The method is read-only (RFC 9110 §9.2.1); an unknown method counts as unsafe (RFC 9111
    /// §4.4).
    package static let isSafe = MethodProperties(rawValue: 1 << 0)
    /// Repeating the request has the same effect as sending it once (RFC 9110 §9.2.2).
    package static let isIdempotent = MethodProperties(rawValue: 1 << 1)

    /// Looks up the properties of the method whose name is in `range`, compared case-sensitively.
    package init(_ bytes: Span<UInt8>, at range: Range<Int>) {
        if Self.safe.contains(where: { bytes.matches($0, at: range) }) {
            self = [.isSafe, .isIdempotent]
        } else if Self.idempotent.contains(where: { bytes.matches($0, at: range) }) {
            self = .isIdempotent
        } else {
            self = []
        }
    }

    /// The methods that the IANA registry lists as safe.
    private static let safe = [
        "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY",
    ]
    /// The idempotent methods of RFC 9110, and those of WebDAV (RFC 4918) that do not move or lock.
    private static let idempotent = ["PUT", "DELETE", "PROPPATCH", "MKCOL", "COPY", "UNLOCK"]
}
