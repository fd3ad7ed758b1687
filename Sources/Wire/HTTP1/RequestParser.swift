package import Ground
import HTTPRules

/// What ``RequestParser/parse(_:from:)`` found.
package enum RequestParseResult: Hashable, Sendable {
    /// The head's end has not come. Call again with the same bytes and more.
    case incomplete
    /// The head ends before the offset `end`, where the body or the next request begins.
    case head(end: Int)
    /// Answer with the refusal's status and close.
    case refused(RequestParseError)
}

/// Reads request heads of HTTP/1.1 and HTTP/1.0 in place (RFC 9112); one per connection.
///
/// The properties describe the head last returned as `.head`, and hold until the next call. All
/// extents lie in the span given to that call. The same bytes give the same result, in whatever
/// pieces they came. Nothing is allocated after `init`.
///
/// Decided here: bare LF ends no line; Content-Length may not be repeated, even with one value;
/// HTTP/1.2 and later are read as HTTP/1.1 (RFC 9110 §2.5), and another major version is refused
/// with 505; an empty Host is refused; `#` in a target is refused, and so is a byte above ASCII.
package struct RequestParser: ~Copyable {
    package let limits: HeadLimits
    package internal(set) var method = RequestMethod.other
    /// The method as it was sent.
    package internal(set) var methodName = Extent.empty
    /// The whole target as it was sent.
    package internal(set) var target = Extent.empty
    package internal(set) var form = TargetForm.origin
    /// Path and query; empty for the authority- and asterisk-form.
    ///
    /// Of an absolute-form target what follows the authority, which may be empty or begin with `?`:
    /// both mean the path `/`.
    package internal(set) var path = Extent.empty

    /// Has ``path`` end at the offset `end`: what stands behind it was for this node alone.
    package mutating func truncatePath(at end: Int) {
        precondition(path.range.lowerBound <= end && end <= path.end, "\(end) is not in \(path)")
        path = Extent(start: path.range.lowerBound, count: end - path.range.lowerBound)
    }
    /// The authority asked for; empty only in HTTP/1.0 without Host.
    ///
    /// That of an absolute-form or authority-form target, which wins (RFC 9112 §3.2.2), else the
    /// value of Host.
    package internal(set) var host = Extent.empty
    package internal(set) var isHTTP10 = false
    /// Never `.untilClose`.
    package internal(set) var framing = BodyFraming.none
    /// False if the connection has to be closed after the answer (RFC 9112 §9.3).
    package internal(set) var isPersistent = true
    /// The client waits for 100 (Continue) before it sends the body (RFC 9110 §10.1.1).
    package internal(set) var expectsContinue = false
    package internal(set) var fields: FieldTable

    var progress = HeadProgress()
    var framingFields = FramingFields()

    package init(limits: HeadLimits = HeadLimits()) {
        self.limits = limits
        fields = FieldTable(fieldsMax: limits.fieldsMax)
    }

    /// Reads the head that begins at `start`, which must lie in `bytes` or at its end.
    ///
    /// One empty line before the head is skipped (RFC 9112 §2.2). After `.incomplete` the call is
    /// repeated with the same bytes and more behind them; only what is new is then searched.
    /// After any other result the next call reads a new head.
    package mutating func parse(_ bytes: Span<UInt8>, from start: Int) -> RequestParseResult {
        precondition(start >= 0 && start <= bytes.count && bytes.count <= UInt32.max)
        let end = start &+ min(bytes.count &- start, limits.headBytesMax)
        var position = start
        if progress.canResume(from: start, end: end) {
            guard progress.scanForLineEnd(bytes, end: end) else {
                return awaitMoreBytes(bytes, from: start)
            }
            position = progress.lineStart
        } else {
            begin(at: start)
        }
        if !progress.hasFirstLine {
            switch parseRequestLine(bytes, at: position, end: end) {
            case .next(let next): position = next
            case .incomplete(let lineStart, let scanned):
                progress.lineStart = lineStart
                progress.scanned = scanned
                return awaitMoreBytes(bytes, from: start)
            case .refused(let refusal): return refuse(refusal)
            }
            progress.hasFirstLine = true
        }
        return parseFieldSection(bytes, at: position, start: start, end: end)
    }

    /// Forgets a head that has not come in full, so that the next call reads a new one.
    package mutating func reset() {
        progress.base = -1
    }

    @inline(__always)
    private mutating func begin(at start: Int) {
        progress = HeadProgress()
        progress.base = start
        framingFields = FramingFields()
        fields.removeAll()
        host = .empty
    }

    @inline(__always)
    private mutating func parseFieldSection(
        _ bytes: Span<UInt8>, at position: Int, start: Int, end: Int
    ) -> RequestParseResult {
        var position = position
        while true {
            switch FieldLineParser.parseLine(bytes, at: position, end: end) {
            case .line(let line, let next):
                guard fields.append(line) else {
                    return refuse(.tooManyFields(fieldsMax: limits.fieldsMax))
                }
                if FramingFields.isRelevant(line.id),
                    let refusal = recordField(bytes, line)
                {
                    return refuse(refusal)
                }
                position = next
            case .end(let headEnd):
                if let refusal = finishHead(bytes) { return refuse(refusal) }
                progress.base = -1
                return .head(end: headEnd)
            case .incomplete(let scanned):
                progress.lineStart = position
                progress.scanned = scanned
                return awaitMoreBytes(bytes, from: start)
            case .invalid(let fault, let offset): return refuse(.line(fault, at: offset))
            }
        }
    }

    /// There is no more to read: waits for more bytes unless a limit has been reached.
    private mutating func awaitMoreBytes(_ bytes: Span<UInt8>, from start: Int)
        -> RequestParseResult
    {
        let isFull = bytes.count - start >= limits.headBytesMax
        if progress.hasFirstLine {
            return isFull ? refuse(.headTooLarge(bytesMax: limits.headBytesMax)) : .incomplete
        }
        guard isFull || bytes.count - progress.lineStart >= requestLineBytesMax else {
            return .incomplete
        }
        return refuse(lineLengthError(bytes))
    }

    /// Says what is too long of a request line without end: the method, if not even that has ended
    /// (RFC 9112 §3).
    private func lineLengthError(_ bytes: Span<UInt8>) -> RequestParseError {
        let end = min(
            bytes.count, progress.base &+ limits.headBytesMax,
            progress.lineStart &+ requestLineBytesMax)
        var index = progress.lineStart
        while index < end, ByteClass.token.contains(bytes[index]) { index += 1 }
        return index == end
            ? .methodTooLong(bytesMax: requestLineBytesMax)
            : .targetTooLong(bytesMax: limits.targetBytesMax)
    }

    private mutating func refuse(_ refusal: RequestParseError) -> RequestParseResult {
        progress.base = -1
        return .refused(refusal)
    }

    var requestLineBytesMax: Int {
        limits.targetBytesMax &+ HeadLimits.requestLineOverheadBytes
    }
}

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

/// Why a request was refused.
///
/// The connection is closed after the answer: where the next request would begin is not known, or
/// not to be trusted.
/// Offsets are counted from the beginning of the span that was parsed.
package enum RequestParseError: Hashable, Sendable {
    /// Not `method SP target SP HTTP/1.1` (RFC 9112 §3), HTTP/0.9 included.
    case malformedRequestLine
    /// More than one empty line before the request line, or one that is not CR LF (RFC 9112 §2.2).
    case blankLines
    /// A line that is no line of HTTP/1.1.
    case line(LineSyntaxError, at: Int)
    /// A byte in the target that no URI holds: control bytes, `#`, or one that is not ASCII.
    case targetByte(UInt8, at: Int)
    /// The target is none of the four forms, or not the one its method demands (RFC 9112 §3.2).
    case targetForm
    case targetTooLong(bytesMax: Int)
    /// No method that exists is so long (RFC 9112 §3).
    case methodTooLong(bytesMax: Int)
    /// Another major version than 1.
    case version
    case headTooLarge(bytesMax: Int)
    case tooManyFields(fieldsMax: Int)
    /// HTTP/1.1 without Host (RFC 9112 §3.2).
    case missingHost
    case repeatedHost
    /// Host, or the authority of an absolute-form target, is not `host[:port]` (RFC 9110 §7.2).
    case invalidHost
    /// Not one decimal number below 2⁶⁴ (RFC 9110 §8.6).
    case invalidContentLength
    case repeatedContentLength
    /// Content-Length and Transfer-Encoding in one message (RFC 9112 §6.3).
    case lengthAndCoding
    /// Transfer-Encoding in HTTP/1.0 (RFC 9112 §6.1).
    case codingInHTTP10
    /// Transfer-Encoding that is no list of codings, or not one final `chunked` (RFC 9112 §6.1).
    case malformedTransferEncoding
    case unknownTransferCoding
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    case unknownExpectation

    /// The status code of the answer.
    package var status: UInt16 {
        switch self {
        case .malformedRequestLine, .blankLines, .line, .targetByte, .targetForm, .missingHost,
            .repeatedHost, .invalidHost, .invalidContentLength, .repeatedContentLength,
            .lengthAndCoding, .codingInHTTP10, .malformedTransferEncoding:
            400
        case .targetTooLong: 414
        case .unknownExpectation: 417
        case .headTooLarge, .tooManyFields: 431
        case .unknownTransferCoding, .methodTooLong: 501
        case .version: 505
        }
    }

    /// A sentence for whoever sent the request.
    package var message: String {
        switch self {
        case .malformedRequestLine:
            "The request line is not a method, a target and a version with one space between them."
        case .blankLines: "More than one empty line precedes the request line."
        case .line(let fault, at: _): fault.message
        case .targetByte(UInt8(ascii: "#"), at: _):
            "The request target holds a #, which has to be percent-encoded: # is written %23."
        case .targetByte(let byte, at: _):
            "The request target holds the byte \(byte), which has to be percent-encoded."
        case .targetForm:
            "The request target is not a path, an absolute http or https URL, or what its method "
                + "demands."
        case .targetTooLong(let bytesMax):
            "The request target is too long; \(bytesMax) bytes are allowed."
        case .methodTooLong(let bytesMax):
            "The method is unknown: it is longer than \(bytesMax) bytes."
        case .version: "The version is none of HTTP/1."
        case .headTooLarge(let bytesMax):
            "The request's head is too large; \(bytesMax) bytes are allowed."
        case .tooManyFields(let fieldsMax):
            "The request has too many field lines; \(fieldsMax) are allowed."
        case .missingHost: "The request has no Host field."
        case .repeatedHost: "The request has more than one Host field."
        case .invalidHost: "The host is not a name or address with an optional port."
        case .invalidContentLength: "Content-Length is not one decimal number."
        case .repeatedContentLength: "The request has more than one Content-Length field."
        case .lengthAndCoding: "The request has both Content-Length and Transfer-Encoding."
        case .codingInHTTP10: "Transfer-Encoding is not allowed in HTTP/1.0."
        case .malformedTransferEncoding:
            "Transfer-Encoding is malformed, or chunked is not its one and final coding."
        case .unknownTransferCoding: "The only transfer coding understood is chunked."
        case .unknownExpectation: "The only expectation understood is 100-continue."
        }
    }
}
