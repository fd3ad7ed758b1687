import Ground
import HTTPRules

extension RequestParser {
    /// Acts on a field that says how the message is framed, routed or answered.
    @inline(never)
    mutating func note(_ bytes: Span<UInt8>, _ line: LineMark) -> RequestRefusal? {
        switch line.id {
        case .host: return noteHost(bytes, line)
        case .connection:
            notes.noteConnection(bytes, at: line.value)
            return nil
        case .contentLength:
            guard notes.contentLength == nil else { return .repeatedContentLength }
            guard let length = bytes.decimal(at: line.value) else {
                return .invalidContentLength
            }
            notes.contentLength = length
            return nil
        case .transferEncoding:
            notes.codings.note(bytes, at: line.value)
            return nil
        case .expect:
            guard bytes.holdsIgnoringCase("100-continue", at: line.value) else {
                return .unknownExpectation
            }
            notes.expectsContinue = true
            return nil
        default: return nil
        }
    }

    private mutating func noteHost(_ bytes: Span<UInt8>, _ line: LineMark) -> RequestRefusal? {
        guard !notes.hasHost else { return .repeatedHost }
        notes.hasHost = true
        guard Authority.isValid(bytes, at: line.value) else { return .invalidHost }
        if form == .origin || form == .asterisk { host = line.valueExtent }
        return nil
    }

    /// Draws the conclusions once all fields are known.
    @inline(__always)
    mutating func settle(_ bytes: Span<UInt8>) -> RequestRefusal? {
        guard notes.hasHost || isHTTP10 else { return .missingHost }
        isPersistent = notes.isPersistent(isHTTP10: isHTTP10)
        expectsContinue = notes.expectsContinue && !isHTTP10
        framing = .none
        if fields.contains(.transferEncoding) { return settleCodings() }
        if let length = notes.contentLength { framing = .length(length) }
        return nil
    }

    private mutating func settleCodings() -> RequestRefusal? {
        if isHTTP10 { return .codingInHTTP10 }
        if notes.contentLength != nil { return .lengthAndCoding }
        if notes.codings.isMalformed { return .malformedTransferEncoding }
        guard notes.codings.isChunkedOnly else { return .unknownTransferCoding }
        framing = .chunked
        return nil
    }
}
