import Ground
import HTTPRules

/// The state of the fields that determine framing and persistence, collected while a head is
/// parsed.
struct FramingFields {
    var contentLength: UInt64?
    var hasHost = false
    var codings = TransferCodings()
    /// True if `close` occurs in Connection.
    var hasCloseOption = false
    /// True if `keep-alive` occurs in Connection.
    var hasKeepAliveOption = false
    var expectsContinue = false

    /// Returns true for the names of fields that affect the parsing of a request.
    @inline(__always)
    static func isRelevant(_ name: FieldName) -> Bool {
        switch name {
        case .host, .contentLength, .transferEncoding, .connection, .expect: true
        default: false
        }
    }

    /// Records the options of one Connection line (RFC 9110 §7.6.1).
    ///
    /// Elements that are not tokens are ignored.
    mutating func recordConnectionOptions(_ bytes: Span<UInt8>, at value: Range<Int>) {
        var index = value.lowerBound
        while index < value.upperBound {
            let element = ListElement.next(bytes, from: index, end: value.upperBound)
            switch element.range.count {
            case 5: if Self.isClose(bytes, element.range) { hasCloseOption = true }
            case 10: if Self.isKeepAlive(bytes, element.range) { hasKeepAliveOption = true }
            default: break
            }
            index = element.next
        }
    }

    /// Returns true if the five bytes are `close`; absent bytes are 0, which the case bit turns
    /// into spaces.
    @inline(__always)
    private static func isClose(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        bytes.word(at: range.lowerBound, end: range.upperBound) | ByteLanes.caseBits
            == 0x2020_2065_736F_6C63
    }

    /// Returns true if the ten bytes are `keep-alive`; a value has no CR, which the case bit would
    /// turn into `-`.
    @inline(__always)
    private static func isKeepAlive(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        bytes.word(at: range.lowerBound, end: range.upperBound) | ByteLanes.caseBits
            == 0x696C_612D_7065_656B
            && bytes.word(at: range.lowerBound &+ 8, end: range.upperBound) | ByteLanes.caseBits
                == 0x2020_2020_2020_6576
    }

    /// Returns true if the connection can be reused (RFC 9112 §9.3).
    func isPersistent(isHTTP10: Bool) -> Bool {
        !hasCloseOption && (!isHTTP10 || hasKeepAliveOption)
    }
}

/// The codings in the Transfer-Encoding lines of a message, in order (RFC 9112 §6.1).
struct TransferCodings {
    private(set) var chunkedCount = 0
    /// True if a coding other than `chunked` occurs.
    private(set) var hasOther = false
    /// True if an element is empty or not a token, or `chunked` is followed by another element.
    private(set) var isMalformed = false

    var isChunkedOnly: Bool { chunkedCount == 1 && !hasOther && !isMalformed }

    /// Records the codings of one line; an empty element counts as malformed, because framing must
    /// not be guessed.
    mutating func record(_ bytes: Span<UInt8>, at value: Range<Int>) {
        if value.isEmpty || bytes[value.upperBound - 1] == Byte.comma { isMalformed = true }
        var index = value.lowerBound
        while index < value.upperBound {
            let element = ListElement.next(bytes, from: index, end: value.upperBound)
            if chunkedCount > 0 { isMalformed = true }
            if bytes.matchesIgnoringCase("chunked", at: element.range) {
                chunkedCount += 1
            } else {
                recordOther(bytes, at: element.range)
            }
            index = element.next
        }
    }

    /// Records an element that is not `chunked`.
    private mutating func recordOther(_ bytes: Span<UInt8>, at element: Range<Int>) {
        hasOther = true
        if element.isEmpty { isMalformed = true }
        for index in element where !ByteSet.token.contains(bytes[index]) { isMalformed = true }
    }
}

/// An element of a comma-separated list, without the surrounding white space (RFC 9110 §5.6.1).
struct ListElement {
    let range: Range<Int>
    /// The offset past the comma that ends the element, or past the end of the list.
    let next: Int

    /// Returns the element that begins at `start`, in a list that ends at `end`; it may be empty.
    static func next(_ bytes: Span<UInt8>, from start: Int, end: Int) -> ListElement {
        var comma = start
        while true {
            let commas = ByteLanes.bytes(
                bytes.word(at: comma, end: end), equalTo: UInt8(ascii: ","))
            if commas != 0 {
                comma &+= ByteLanes.firstIndex(commas)
                break
            }
            comma &+= 8
            if comma >= end {
                comma = end
                break
            }
        }
        var lower = start
        var upper = comma
        while lower < upper, ASCII.isWhitespace(bytes.byte(at: lower, end: end)) {
            lower &+= 1
        }
        while upper > lower, ASCII.isWhitespace(bytes.byte(at: upper &- 1, end: end)) {
            upper &-= 1
        }
        return ListElement(range: lower..<upper, next: comma &+ 1)
    }
}

/// The way in which the end of a message's body is determined (RFC 9112 §6.3).
package enum BodyFraming: Hashable, Sendable {
    /// There is no body, whatever the fields are.
    case none
    /// The body has this number of bytes (Content-Length).
    case length(UInt64)
    /// The body is chunked (Transfer-Encoding).
    case chunked
    /// The body ends with the connection; responses only.
    case untilClose
}

/// The framing of the body of a request to send (RFC 9112 §6).
package enum RequestBodyFraming: Hashable, Sendable {
    /// There is no body, and no field that describes one.
    case none
    /// The body has this number of bytes (Content-Length); 0 if the field is sent for an empty body
    /// (RFC 9110 §8.6).
    case length(UInt64)
    case chunked
    /// Bytes of another protocol follow until one side closes the connection (RFC 9110 §7.8).
    case upgraded

    /// Creates the framing of a received request; `nil` for a framing that only responses have.
    package init?(_ framing: BodyFraming) {
        switch framing {
        case .none: self = .none
        case .length(let count): self = .length(count)
        case .chunked: self = .chunked
        case .untilClose: return nil
        }
    }

    /// True if the head is followed by no body byte.
    package var isEmpty: Bool { self == .none || self == .length(0) }

    /// Appends the framing's field line, with its CR LF.
    package func appendField(to head: inout [UInt8]) {
        switch self {
        case .none, .upgraded: break
        case .length(let count):
            head += Array("Content-Length: ".utf8)
            ASCII.append(count, to: &head)
            head += [Byte.carriageReturn, Byte.lineFeed]
        case .chunked: head += Array("Transfer-Encoding: chunked\r\n".utf8)
        }
    }
}
