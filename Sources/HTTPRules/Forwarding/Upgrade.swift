import Ground

/// What becomes of a request that would have its connection speak another protocol (RFC 9110 §7.8).
package enum Upgrade: Hashable, Sendable {
    /// It asks for nothing of the kind, or for what no answer depends on: it is a request like any
    /// other.
    case none
    /// The origin is asked to switch to one of these, as Upgrade lists them.
    case forwarded([UInt8])
    /// It asks for what is not allowed here, and might mean something else without.
    case refused

    /// What becomes of the request with these lines, whose extents lie in `bytes`.
    ///
    /// A request for another version of HTTP, or for TLS, is ignored (RFC 9113 §3.1, RFC 9110
    /// §7.8): its answer is the same either way. So is Upgrade without the option of Connection
    /// that belongs to it, and in HTTP/1.0.
    ///
    /// - Parameters:
    ///   - lines: those of the request.
    ///   - bytes: what the extents of `lines` lie in.
    ///   - isHTTP10: the request came in HTTP/1.0.
    ///   - hasBody: a body follows; nothing is forwarded then.
    ///   - allowed: names of protocols, in lower case and without versions.
    package init(
        _ lines: [FieldLine], in bytes: Span<UInt8>, isHTTP10: Bool = false, hasBody: Bool = false,
        allowed: [String]
    ) {
        let isAsked = Self.elements(.connection, lines, in: bytes).contains {
            bytes.matchesIgnoringCase("upgrade", at: $0)
        }
        guard isAsked, !isHTTP10 else {
            self = .none
            return
        }
        var forwarded: [UInt8] = []
        var isRefused = false
        for element in Self.elements(.upgrade, lines, in: bytes) {
            let name = Self.contains(bytes, at: element)
            if allowed.contains(name) {
                if !forwarded.isEmpty { forwarded += ", ".utf8 }
                forwarded += bytes.copy(element)
            } else if Self.mayForward(name) {
                isRefused = true
            }
        }
        if forwarded.isEmpty {
            self = isRefused ? .refused : .none
        } else {
            self = hasBody ? .refused : .forwarded(forwarded)
        }
    }

    /// True for the name of a protocol, in lower case, that a site may forward: another than HTTP
    /// and what carries that.
    package static func mayForward(_ name: String) -> Bool {
        switch name {
        case "http", "h2", "h2c", "tls": false
        default: true
        }
    }

    /// True if the 101 `head` switches to what was asked for, which `asked` lists (RFC 9110 §7.8).
    package static func isAcceptance(_ head: ResponseHead, requested: [UInt8]) -> Bool {
        let span = requested.span
        var names: [String] = []
        var cursor = 0
        while let element = FieldSyntax.nextElement(span, at: requested.indices, cursor: &cursor) {
            names.append(contains(span, at: element))
        }
        let bytes = head.bytes.span
        let switched = elements(.upgrade, head.lines, in: bytes).map { contains(bytes, at: $0) }
        return !switched.isEmpty && switched.allSatisfy(names.contains)
    }

    private static func elements(
        _ name: FieldName, _ lines: [FieldLine], in bytes: Span<UInt8>
    ) -> [Range<Int>] {
        var elements: [Range<Int>] = []
        for line in lines where line.id == name {
            var cursor = line.value.range.lowerBound
            while let element = FieldSyntax.nextElement(
                bytes, at: line.value.range, cursor: &cursor)
            {
                elements.append(element)
            }
        }
        return elements
    }

    /// The name of a protocol without its version, in lower case.
    private static func contains(_ bytes: Span<UInt8>, at element: Range<Int>) -> String {
        let name = bytes.copy(element).prefix { $0 != UInt8(ascii: "/") }
        return String(decoding: name.map(ASCII.lowercased), as: UTF8.self)
    }
}
