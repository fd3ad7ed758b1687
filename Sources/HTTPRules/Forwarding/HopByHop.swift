import Ground

/// The fields of one message that are for the next hop only, neither stored nor forwarded (RFC 9110
/// §7.6.1, RFC 9111 §3.1).
///
/// These are the known hop-by-hop fields and those that the message's own Connection nominates.
/// Nominations of fields that determine the meaning, recipients or origin of the message are
/// ignored: Connection must not name fields meant for all recipients, and obeying it would let a
/// client remove what other parties added or rely on.
package struct HopByHop: Hashable, Sendable {
    private var nominated = FieldNames()

    /// Collects the nominated fields from the Connection lines among `lines`, whose extents lie in
    /// `bytes`.
    package init(_ lines: [FieldLine], in bytes: Span<UInt8>) {
        for line in lines where line.id == .connection {
            var cursor = line.value.range.lowerBound
            while let option = FieldSyntax.nextElement(
                bytes, at: line.value.range, cursor: &cursor)
            {
                // Only names of present fields are recorded: their number is bounded, that of
                // options is not.
                guard Self.isPresent(bytes, named: option, among: lines),
                    !Self.isEndToEnd(bytes, at: option)
                else { continue }
                nominated.insert(bytes, at: option)
            }
        }
    }

    /// Returns true if `line`, whose extents lie in `bytes`, is hop-by-hop.
    package func contains(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        Self.isHopByHop(bytes, at: line.name.range, id: line.id)
            || nominated.contains(bytes, at: line.name.range)
    }

    /// Returns true for the fields that are never forwarded, regardless of Connection.
    static func isHopByHop(_ bytes: Span<UInt8>, at name: Range<Int>, id: FieldName) -> Bool {
        switch id {
        case .connection, .keepAlive, .te, .trailer, .transferEncoding, .upgrade: return true
        case .other: break
        default: return false
        }
        switch name.count {
        case 14: return bytes.matchesIgnoringCase("http2-settings", at: name)
        case 16: return bytes.matchesIgnoringCase("proxy-connection", at: name)
        case 18: return bytes.matchesIgnoringCase("proxy-authenticate", at: name)
        case 19: return bytes.matchesIgnoringCase("proxy-authorization", at: name)
        case 25: return bytes.matchesIgnoringCase("proxy-authentication-info", at: name)
        default: return false
        }
    }

    private static func isPresent(
        _ bytes: Span<UInt8>, named option: Range<Int>, among lines: [FieldLine]
    ) -> Bool {
        lines.contains { line in
            bytes.matchesFieldName(at: line.name.range, of: bytes, at: option)
        }
    }

    /// Returns true for fields that Connection cannot nominate.
    private static func isEndToEnd(_ bytes: Span<UInt8>, at name: Range<Int>) -> Bool {
        switch FieldName(bytes, at: name) {
        case .host, .contentLength, .contentType, .contentEncoding, .contentRange, .cacheControl,
            .authorization, .cookie, .setCookie, .vary, .date, .age, .location, .via, .ifMatch,
            .ifUnmodifiedSince:
            return true
        case .other: break
        default: return false
        }
        switch name.count {
        case 8: return CDNLoop.isFieldName(bytes, at: name)
        case 9: return bytes.matchesIgnoringCase("forwarded", at: name)
        case 12: return bytes.matchesIgnoringCase("max-forwards", at: name)
        case 15: return bytes.matchesIgnoringCase("x-forwarded-for", at: name)
        case 16: return bytes.matchesIgnoringCase("x-forwarded-host", at: name)
        case 17:
            return bytes.matchesIgnoringCase("x-forwarded-proto", at: name)
                || bytes.matchesIgnoringCase("cdn-cache-control", at: name)
        case 22: return bytes.matchesIgnoringCase("nuthatch-cache-control", at: name)
        default: return false
        }
    }
}

/// Rules for forwarding trailer fields (RFC 9110 §6.5.1).
package enum TrailerFields {
    /// Returns the forwarded lines of a trailer section, each with its CRLF.
    static func section(_ lines: [FieldLine], in bytes: Span<UInt8>) -> [UInt8] {
        var section: [UInt8] = []
        for line in lines where isForwarded(line, in: bytes) { section.appendLine(line, of: bytes) }
        return section
    }

    /// Returns true if the field may be forwarded as a trailer field.
    ///
    /// Excluded are fields that must be known before the content: those that frame or route the
    /// message, modify or authenticate the request, control the response, or describe the content's
    /// encoding. X-Request-Id is excluded because only the node sets it.
    static func isForwarded(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        let name = line.name.range
        switch line.id {
        case .accept, .acceptEncoding, .age, .authorization, .cacheControl, .contentEncoding,
            .contentLength, .contentRange, .contentType, .cookie, .date, .expect, .expires, .host,
            .ifMatch, .ifModifiedSince, .ifNoneMatch, .ifRange, .ifUnmodifiedSince, .location,
            .pragma, .range, .setCookie, .vary, .xRequestID:
            return false
        case .other: return !isControl(bytes, at: name)
        default: return !HopByHop.isHopByHop(bytes, at: name, id: line.id)
        }
    }

    /// Returns true for a name without a ``FieldName`` that must not be a trailer field.
    private static func isControl(_ bytes: Span<UInt8>, at name: Range<Int>) -> Bool {
        if HopByHop.isHopByHop(bytes, at: name, id: .other) { return true }
        if ForwardedField(bytes, at: name) != nil { return true }
        switch name.count {
        case 7: return bytes.matchesIgnoringCase("warning", at: name)
        case 11: return bytes.matchesIgnoringCase("retry-after", at: name)
        case 12: return bytes.matchesIgnoringCase("max-forwards", at: name)
        case 16: return bytes.matchesIgnoringCase("www-authenticate", at: name)
        case 17: return bytes.matchesIgnoringCase("cdn-cache-control", at: name)
        case 22: return ResponseFieldRules.isNuthatchCacheControl(bytes, at: name)
        default: return false
        }
    }
}
