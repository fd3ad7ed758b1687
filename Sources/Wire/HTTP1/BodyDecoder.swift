package import Ground
package import HTTPRules

/// The limits on a chunked body's overhead.
package struct BodyLimits: Hashable, Sendable {
    /// The maximum size in bytes of all chunk extensions of a body, so that tiny chunks cannot
    /// carry unlimited extensions.
    package var extensionBytesMax: Int
    /// The maximum size in bytes of the trailer section, including line ends.
    package var trailerBytesMax: Int

    /// Creates limits in bytes.
    package init(extensionBytesMax: Int = 4 * 1024, trailerBytesMax: Int = 8 * 1024) {
        self.extensionBytesMax = extensionBytesMax
        self.trailerBytesMax = trailerBytesMax
    }
}

/// The result of ``BodyDecoder/next(_:from:)``.
package enum BodyDecodingResult: Hashable, Sendable {
    /// A non-empty piece of the body; continue at `next`.
    case data(Extent, next: Int)
    /// All bytes are consumed; continue with the bytes that follow them.
    case needsMore
    /// The body ends before `next`. Further calls return the same.
    case end(next: Int)
    /// The end of the body cannot be determined; close the connection.
    case refused(BodyDecodingError)
}

/// The reason why a body cannot be decoded.
package enum BodyDecodingError: Hashable, Sendable {
    /// The size is not hexadecimal, or is followed by an invalid byte (RFC 9112 §7.1).
    case malformedChunkSize
    /// The size is 2⁶⁴ bytes or more, or has more than 16 digits.
    case chunkTooLarge
    /// The extension is not `;name[=value]` without white space (RFC 9112 §7.1.1).
    case malformedExtension
    case extensionsTooLong(bytesMax: Int)
    /// A line of the chunked coding, or a chunk's data, does not end in CR LF.
    case lineEnd
    case trailer(LineSyntaxError)
    case trailersTooLong(bytesMax: Int)
    /// A trailer field would change framing or routing (RFC 9110 §6.5.1).
    case forbiddenTrailer

    /// The status code of the response, if the body is that of a request.
    package var status: UInt16 { 400 }

    /// The explanation for the sender of the body, one sentence.
    package var message: String {
        switch self {
        case .malformedChunkSize: "A chunk's size is not a hexadecimal number alone."
        case .chunkTooLarge: "A chunk's size is too large."
        case .malformedExtension: "A chunk extension is malformed."
        case .extensionsTooLong(let bytesMax):
            "The chunk extensions are too long; \(bytesMax) bytes are allowed."
        case .lineEnd: "A line of the chunked coding does not end in CR LF."
        case .trailer(let fault): fault.message
        case .trailersTooLong(let bytesMax):
            "The trailer section is too long; \(bytesMax) bytes are allowed."
        case .forbiddenTrailer: "A trailer field must not be one for framing or routing."
        }
    }
}

/// Decodes the body that follows a head, for requests and responses.
///
/// The caller need not keep consumed bytes: these are all bytes before `next`, and after
/// `.needsMore` all bytes passed. Chunk extensions are validated and dropped, and so are trailers,
/// unless they are to be kept. Instances are used by one thread at a time.
package struct BodyDecoder: Sendable {
    /// The limits on the overhead of a chunked body.
    package let limits: BodyLimits
    /// True if ``trailers`` are kept.
    let keepsTrailers: Bool
    /// The trailer section received so far, if it is kept.
    var trailerSection: [UInt8] = []
    var state: State
    /// The bytes left in the body or the current chunk; 0 before a chunk's size.
    var remaining: UInt64 = 0
    /// The number of hexadecimal digits read of the current chunk's size.
    var digits = 0
    var extensionBytes = 0
    var trailerBytes = 0
    /// The current trailer field's name, as ``FieldName/init(first:second:third:)`` takes it.
    var name: (UInt64, UInt64, UInt64) = (0, 0, 0)
    var nameBytes = 0

    enum State: Hashable, Sendable {
        /// Within a body of known length; ``remaining`` bytes follow.
        case length
        case untilClose
        case done
        /// Before or within the digits of a chunk's size.
        case size
        /// LF must follow, then data, or the trailer section after the chunk of size 0.
        case sizeLineFeed
        /// After `;`; at least one byte of a name must follow.
        case extensionNameStart
        case extensionName
        /// After `=`; a token or a quoted string must follow.
        case extensionValueStart
        case extensionValue
        case extensionQuoted
        /// After a backslash in a quoted string.
        case extensionEscaped
        /// After the closing quote.
        case extensionAfterQuote
        /// Within a chunk; ``remaining`` bytes of it follow.
        case chunk
        case chunkCarriageReturn
        case chunkLineFeed
        case trailerStart
        case trailerName
        case trailerValue
        case trailerLineFeed
        /// LF must follow and ends the body.
        case lastLineFeed
        case failed(BodyDecodingError)
    }

    /// Creates a decoder for a new body.
    package init(
        _ framing: BodyFraming, limits: BodyLimits = BodyLimits(), keepsTrailers: Bool = false
    ) {
        self.limits = limits
        self.keepsTrailers = keepsTrailers
        switch framing {
        case .none: state = .done
        case .length(0): state = .done
        case .length(let count):
            state = .length
            remaining = count
        case .chunked: state = .size
        case .untilClose: state = .untilClose
        }
    }

    /// True if the body is complete: ``next(_:from:)`` returns `.end`.
    package var isAtEnd: Bool { state == .done }

    /// The trailer fields; empty before the end of the body, and unless they are kept.
    package var trailers: Trailers {
        guard isAtEnd, !trailerSection.isEmpty else { return Trailers() }
        // The last line end belongs to the section, not to a field.
        return Trailers(trailerSection.dropLast(2)) ?? Trailers()
    }

    /// Decodes the next piece of the body.
    ///
    /// - Parameters:
    ///   - bytes: the received bytes.
    ///   - start: the offset to continue at, at most the count of `bytes`.
    /// - Returns: a piece, the end, an error, or that more bytes are needed.
    package mutating func next(_ bytes: Span<UInt8>, from start: Int) -> BodyDecodingResult {
        precondition(start >= 0 && start <= bytes.count && bytes.count <= UInt32.max)
        var index = start
        while true {
            switch state {
            case .done: return .end(next: index)
            case .failed(let refusal): return .refused(refusal)
            case .length, .chunk:
                guard index < bytes.count else { return .needsMore }
                return data(from: index, available: bytes.count - index)
            case .untilClose:
                guard index < bytes.count else { return .needsMore }
                let piece = Extent(start: index, count: bytes.count - index)
                return .data(piece, next: bytes.count)
            default:
                guard index < bytes.count else { return .needsMore }
                consume(bytes[index])
                index += 1
            }
        }
    }

    /// Returns the bytes at `index` that belong to the body of known length or to the chunk, and
    /// moves to the state after them.
    private mutating func data(from index: Int, available: Int) -> BodyDecodingResult {
        let count = Int(min(remaining, UInt64(available)))
        remaining -= UInt64(count)
        if remaining == 0 { state = state == .chunk ? .chunkCarriageReturn : .done }
        return .data(Extent(start: index, count: count), next: index + count)
    }
}

/// Decodes the lines of the chunked coding, byte by byte (RFC 9112 §7.1).
extension BodyDecoder {
    /// Processes one byte outside the data of chunks; an invalid one leads to the state `failed`.
    mutating func consume(_ byte: UInt8) {
        switch state {
        case .size: state = decodeSize(byte)
        case .sizeLineFeed:
            guard byte == Byte.lineFeed else { return fail(.lineEnd) }
            state = remaining == 0 ? .trailerStart : .chunk
        case .chunkCarriageReturn:
            state = byte == Byte.carriageReturn ? .chunkLineFeed : .failed(.lineEnd)
        case .chunkLineFeed:
            guard byte == Byte.lineFeed else { return fail(.lineEnd) }
            digits = 0
            state = .size
        case .trailerStart, .trailerName, .trailerValue, .trailerLineFeed, .lastLineFeed:
            trailerBytes += 1
            guard trailerBytes <= limits.trailerBytesMax else {
                return fail(.trailersTooLong(bytesMax: limits.trailerBytesMax))
            }
            if keepsTrailers { trailerSection.append(byte) }
            state = decodeTrailer(byte)
        default:
            extensionBytes += 1
            guard extensionBytes <= limits.extensionBytesMax else {
                return fail(.extensionsTooLong(bytesMax: limits.extensionBytesMax))
            }
            state = decodeChunkExtension(byte)
        }
    }

    private mutating func fail(_ refusal: BodyDecodingError) {
        state = .failed(refusal)
    }

    private mutating func decodeSize(_ byte: UInt8) -> State {
        if let value = ASCII.hexValue(byte) {
            guard digits < 16 else { return .failed(.chunkTooLarge) }
            digits += 1
            remaining = remaining << 4 | UInt64(value)
            return .size
        }
        guard digits > 0 else { return .failed(.malformedChunkSize) }
        switch byte {
        case Byte.carriageReturn: return .sizeLineFeed
        case Byte.semicolon: return .extensionNameStart
        case Byte.lineFeed: return .failed(.lineEnd)
        default: return .failed(.malformedChunkSize)
        }
    }

    private func decodeChunkExtension(_ byte: UInt8) -> State {
        let isToken = ByteSet.token.contains(byte)
        switch state {
        case .extensionNameStart:
            return isToken ? .extensionName : .failed(.malformedExtension)
        case .extensionName:
            if isToken { return .extensionName }
            return byte == Byte.equals ? .extensionValueStart : afterExtension(byte)
        case .extensionValueStart:
            if byte == Byte.quote { return .extensionQuoted }
            return isToken ? .extensionValue : .failed(.malformedExtension)
        case .extensionValue: return isToken ? .extensionValue : afterExtension(byte)
        case .extensionQuoted:
            if byte == Byte.quote { return .extensionAfterQuote }
            if byte == Byte.backslash { return .extensionEscaped }
            return byte.isFieldContent ? .extensionQuoted : .failed(.malformedExtension)
        case .extensionEscaped:
            return byte.isFieldContent ? .extensionQuoted : .failed(.malformedExtension)
        default: return afterExtension(byte)
        }
    }

    /// Returns the state after a byte that must end the size's line or begin another extension.
    private func afterExtension(_ byte: UInt8) -> State {
        switch byte {
        case Byte.carriageReturn: .sizeLineFeed
        case Byte.semicolon: .extensionNameStart
        case Byte.lineFeed: .failed(.lineEnd)
        default: .failed(.malformedExtension)
        }
    }

    /// Returns the state after a byte of the trailer section.
    private mutating func decodeTrailer(_ byte: UInt8) -> State {
        switch state {
        case .trailerStart:
            if byte == Byte.carriageReturn { return .lastLineFeed }
            name = (0, 0, 0)
            nameBytes = 0
            if ASCII.isWhitespace(byte) { return .failed(.trailer(.leadingSpace)) }
            if byte == Byte.colon { return .failed(.trailer(.emptyName)) }
            return decodeTrailerName(byte)
        case .trailerName: return decodeTrailerName(byte)
        case .trailerValue:
            if byte.isFieldContent { return .trailerValue }
            switch byte {
            case Byte.carriageReturn: return .trailerLineFeed
            case Byte.lineFeed: return .failed(.trailer(.bareLineFeed))
            default: return .failed(.trailer(.controlByte(byte)))
            }
        case .trailerLineFeed:
            guard byte == Byte.lineFeed else { return .failed(.trailer(.bareCarriageReturn)) }
            return .trailerStart
        default:
            return byte == Byte.lineFeed ? .done : .failed(.trailer(.bareCarriageReturn))
        }
    }

    /// Adds a byte to the trailer field's name and returns the next state; a colon ends the name,
    /// which is then checked.
    private mutating func decodeTrailerName(_ byte: UInt8) -> State {
        if byte == Byte.colon {
            return isForbiddenTrailerName ? .failed(.forbiddenTrailer) : .trailerValue
        }
        guard ByteSet.token.contains(byte) else {
            let isSpace = ASCII.isWhitespace(byte)
            return .failed(.trailer(isSpace ? .spaceBeforeColon : .invalidNameToken))
        }
        let letter = UInt64(ASCII.lowercased(byte)) << UInt64((nameBytes & 7) * 8)
        switch nameBytes >> 3 {
        case 0: name.0 |= letter
        case 1: name.1 |= letter
        case 2: name.2 |= letter
        default: break
        }
        nameBytes += 1
        return .trailerName
    }

    /// True if the current trailer field's name is forbidden in trailers.
    private var isForbiddenTrailerName: Bool {
        guard nameBytes <= 24 else { return false }
        return Trailers.isForbidden(FieldName(first: name.0, second: name.1, third: name.2))
    }
}

/// The trailer fields of a chunked body (RFC 9110 §6.5, RFC 9112 §7.1.2).
///
/// They are never merged into the head; a relay forwards them as trailers.
package struct Trailers: Hashable, Sendable {
    /// The field lines, each with its CR LF, without the empty line that ends the section.
    package let bytes: [UInt8]
    /// The lines in the order received; extents refer to ``bytes``.
    package let lines: [FieldLine]

    /// Creates an empty section.
    package init() {
        bytes = []
        lines = []
    }

    /// Parses a section in the form of ``bytes``; `nil` if it is malformed, or if a field affects
    /// framing or routing.
    package init?(_ section: [UInt8]) {
        let span = section.span
        var lines: [FieldLine] = []
        var position = 0
        while position < span.count {
            guard
                case .line(let mark, let next) = FieldLineParser.parseLine(
                    span, at: position, end: span.count),
                !Self.isForbidden(mark.id)
            else { return nil }
            lines.append(mark.line)
            position = next
        }
        bytes = section
        self.lines = lines
    }

    /// True if there are no fields.
    package var isEmpty: Bool { lines.isEmpty }

    /// Returns true for a name that is forbidden in trailers (RFC 9110 §6.5.1).
    static func isForbidden(_ name: FieldName) -> Bool {
        switch name {
        case .contentLength, .transferEncoding, .host: true
        default: false
        }
    }
}
