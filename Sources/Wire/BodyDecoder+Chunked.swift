import Ground
import HTTPRules

/// The lines of the chunked coding, byte by byte (RFC 9112 §7.1).
extension BodyDecoder {
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
        let isToken = ByteClass.token.contains(byte)
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

    private func afterExtension(_ byte: UInt8) -> State {
        switch byte {
        case Byte.carriageReturn: .sizeLineFeed
        case Byte.semicolon: .extensionNameStart
        case Byte.lineFeed: .failed(.lineEnd)
        default: .failed(.malformedExtension)
        }
    }

    private mutating func decodeTrailer(_ byte: UInt8) -> State {
        switch state {
        case .trailerStart:
            if byte == Byte.carriageReturn { return .lastLineFeed }
            name = (0, 0, 0)
            nameBytes = 0
            if FieldLineParser.isSpace(byte) { return .failed(.trailer(.leadingSpace)) }
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

    private mutating func decodeTrailerName(_ byte: UInt8) -> State {
        if byte == Byte.colon {
            return isForbiddenTrailerName ? .failed(.forbiddenTrailer) : .trailerValue
        }
        guard ByteClass.token.contains(byte) else {
            let isSpace = FieldLineParser.isSpace(byte)
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

    private var isForbiddenTrailerName: Bool {
        guard nameBytes <= 24 else { return false }
        return Trailers.isForbidden(FieldName(first: name.0, second: name.1, third: name.2))
    }
}
