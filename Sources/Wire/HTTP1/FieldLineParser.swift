import Ground
import HTTPRules

/// The result of parsing one line in the field section of a head.
enum FieldLineParseResult {
    /// A field line; the next one begins at `next`.
    case line(FieldLineLocation, next: Int)
    /// The empty line; the head ends at this offset.
    case end(Int)
    /// The end of the line has not arrived; there is no control byte but tab before `scanned`.
    case incomplete(scanned: Int)
    /// The line is malformed; the error is at the offset `at`.
    case invalid(LineSyntaxError, at: Int)
}

/// Parses field lines (RFC 9112 §5).
///
/// A line is judged only once its end or an invalid control byte has arrived, so that the result
/// for a head does not depend on how it was split on arrival.
enum FieldLineParser {
    /// Parses the field line at `start`; bytes at and after `end` are not read.
    @inline(__always)
    static func parseLine(_ bytes: Span<UInt8>, at start: Int, end: Int) -> FieldLineParseResult {
        let first = bytes.word(at: start, end: end)
        if UInt16(truncatingIfNeeded: first) == 0x0A0D { return .end(start &+ 2) }
        var words: (UInt64, UInt64, UInt64) = (first | ByteLanes.caseBits, 0, 0)
        var outside = ByteLanes.outsideCommonName(first)
        var nameEnd = start
        if outside == 0 {
            let second = bytes.word(at: start &+ 8, end: end)
            outside = ByteLanes.outsideCommonName(second)
            nameEnd &+= 8
            if outside == 0 {
                let third = bytes.word(at: start &+ 16, end: end)
                outside = ByteLanes.outsideCommonName(third)
                nameEnd &+= 8
                guard outside != 0 else { return parseUncommonLine(bytes, at: start, end: end) }
                words.1 = second | ByteLanes.caseBits
                words.2 = (third | ByteLanes.caseBits) & maskBelow(outside)
            } else {
                words.1 = (second | ByteLanes.caseBits) & maskBelow(outside)
            }
        } else {
            words.0 &= maskBelow(outside)
        }
        nameEnd &+= ByteLanes.firstIndex(outside)
        guard nameEnd > start, bytes.byte(at: nameEnd, end: end) == Byte.colon else {
            return parseUncommonLine(bytes, at: start, end: end)
        }
        let id = FieldName(first: words.0, second: words.1, third: words.2)
        return parseValue(bytes, id: id, from: start, nameEnd: nameEnd, end: end)
    }

    /// Returns a mask of all bytes below the lowest marked one; at least one is marked.
    @inline(__always)
    private static func maskBelow(_ lanes: UInt64) -> UInt64 {
        let lowest = lanes & (0 &- lanes)
        return (lowest &>> 7) &- 1
    }

    /// Parses the value of the line whose name ends before the colon at `nameEnd`.
    @inline(__always)
    private static func parseValue(
        _ bytes: Span<UInt8>, id: FieldName, from start: Int, nameEnd: Int, end: Int
    ) -> FieldLineParseResult {
        var valueStart = nameEnd &+ 1
        while ASCII.isWhitespace(bytes.byte(at: valueStart, end: end)) { valueStart &+= 1 }
        let stop = bytes.firstControl(from: valueStart, end: end)
        guard bytes.holdsLineEnd(at: stop, end: end) else {
            return unterminatedLine(bytes, at: stop, end: end)
        }
        var valueEnd = stop
        while valueEnd > valueStart, ASCII.isWhitespace(bytes.byte(at: valueEnd &- 1, end: end)) {
            valueEnd &-= 1
        }
        let mark = FieldLineLocation(
            id: id, nameStart: UInt32(truncatingIfNeeded: start),
            nameCount: UInt32(truncatingIfNeeded: nameEnd &- start),
            valueStart: UInt32(truncatingIfNeeded: valueStart),
            valueCount: UInt32(truncatingIfNeeded: valueEnd &- valueStart))
        return .line(mark, next: stop &+ 2)
    }

    /// Parses a line whose name is long, has bytes other than letters and `-`, or is malformed.
    @inline(never)
    private static func parseUncommonLine(_ bytes: Span<UInt8>, at start: Int, end: Int)
        -> FieldLineParseResult
    {
        var nameEnd = start
        while ByteSet.token.contains(bytes.byte(at: nameEnd, end: end)) { nameEnd += 1 }
        let byte = bytes.byte(at: nameEnd, end: end)
        if byte == Byte.colon, nameEnd > start {
            return parseValue(bytes, id: .other, from: start, nameEnd: nameEnd, end: end)
        }
        let stop = bytes.firstControl(from: start, end: end)
        guard stop < end, !(stop == end - 1 && bytes[stop] == Byte.carriageReturn) else {
            return .incomplete(scanned: stop)
        }
        guard nameEnd < stop || bytes.holdsLineEnd(at: stop, end: end) else {
            return .invalid(LineSyntaxError.forControlByte(bytes, at: stop), at: stop)
        }
        if byte == Byte.colon { return .invalid(.emptyName, at: nameEnd) }
        guard ASCII.isWhitespace(byte) else { return .invalid(.invalidNameToken, at: nameEnd) }
        if nameEnd == start { return .invalid(.leadingSpace, at: start) }
        var afterSpace = nameEnd
        while ASCII.isWhitespace(bytes.byte(at: afterSpace, end: end)) { afterSpace += 1 }
        let colonFollows = bytes.byte(at: afterSpace, end: end) == Byte.colon
        return .invalid(colonFollows ? .spaceBeforeColon : .invalidNameToken, at: nameEnd)
    }

    /// Returns the result for a line that is interrupted at `stop`, by a control byte or by the end
    /// of the received bytes.
    @inline(never)
    static func unterminatedLine(_ bytes: Span<UInt8>, at stop: Int, end: Int)
        -> FieldLineParseResult
    {
        guard stop < end, !(stop == end - 1 && bytes[stop] == Byte.carriageReturn) else {
            return .incomplete(scanned: stop)
        }
        return .invalid(LineSyntaxError.forControlByte(bytes, at: stop), at: stop)
    }
}

/// The error in a line of a message head or of a trailer section.
package enum LineSyntaxError: Hashable, Sendable {
    /// A CR that is not followed by LF (RFC 9112 §2.2).
    case bareCarriageReturn
    /// An LF that is not preceded by CR (RFC 9112 §2.2; a recipient may accept it as a line end,
    /// this one does not).
    case bareLineFeed
    /// NUL, DEL or another control byte (RFC 9110 §5.5).
    case controlByte(UInt8)
    /// A field line that begins with white space: obs-fold, or space before the first field (RFC
    /// 9112 §5.2, §2.2).
    case leadingSpace
    /// A field line that begins with a colon.
    case emptyName
    /// White space between field name and colon (RFC 9112 §5.1).
    case spaceBeforeColon
    /// A non-token byte in a field name, or no colon at all (RFC 9110 §5.1).
    case invalidNameToken

    /// The explanation for the sender of the message, one sentence.
    package var message: String {
        switch self {
        case .bareCarriageReturn: "A CR is not followed by LF."
        case .bareLineFeed: "A line ends in LF without CR."
        case .controlByte(let byte):
            "A field line contains the control byte \(byte)."
        case .leadingSpace:
            "A field line begins with white space; folded lines are not allowed."
        case .emptyName: "A field line has no name before its colon."
        case .spaceBeforeColon: "White space precedes the colon of a field line."
        case .invalidNameToken: "A field line has no name that is a token followed by a colon."
        }
    }

    /// Returns the error for the control byte at `index`, which is not part of a line end.
    static func forControlByte(_ bytes: Span<UInt8>, at index: Int) -> LineSyntaxError {
        switch bytes[index] {
        case Byte.carriageReturn: .bareCarriageReturn
        case Byte.lineFeed: .bareLineFeed
        case let byte: .controlByte(byte)
        }
    }
}
