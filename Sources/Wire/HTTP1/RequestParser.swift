package import Ground
import HTTPRules

/// The result of ``RequestParser/parse(_:from:)``.
package enum RequestParseResult: Hashable, Sendable {
    /// The end of the head has not arrived. Call again with the same bytes and more.
    case incomplete
    /// The head ends before the offset `end`, where the body or the next request begins.
    case head(end: Int)
    /// The request is invalid: respond with the error's status, and close the connection.
    case refused(RequestParseError)
}

/// Parses request heads of HTTP/1.1 and HTTP/1.0 in place (RFC 9112); one parser per connection.
///
/// The properties describe the head last returned as `.head`, and are valid until the next call.
/// All extents refer to the span passed to that call. The same bytes give the same result, however
/// they were split on arrival. Nothing is allocated after `init`.
///
/// Choices where the specification allows several: a bare LF does not end a line; a repeated
/// Content-Length is refused, even with one value; HTTP/1.2 and later are parsed as HTTP/1.1 (RFC
/// 9110 §2.5), and another major version is refused with 505; an empty Host is refused; `#` in a
/// target is refused, and so is a byte above ASCII.
package struct RequestParser: ~Copyable {
    /// The limits on heads.
    package let limits: HeadLimits
    /// The method.
    package internal(set) var method = RequestMethod.other
    /// The method's name as sent.
    package internal(set) var methodName = Extent.empty
    /// The whole target as sent.
    package internal(set) var target = Extent.empty
    /// The form of the target.
    package internal(set) var form = TargetForm.origin
    /// The path and the query; empty for the authority form and the asterisk form.
    ///
    /// For an absolute-form target, the part after the authority, which may be empty or begin with
    /// `?`: both mean the path `/`.
    package internal(set) var path = Extent.empty

    /// Truncates ``path`` at the offset `end`, which must be in it, because only this node needs
    /// what follows.
    package mutating func truncatePath(at end: Int) {
        precondition(path.range.lowerBound <= end && end <= path.end, "\(end) is not in \(path)")
        path = Extent(start: path.range.lowerBound, count: end - path.range.lowerBound)
    }
    /// The requested authority; empty only in HTTP/1.0 without Host.
    ///
    /// The authority of an absolute-form or authority-form target takes precedence (RFC 9112
    /// §3.2.2), else it is the value of Host.
    package internal(set) var host = Extent.empty
    /// True for HTTP/1.0.
    package internal(set) var isHTTP10 = false
    /// The framing of the body; never `.untilClose`.
    package internal(set) var framing = BodyFraming.none
    /// False if the connection must be closed after the response (RFC 9112 §9.3).
    package internal(set) var isPersistent = true
    /// True if the client waits for 100 (Continue) before it sends the body (RFC 9110 §10.1.1).
    package internal(set) var expectsContinue = false
    /// The field lines.
    package internal(set) var fields: FieldTable

    var progress = HeadProgress()
    var framingFields = FramingFields()

    /// Creates a parser and allocates its table of fields.
    package init(limits: HeadLimits = HeadLimits()) {
        self.limits = limits
        fields = FieldTable(fieldsMax: limits.fieldsMax)
    }

    /// Parses the head that begins at `start`, which is at most the count of `bytes`.
    ///
    /// One empty line before the head is skipped (RFC 9112 §2.2). After `.incomplete`, call again
    /// with the same bytes and more after them; only the new ones are then searched. After any
    /// other result the next call parses a new head.
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

    /// Discards an incomplete head, so that the next call of ``parse(_:from:)`` parses a new one.
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

    /// Returns that the head is incomplete, or refuses it if a limit is reached.
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

    /// Returns the error for an incomplete request line beyond the limit: the method is too long if
    /// not even that is complete (RFC 9112 §3).
    private func lineLengthError(_ bytes: Span<UInt8>) -> RequestParseError {
        let end = min(
            bytes.count, progress.base &+ limits.headBytesMax,
            progress.lineStart &+ requestLineBytesMax)
        var index = progress.lineStart
        while index < end, ByteSet.token.contains(bytes[index]) { index += 1 }
        return index == end
            ? .methodTooLong(bytesMax: requestLineBytesMax)
            : .targetTooLong(bytesMax: limits.targetBytesMax)
    }

    /// Returns the error; the next call of ``parse(_:from:)`` parses a new head.
    private mutating func refuse(_ refusal: RequestParseError) -> RequestParseResult {
        progress.base = -1
        return .refused(refusal)
    }

    /// The maximum size of the request line in bytes.
    var requestLineBytesMax: Int {
        limits.targetBytesMax &+ HeadLimits.requestLineOverheadBytes
    }
}

extension RequestParser {
    /// Processes a field that affects framing, routing or the expectation; returns its error, or
    /// `nil`.
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

    /// Validates Host, and uses it as the authority unless the target has one.
    private mutating func recordHost(_ bytes: Span<UInt8>, _ line: FieldLineLocation)
        -> RequestParseError?
    {
        guard !framingFields.hasHost else { return .repeatedHost }
        framingFields.hasHost = true
        guard Authority.isValid(bytes, at: line.value) else { return .invalidHost }
        if form == .origin || form == .asterisk { host = line.valueExtent }
        return nil
    }

    /// Determines framing, persistence and expectation once all fields are known; returns the error
    /// of fields that are missing or contradict each other, or `nil`.
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

    /// Sets the framing of a message with Transfer-Encoding; returns the error of its codings, or
    /// `nil`.
    private mutating func applyTransferCodings() -> RequestParseError? {
        if isHTTP10 { return .codingInHTTP10 }
        if framingFields.contentLength != nil { return .lengthAndCoding }
        if framingFields.codings.isMalformed { return .malformedTransferEncoding }
        guard framingFields.codings.isChunkedOnly else { return .unknownTransferCoding }
        framing = .chunked
        return nil
    }
}

/// The reason why a request is refused.
///
/// The connection is closed after the response, because the start of the next request is unknown or
/// cannot be trusted. Offsets count from the beginning of the parsed span.
package enum RequestParseError: Hashable, Sendable {
    /// The line is not `method SP target SP HTTP/1.1` (RFC 9112 §3); this includes HTTP/0.9.
    case malformedRequestLine
    /// More than one empty line precedes the request line, or one that is not CR LF (RFC 9112
    /// §2.2).
    case blankLines
    /// A line is malformed.
    case line(LineSyntaxError, at: Int)
    /// The target has a byte that is invalid in a URI: a control byte, `#`, or a byte above ASCII.
    case targetByte(UInt8, at: Int)
    /// The target has none of the four forms, or not the one that its method requires (RFC 9112
    /// §3.2).
    case targetForm
    case targetTooLong(bytesMax: Int)
    /// The method is longer than any that exists (RFC 9112 §3).
    case methodTooLong(bytesMax: Int)
    /// The major version is not 1.
    case version
    case headTooLarge(bytesMax: Int)
    case tooManyFields(fieldsMax: Int)
    /// HTTP/1.1 without Host (RFC 9112 §3.2).
    case missingHost
    case repeatedHost
    /// Host, or the authority of an absolute-form target, is not `host[:port]` (RFC 9110 §7.2).
    case invalidHost
    /// Content-Length is not one decimal number below 2⁶⁴ (RFC 9110 §8.6).
    case invalidContentLength
    case repeatedContentLength
    /// Content-Length and Transfer-Encoding occur in one message (RFC 9112 §6.3).
    case lengthAndCoding
    /// Transfer-Encoding occurs in HTTP/1.0 (RFC 9112 §6.1).
    case codingInHTTP10
    /// Transfer-Encoding is not a list of codings, or does not have one final `chunked` (RFC 9112
    /// §6.1).
    case malformedTransferEncoding
    case unknownTransferCoding
    /// The expectation is not `100-continue` (RFC 9110 §10.1.1).
    case unknownExpectation

    /// The status code of the response.
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

    /// The explanation for the sender of the request, one sentence.
    package var message: String {
        switch self {
        case .malformedRequestLine:
            "The request line is not a method, a target and a version with one space between them."
        case .blankLines: "More than one empty line precedes the request line."
        case .line(let fault, at: _): fault.message
        case .targetByte(UInt8(ascii: "#"), at: _):
            "The request target contains a #, which must be percent-encoded: # is written %23."
        case .targetByte(let byte, at: _):
            "The request target contains the byte \(byte), which must be percent-encoded."
        case .targetForm:
            "The request target is not a path, an absolute http or https URL, or the form that its "
                + "method requires."
        case .targetTooLong(let bytesMax):
            "The request target is too long; \(bytesMax) bytes are allowed."
        case .methodTooLong(let bytesMax):
            "The method is unknown: it is longer than \(bytesMax) bytes."
        case .version: "The version is not HTTP/1."
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
            "Transfer-Encoding is malformed, or chunked is not its only and final coding."
        case .unknownTransferCoding: "Only the transfer coding chunked is supported."
        case .unknownExpectation: "Only the expectation 100-continue is supported."
        }
    }
}
