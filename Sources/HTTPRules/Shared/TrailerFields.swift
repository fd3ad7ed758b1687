import Ground

/// Which trailer fields go on (RFC 9110 §6.5.1).
package enum TrailerFields {
    /// Those of `lines`, whose extents lie in `bytes`, that go on: each with its end.
    static func section(_ lines: [FieldLine], in bytes: Span<UInt8>) -> [UInt8] {
        var section: [UInt8] = []
        for line in lines where isForwarded(line, in: bytes) { section.appendLine(line, of: bytes) }
        return section
    }

    /// True for a field that says nothing which had to be known before the content: neither frames
    /// nor routes the message, modifies or authenticates the request, controls the answer, or says
    /// how the content is to be read; nor what the node alone says, which is X-Request-Id.
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
