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
