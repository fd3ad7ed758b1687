import Ground
import HTTPRules

/// What a parser remembers of the fields that decide where a message ends and what becomes of the
/// connection, while it reads them.
struct FramingFields {
    var contentLength: UInt64?
    var hasHost = false
    var codings = TransferCodings()
    /// `close` occurs in Connection.
    var hasCloseOption = false
    /// `keep-alive` occurs in Connection.
    var hasKeepAliveOption = false
    var expectsContinue = false

    /// True for the names that a parser has to act on.
    @inline(__always)
    static func isRelevant(_ name: FieldName) -> Bool {
        switch name {
        case .host, .contentLength, .transferEncoding, .connection, .expect: true
        default: false
        }
    }

    /// Notes the options of one Connection line (RFC 9110 §7.6.1).
    ///
    /// What is no token says nothing.
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

    /// The five bytes are `close`; what is missing of the word is 0, and with the case bit a space.
    @inline(__always)
    private static func isClose(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        bytes.word(at: range.lowerBound, end: range.upperBound) | ByteLanes.caseBits
            == 0x2020_2065_736F_6C63
    }

    /// The ten bytes are `keep-alive`; a value holds no CR that the case bit would make a `-`.
    @inline(__always)
    private static func isKeepAlive(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
        bytes.word(at: range.lowerBound, end: range.upperBound) | ByteLanes.caseBits
            == 0x696C_612D_7065_656B
            && bytes.word(at: range.lowerBound &+ 8, end: range.upperBound) | ByteLanes.caseBits
                == 0x2020_2020_2020_6576
    }

    /// Whether the connection may be used again (RFC 9112 §9.3).
    func isPersistent(isHTTP10: Bool) -> Bool {
        !hasCloseOption && (!isHTTP10 || hasKeepAliveOption)
    }
}

/// What the Transfer-Encoding lines of a message name, in order (RFC 9112 §6.1).
struct TransferCodings {
    private(set) var chunkedCount = 0
    /// A coding other than `chunked` occurs.
    private(set) var hasOther = false
    /// An element is no coding name, or `chunked` is followed by another coding.
    private(set) var isMalformed = false

    var isChunkedOnly: Bool { chunkedCount == 1 && !hasOther && !isMalformed }

    /// Notes one line; an empty element is malformed, since framing is not to be guessed.
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

    private mutating func recordOther(_ bytes: Span<UInt8>, at element: Range<Int>) {
        hasOther = true
        if element.isEmpty { isMalformed = true }
        for index in element where !ByteClass.token.contains(bytes[index]) { isMalformed = true }
    }
}

/// One element of a comma-separated list without the white space around it (RFC 9110 §5.6.1).
struct ListElement {
    let range: Range<Int>
    /// Past the comma that ends the element, or the end of the list.
    let next: Int

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
        while lower < upper, FieldLineParser.isSpace(bytes.byte(at: lower, end: end)) {
            lower &+= 1
        }
        while upper > lower, FieldLineParser.isSpace(bytes.byte(at: upper &- 1, end: end)) {
            upper &-= 1
        }
        return ListElement(range: lower..<upper, next: comma &+ 1)
    }
}
