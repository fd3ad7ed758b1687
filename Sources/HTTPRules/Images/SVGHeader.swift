import Ground

/// The parser of an SVG's root element, after the prolog of an XML document (XML 1.0 §2.8).
///
/// SVG has no size in pixels, so none is read or limited.
struct SVGHeader: ImageHeaderParser {
    let format = ImageFormat.svg
    private(set) var neededRange = 0..<3
    /// True for big-endian, false for little-endian UTF-16; `nil` for encodings that contain ASCII.
    private var isBigUTF16: Bool?
    private var state = State.text
    /// True inside the brackets of the document type declaration.
    private var isInSubset = false
    /// The quote that ends the current string in a declaration.
    private var quote: UInt8?
    /// The two preceding characters in a comment or processing instruction.
    private var last: (UInt8, UInt8) = (0, 0)
    /// The first bytes of the root's name, without its prefix.
    private var name: [UInt8] = []

    /// The construct in which the next character lies.
    private enum State {
        /// Between markup.
        case text
        /// After `<`.
        case markup
        /// After `<!`.
        case exclamation
        /// After `<!-`.
        case dash
        case comment
        case instruction
        /// In the document type declaration, or in a declaration inside its brackets.
        case declaration
        /// In the name of the root element.
        case name
    }

    mutating func consume(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        let isStart = neededRange.lowerBound == 0
        neededRange = neededRange.upperBound..<neededRange.upperBound + 1
        if isStart { return consumeStart(field) }
        guard let isBigUTF16 else { return take(field[0]) }
        neededRange = neededRange.lowerBound..<neededRange.lowerBound + 2
        let unit = isBigUTF16 ? field.big16(at: 0) : field.big16(at: 0).byteSwapped
        return take(unit < 0x80 ? UInt8(unit) : 0x80)
    }

    /// Parses the byte order mark, or the first characters.
    private mutating func consumeStart(_ field: Span<UInt8>) -> ImageHeaderOutcome? {
        if field.hasPrefix(with: [0xFE, 0xFF]) || field.hasPrefix(with: [0xFF, 0xFE]) {
            isBigUTF16 = field[0] == 0xFE
            // The third byte belongs to the first character.
            neededRange = 2..<4
            return nil
        }
        if field.hasPrefix(with: [0xEF, 0xBB, 0xBF]) { return nil }
        for index in 0..<field.count {
            if let outcome = take(field[index]) { return outcome }
        }
        return nil
    }

    /// Parses a character; only ASCII characters have a meaning.
    private mutating func take(_ character: UInt8) -> ImageHeaderOutcome? {
        defer { last = (last.1, character) }
        switch state {
        case .text: return consumeText(character)
        case .markup: return consumeMarkup(character)
        case .name: return consumeName(character)
        case .exclamation:
            state = character == UInt8(ascii: "-") ? .dash : .declaration
        case .dash:
            guard character == UInt8(ascii: "-") else { return .otherFormat }
            state = .comment
            // The dashes of `<!--` do not end the comment.
            last = (0, 0)
            return nil
        case .comment:
            let isEnd = last == (UInt8(ascii: "-"), UInt8(ascii: "-"))
            if isEnd, character == UInt8(ascii: ">") { state = .text }
        case .instruction:
            let isEnd = last.1 == UInt8(ascii: "?")
            if isEnd, character == UInt8(ascii: ">") { state = .text }
        case .declaration: consumeDeclaration(character)
        }
        return nil
    }

    private mutating func consumeText(_ character: UInt8) -> ImageHeaderOutcome? {
        switch character {
        case UInt8(ascii: "<"): state = .markup
        case 0x20, 0x09, 0x0A, 0x0D: break
        case UInt8(ascii: "]") where isInSubset:
            isInSubset = false
            state = .declaration
        // References to parameter entities are skipped.
        case _ where isInSubset: break
        default: return .otherFormat
        }
        return nil
    }

    private mutating func consumeMarkup(_ character: UInt8) -> ImageHeaderOutcome? {
        switch character {
        case UInt8(ascii: "?"): state = .instruction
        case UInt8(ascii: "!"): state = .exclamation
        case _ where isInSubset: return .otherFormat
        default:
            state = .name
            return consumeName(character)
        }
        return nil
    }

    private mutating func consumeDeclaration(_ character: UInt8) {
        if let quote {
            if character == quote { self.quote = nil }
            return
        }
        switch character {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): quote = character
        case UInt8(ascii: ">"): state = .text
        case UInt8(ascii: "[") where !isInSubset:
            isInSubset = true
            state = .text
        default: break
        }
    }

    private mutating func consumeName(_ character: UInt8) -> ImageHeaderOutcome? {
        switch character {
        case UInt8(ascii: ":"): name = []
        case UInt8(ascii: "/"), UInt8(ascii: ">"), 0x20, 0x09, 0x0A, 0x0D:
            return name == Array("svg".utf8) ? .size(nil) : .otherFormat
        // One byte more than the name that is searched for.
        default: if name.count < 4 { name.append(character) }
        }
        return nil
    }
}
