import Ground

/// The handling of a request to switch the connection to another protocol (RFC 9110 §7.8).
package enum Upgrade: Hashable, Sendable {
    /// The request has no Upgrade, or one that does not affect the response: it is handled as any
    /// other.
    case none
    /// The request is forwarded with these protocols in Upgrade.
    case forwarded([UInt8])
    /// The request names only protocols that are not allowed here, without which it might have
    /// another meaning, or it names an allowed one but has a body.
    case refused

    /// Decides how the Upgrade of a request is handled.
    ///
    /// A request for another version of HTTP, or for TLS, is ignored (RFC 9113 §3.1, RFC 9110
    /// §7.8): its response is the same either way. Upgrade is also ignored without the matching
    /// option in Connection, and in HTTP/1.0.
    ///
    /// - Parameters:
    ///   - lines: the field lines of the request; their extents lie in `bytes`.
    ///   - bytes: the bytes of the request's head.
    ///   - isHTTP10: true if the request came in HTTP/1.0.
    ///   - hasBody: true if a body follows; nothing is forwarded then.
    ///   - allowed: the names of allowed protocols, in lower case and without versions.
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
            let name = Self.protocolName(bytes, at: element)
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

    /// Returns true if a site may forward this protocol, given in lower case: any but HTTP and TLS.
    package static func mayForward(_ name: String) -> Bool {
        switch name {
        case "http", "h2", "h2c", "tls": false
        default: true
        }
    }

    /// Returns true if the 101 `head` switches to a protocol that `requested` lists (RFC 9110
    /// §7.8).
    package static func isAcceptance(_ head: ResponseHead, requested: [UInt8]) -> Bool {
        let span = requested.span
        var names: [String] = []
        var cursor = 0
        while let element = FieldSyntax.nextElement(span, at: requested.indices, cursor: &cursor) {
            names.append(protocolName(span, at: element))
        }
        let bytes = head.bytes.span
        let switched = elements(.upgrade, head.lines, in: bytes).map { protocolName(bytes, at: $0) }
        return !switched.isEmpty && switched.allSatisfy(names.contains)
    }

    /// Returns the members of all lines with this name.
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

    /// Returns the name of a protocol without its version, in lower case.
    private static func protocolName(_ bytes: Span<UInt8>, at element: Range<Int>) -> String {
        let name = bytes.copy(element).prefix { $0 != UInt8(ascii: "/") }
        return String(decoding: name.map(ASCII.lowercased), as: UTF8.self)
    }
}
