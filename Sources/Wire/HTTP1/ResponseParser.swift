import Ground
package import HTTPRules

/// The result of ``ResponseParser/parse(_:from:requestIsHead:)``.
package enum ResponseParseResult: Hashable, Sendable {
    /// The end of the head has not arrived. Call again with the same bytes and more.
    case incomplete
    /// An interim response (1xx, RFC 9110 §15.2) ends before `end`, where another head follows.
    case interim(ResponseHead, end: Int)
    /// The final head ends before `end`, where the body begins.
    case head(FramedResponseHead, end: Int)
    /// The response cannot be used; close the connection.
    case refused(ResponseParseError)
}

/// The final response of an origin without its body.
package struct FramedResponseHead: Hashable, Sendable {
    /// The status and the fields.
    package var head: ResponseHead
    /// The framing of the body, for ``BodyDecoder``.
    package var framing: BodyFraming
    /// False if the connection cannot be reused (RFC 9112 §9.3).
    package var isPersistent: Bool

    /// Creates a head from its parts; `response` is its ``head``.
    package init(response: ResponseHead, framing: BodyFraming, isPersistent: Bool) {
        self.head = response
        self.framing = framing
        self.isPersistent = isPersistent
    }
}

/// Parses response heads of HTTP/1 (RFC 9112 §4, §6.3); one parser per connection.
///
/// As strict as ``RequestParser``: a response whose end is in doubt is an error. The same bytes
/// give the same result, however they were split on arrival.
///
/// Choices where the specification allows several: a status line without reason may lack the space
/// before it; a repeated Content-Length is refused even with one value; 101 is refused unless it
/// was requested; a status of 600 or above is accepted (RFC 9110 §15 has a client treat it as a
/// 5xx, and a relay passes it on); after an interim response with `close`, or one in HTTP/1.0, the
/// final response is still read, and the connection is not persistent. HTTP/1.2 and later are
/// parsed as HTTP/1.1 (RFC 9110 §2.5). A 204 has no body, whatever its fields.
package struct ResponseParser: ~Copyable {
    /// The limits on heads; ``HeadLimits/targetBytesMax`` does not apply.
    package let limits: HeadLimits
    /// True if the request asked for a protocol switch: 101 is then final, and no HTTP follows.
    package var acceptsProtocolSwitch = false
    private var progress = HeadProgress()
    private var framingFields = FramingFields()
    private var status: UInt16 = 0
    private var isHTTP10 = false
    /// True if an interim response had `close`; the connection then ends after the final response.
    private var interimHadCloseOption = false
    private var fields: FieldTable

    /// Creates a parser and allocates its table of fields.
    package init(limits: HeadLimits = HeadLimits()) {
        self.limits = limits
        fields = FieldTable(fieldsMax: limits.fieldsMax)
    }

    /// Parses the head that begins at `start`, which is at most the count of `bytes`.
    ///
    /// After `.incomplete`, call again with the same bytes and more after them. After any other
    /// result the next call parses a new head.
    ///
    /// - Parameters:
    ///   - bytes: the received bytes.
    ///   - start: the offset of the head.
    ///   - requestIsHead: true if the request's method is HEAD, whose response has no body.
    /// - Returns: a head, an error, or that more bytes are needed.
    package mutating func parse(
        _ bytes: Span<UInt8>, from start: Int, requestIsHead: Bool
    ) -> ResponseParseResult {
        precondition(start >= 0 && start <= bytes.count && bytes.count <= UInt32.max)
        let end = start + min(bytes.count - start, limits.headBytesMax)
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
            switch parseStatusLine(bytes, at: position, end: end) {
            case .end(let next): position = next
            case .incomplete(let scanned):
                return awaitMoreBytes(bytes, from: start, at: position, scanned)
            case .refused(let refusal): return refuse(refusal)
            }
            progress.hasFirstLine = true
        }
        while true {
            switch FieldLineParser.parseLine(bytes, at: position, end: end) {
            case .line(let line, let next):
                guard fields.append(line) else {
                    return refuse(.tooManyFields(fieldsMax: limits.fieldsMax))
                }
                if let refusal = recordField(bytes, line) { return refuse(refusal) }
                position = next
            case .end(let headEnd):
                progress.base = -1
                return finishHead(bytes, start..<headEnd, requestIsHead: requestIsHead)
            case .incomplete(let scanned):
                return awaitMoreBytes(bytes, from: start, at: position, scanned)
            case .invalid(let fault, let offset): return refuse(.line(fault, at: offset))
            }
        }
    }

    /// Discards an incomplete head and what interim responses said, so that the next call parses
    /// the head of another response.
    package mutating func reset() {
        progress.base = -1
        interimHadCloseOption = false
    }

    private mutating func begin(at start: Int) {
        progress = HeadProgress()
        progress.base = start
        framingFields = FramingFields()
        fields.removeAll()
    }

    private mutating func awaitMoreBytes(
        _ bytes: Span<UInt8>, from start: Int, at lineStart: Int, _ scanned: Int
    ) -> ResponseParseResult {
        progress.lineStart = lineStart
        progress.scanned = scanned
        return awaitMoreBytes(bytes, from: start)
    }

    /// Returns that the head is incomplete, or refuses it if its limit is reached.
    private mutating func awaitMoreBytes(_ bytes: Span<UInt8>, from start: Int)
        -> ResponseParseResult
    {
        guard bytes.count - start >= limits.headBytesMax else { return .incomplete }
        return refuse(.headTooLarge(bytesMax: limits.headBytesMax))
    }

    private mutating func refuse(_ refusal: ResponseParseError) -> ResponseParseResult {
        reset()
        return .refused(refusal)
    }
}

extension ResponseParser {
    private enum StatusLineResult {
        case end(Int)
        case incomplete(scanned: Int)
        case refused(ResponseParseError)
    }

    /// Parses the status line at `start`, and returns the offset past it.
    private mutating func parseStatusLine(_ bytes: Span<UInt8>, at start: Int, end: Int)
        -> StatusLineResult
    {
        let stop = bytes.firstControl(from: start, end: end)
        guard bytes.holdsLineEnd(at: stop, end: end) else {
            switch FieldLineParser.unterminatedLine(bytes, at: stop, end: end) {
            case .invalid(let fault, let offset): return .refused(.line(fault, at: offset))
            default: return .incomplete(scanned: stop)
            }
        }
        guard stop - start >= 12, bytes.matches("HTTP/", at: start..<start + 5),
            ASCII.isDigit(bytes[start + 5]), bytes[start + 6] == 0x2E,
            ASCII.isDigit(bytes[start + 7]), bytes[start + 8] == Byte.space,
            let code = bytes.decimal(at: start + 9..<start + 12), code >= 100,
            stop == start + 12 || bytes[start + 12] == Byte.space
        else { return .refused(.malformedStatusLine) }
        isHTTP10 = bytes[start + 7] == 0x30
        guard bytes[start + 5] == 0x31 else { return .refused(.version) }
        status = UInt16(code)
        return .end(stop + 2)
    }

    /// Processes a field that affects framing or persistence; returns its error, or `nil`.
    private mutating func recordField(_ bytes: Span<UInt8>, _ line: FieldLineLocation)
        -> ResponseParseError?
    {
        switch line.id {
        case .connection: framingFields.recordConnectionOptions(bytes, at: line.value)
        case .transferEncoding: framingFields.codings.record(bytes, at: line.value)
        case .contentLength:
            guard framingFields.contentLength == nil else { return .repeatedContentLength }
            guard let length = bytes.decimal(at: line.value) else {
                return .invalidContentLength
            }
            framingFields.contentLength = length
        default: break
        }
        return nil
    }

    /// Determines the framing from a complete head in `range` (RFC 9112 §6.3), and returns the head
    /// or its error.
    private mutating func finishHead(
        _ bytes: Span<UInt8>, _ range: Range<Int>, requestIsHead: Bool
    ) -> ResponseParseResult {
        let hasCoding = fields.contains(.transferEncoding)
        if hasCoding {
            if isHTTP10 || status < 200 { return refuse(.codingNotAllowed) }
            if framingFields.contentLength != nil { return refuse(.lengthAndCoding) }
            guard framingFields.codings.isChunkedOnly else { return refuse(.transferEncoding) }
        }
        if status < 200 {
            if status == 101 { return finishProtocolSwitch(bytes, range) }
            if !framingFields.isPersistent(isHTTP10: isHTTP10) { interimHadCloseOption = true }
            return .interim(makeResponseHead(bytes, range), end: range.upperBound)
        }
        let framing: BodyFraming
        if requestIsHead || status == 204 || status == 304 {
            framing = .none
        } else if hasCoding {
            framing = .chunked
        } else {
            framing = framingFields.contentLength.map { .length($0) } ?? .untilClose
        }
        let head = FramedResponseHead(
            response: makeResponseHead(bytes, range), framing: framing,
            isPersistent: framing != .untilClose && !interimHadCloseOption
                && framingFields.isPersistent(isHTTP10: isHTTP10))
        interimHadCloseOption = false
        return .head(head, end: range.upperBound)
    }

    /// Returns the head of a 101 response as a final one, or its error if none was requested.
    private mutating func finishProtocolSwitch(
        _ bytes: Span<UInt8>, _ range: Range<Int>
    ) -> ResponseParseResult {
        guard acceptsProtocolSwitch, !isHTTP10 else { return refuse(.unexpectedSwitch) }
        interimHadCloseOption = false
        let head = FramedResponseHead(
            response: makeResponseHead(bytes, range), framing: .untilClose, isPersistent: false)
        return .head(head, end: range.upperBound)
    }

    private func makeResponseHead(_ bytes: Span<UInt8>, _ range: Range<Int>) -> ResponseHead {
        ResponseHead(
            status: status, bytes: bytes.copy(range), lines: rebasedLines(movedTo: range.lowerBound)
        )
    }

    /// Returns the lines with extents relative to the head's first byte.
    private func rebasedLines(movedTo start: Int) -> [FieldLine] {
        fields.copy().map { line in
            FieldLine(
                id: line.id,
                name: Extent(start: Int(line.name.start) - start, count: Int(line.name.count)),
                value: Extent(start: Int(line.value.start) - start, count: Int(line.value.count)))
        }
    }
}

/// The reason why an origin's response cannot be used.
///
/// The connection is closed, because nothing after the error can be trusted. Offsets count from the
/// beginning of the parsed span.
package enum ResponseParseError: Hashable, Sendable {
    /// The line is not `HTTP/1.1 SP 3DIGIT SP [reason]` (RFC 9112 §4), or the status is below 100.
    case malformedStatusLine
    /// The major version is not 1.
    case version
    case line(LineSyntaxError, at: Int)
    case headTooLarge(bytesMax: Int)
    case tooManyFields(fieldsMax: Int)
    /// The status is 101, and the request asked for no other protocol (RFC 9110 §15.2.2).
    case unexpectedSwitch
    case invalidContentLength
    case repeatedContentLength
    /// Content-Length and Transfer-Encoding occur in one message (RFC 9112 §6.3).
    case lengthAndCoding
    /// Transfer-Encoding occurs in HTTP/1.0, or in a 1xx response (RFC 9112 §6.1).
    case codingNotAllowed
    /// Transfer-Encoding is not exactly `chunked`; requests ask for no other coding.
    case transferEncoding

    /// The explanation for the operator's log, one sentence.
    package var message: String {
        switch self {
        case .malformedStatusLine: "The status line is malformed."
        case .version: "The version is not HTTP/1."
        case .line(let fault, at: _): fault.message
        case .headTooLarge(let bytesMax):
            "The response's head is too large; \(bytesMax) bytes are allowed."
        case .tooManyFields(let fieldsMax):
            "The response has too many field lines; \(fieldsMax) are allowed."
        case .unexpectedSwitch: "The origin switches protocols unexpectedly."
        case .invalidContentLength: "Content-Length is not one decimal number."
        case .repeatedContentLength: "The response has more than one Content-Length field."
        case .lengthAndCoding: "The response has both Content-Length and Transfer-Encoding."
        case .codingNotAllowed:
            "Transfer-Encoding is not allowed in HTTP/1.0 or in a 1xx response."
        case .transferEncoding: "Transfer-Encoding is not chunked, the only coding requested."
        }
    }
}
