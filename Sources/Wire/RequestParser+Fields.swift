import Ground
import HTTPRules

extension RequestParser {
    /// Acts on a field that says how the message is framed, routed or answered.
    @inline(never)
    mutating func recordField(_ bytes: Span<UInt8>, _ line: FieldLineLocation) -> RequestParseError?
    {
        switch line.id {
        case .host: return recordHost(bytes, line)
        case .connection:
            framingFields.recordConnectionOptions(bytes, at: line.value)
            return nil
        case .contentLength:
            guard framingFields.contentLength == nil else { return .repeatedContentLength }
            guard let length = bytes.decimal(at: line.value) else {
                return .invalidContentLength
            }
            framingFields.contentLength = length
            return nil
        case .transferEncoding:
            framingFields.codings.record(bytes, at: line.value)
            return nil
        case .expect:
            guard bytes.matchesIgnoringCase("100-continue", at: line.value) else {
                return .unknownExpectation
            }
            framingFields.expectsContinue = true
            return nil
        default: return nil
        }
    }

    private mutating func recordHost(_ bytes: Span<UInt8>, _ line: FieldLineLocation)
        -> RequestParseError?
    {
        guard !framingFields.hasHost else { return .repeatedHost }
        framingFields.hasHost = true
        guard Authority.isValid(bytes, at: line.value) else { return .invalidHost }
        if form == .origin || form == .asterisk { host = line.valueExtent }
        return nil
    }

    /// Draws the conclusions once all fields are known.
    @inline(__always)
    mutating func finishHead(_ bytes: Span<UInt8>) -> RequestParseError? {
        guard framingFields.hasHost || isHTTP10 else { return .missingHost }
        isPersistent = framingFields.isPersistent(isHTTP10: isHTTP10)
        expectsContinue = framingFields.expectsContinue && !isHTTP10
        framing = .none
        if fields.contains(.transferEncoding) { return applyTransferCodings() }
        if let length = framingFields.contentLength { framing = .length(length) }
        return nil
    }

    private mutating func applyTransferCodings() -> RequestParseError? {
        if isHTTP10 { return .codingInHTTP10 }
        if framingFields.contentLength != nil { return .lengthAndCoding }
        if framingFields.codings.isMalformed { return .malformedTransferEncoding }
        guard framingFields.codings.isChunkedOnly else { return .unknownTransferCoding }
        framing = .chunked
        return nil
    }
}
