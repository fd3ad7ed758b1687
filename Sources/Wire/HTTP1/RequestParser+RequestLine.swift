import Ground

/// The form of a request target (RFC 9112 §3.2).
package enum TargetForm: Hashable, Sendable {
    /// A path with an optional query.
    case origin
    /// An http or https URL.
    case absolute
    /// `host:port`, with CONNECT only.
    case authority
    /// `*`, with OPTIONS only.
    case asterisk
}

extension RequestParser {
    enum RequestLineResult {
        case next(Int)
        /// The line at `lineStart` is not complete; see
        /// ``FieldLineParseResult/incomplete(scanned:)``.
        case incomplete(lineStart: Int, scanned: Int)
        case refused(RequestParseError)
    }

    /// `HTTP/1.` before a digit, the first byte lowest.
    private static let versionStart: UInt64 = 0x002E_312F_5054_5448
    private static let minorShift: UInt64 = 56

    /// Parses the request line at `start`, after at most one empty line: sets the method, the
    /// target and its parts, and the version; returns the offset past the line.
    @inline(__always)
    mutating func parseRequestLine(_ bytes: Span<UInt8>, at start: Int, end: Int)
        -> RequestLineResult
    {
        var first = bytes.word(at: start, end: end)
        var lineStart = start
        if UInt16(truncatingIfNeeded: first) == 0x0A0D, start == progress.base {
            lineStart &+= 2
            first = bytes.word(at: lineStart, end: end)
        }
        let lineEnd = min(end, lineStart &+ requestLineBytesMax)
        let targetStart: Int
        if UInt32(truncatingIfNeeded: first) == 0x2054_4547 {
            method = .get
            targetStart = lineStart &+ 4
        } else {
            targetStart = parseOtherMethod(bytes, at: lineStart, end: lineEnd)
        }
        methodName = Extent(start: lineStart, count: targetStart &- lineStart &- 1)
        var targetEnd = targetStart
        while true {
            let outside = ByteLanes.outsideTarget(bytes.word(at: targetEnd, end: lineEnd))
            if outside != 0 {
                targetEnd &+= ByteLanes.firstIndex(outside)
                break
            }
            targetEnd &+= 8
        }
        let version = bytes.word(at: targetEnd &+ 1, end: lineEnd)
        let minor = version >> Self.minorShift &- 0x30
        guard targetStart > lineStart, targetEnd > targetStart,
            bytes.byte(at: targetEnd, end: lineEnd) == Byte.space,
            (version ^ Self.versionStart) << 8 == 0, minor < 10,
            bytes.holdsLineEnd(at: targetEnd &+ 9, end: lineEnd)
        else { return diagnoseRequestLine(bytes, at: lineStart, end: lineEnd) }
        isHTTP10 = minor == 0
        target = Extent(start: targetStart, count: targetEnd &- targetStart)
        if targetEnd &- targetStart > limits.targetBytesMax {
            return .refused(.targetTooLong(bytesMax: limits.targetBytesMax))
        }
        if bytes.byte(at: targetStart, end: lineEnd) == Byte.slash, method != .connect {
            form = .origin
            path = target
        } else if let refusal = parseOtherTargetForm(bytes) {
            return .refused(refusal)
        }
        return .next(targetEnd &+ 11)
    }

    /// Sets ``method``, and returns the offset past it and its space; returns `start` if there is
    /// no token with a space.
    @inline(never)
    private mutating func parseOtherMethod(_ bytes: Span<UInt8>, at start: Int, end: Int) -> Int {
        var index = start
        while ByteSet.token.contains(bytes.byte(at: index, end: end)) { index += 1 }
        guard index > start, bytes.byte(at: index, end: end) == Byte.space else { return start }
        let count = index - start
        method = count > 8 ? .other : .named(bytes.word(at: start, end: index))
        return index + 1
    }

    /// Parses a target that does not begin with `/`, or that of CONNECT: sets its form, path and
    /// authority; returns its error, or `nil`.
    @inline(never)
    private mutating func parseOtherTargetForm(_ bytes: Span<UInt8>) -> RequestParseError? {
        path = .empty
        if method == .connect {
            form = .authority
            guard Authority.isValid(bytes, at: target.range) else { return .targetForm }
            host = target
            return nil
        }
        if target.count == 1, bytes[Int(target.start)] == Byte.asterisk {
            form = .asterisk
            return method == .options ? nil : .targetForm
        }
        form = .absolute
        let start = Int(target.start)
        let afterScheme: Int
        if target.count > 7, bytes.matchesIgnoringCase("http://", at: start..<start + 7) {
            afterScheme = start + 7
        } else if target.count > 8, bytes.matchesIgnoringCase("https://", at: start..<start + 8) {
            afterScheme = start + 8
        } else {
            return .targetForm
        }
        var index = afterScheme
        while index < target.end, bytes[index] != Byte.slash, bytes[index] != Byte.question {
            index += 1
        }
        guard Authority.isValid(bytes, at: afterScheme..<index) else { return .invalidHost }
        host = Extent(start: afterScheme, count: index - afterScheme)
        path = Extent(start: index, count: target.end - index)
        return nil
    }

    /// Returns the error of a request line that could not be parsed; `incomplete` until its end or
    /// an invalid control byte has arrived.
    @inline(never)
    private func diagnoseRequestLine(_ bytes: Span<UInt8>, at start: Int, end: Int)
        -> RequestLineResult
    {
        let stop = bytes.firstControl(from: start, end: end)
        guard stop < end, !(stop == end - 1 && bytes[stop] == Byte.carriageReturn) else {
            return .incomplete(lineStart: start, scanned: stop)
        }
        if stop == start, isBlank(bytes, at: stop, end: end) {
            return .refused(.blankLines)
        }
        guard bytes.holdsLineEnd(at: stop, end: end) else {
            return .refused(.line(LineSyntaxError.forControlByte(bytes, at: stop), at: stop))
        }
        var index = start
        while ByteSet.token.contains(bytes.byte(at: index, end: stop)) { index += 1 }
        guard index > start, bytes.byte(at: index, end: stop) == Byte.space else {
            return .refused(.malformedRequestLine)
        }
        index += 1
        let targetStart = index
        while index < stop, ByteLanes.outsideTarget(UInt64(bytes[index])) & 0x80 == 0 {
            index += 1
        }
        guard index < stop, index > targetStart else { return .refused(.malformedRequestLine) }
        guard bytes[index] == Byte.space else {
            return .refused(.targetByte(bytes[index], at: index))
        }
        return .refused(versionError(bytes, at: index + 1, end: stop))
    }

    /// Returns true if a line end is at `start`, with or without CR.
    private func isBlank(_ bytes: Span<UInt8>, at start: Int, end: Int) -> Bool {
        bytes[start] == Byte.lineFeed || bytes.holdsLineEnd(at: start, end: end)
    }

    /// Returns the error of a version that is not supported: `version` if it is well-formed, else
    /// `malformedRequestLine`.
    private func versionError(_ bytes: Span<UInt8>, at start: Int, end: Int) -> RequestParseError {
        guard end - start == 8, bytes.matches("HTTP/", at: start..<start + 5),
            ASCII.isDigit(bytes[start + 5]), bytes[start + 6] == 0x2E,
            ASCII.isDigit(bytes[start + 7])
        else { return .malformedRequestLine }
        return .version
    }
}
