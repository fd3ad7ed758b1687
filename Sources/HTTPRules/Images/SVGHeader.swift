/// The root element of an SVG, behind what an XML document may begin with (XML 1.0 §2.8).
///
/// Its size is not limited: it is not made of pixels.
struct SVGHeader: ImageHeaderParser {
    let format = ImageFormat.svg
    private(set) var neededRange = 0..<3
    /// UTF-16, and whether the higher byte comes first; nil for whatever has ASCII in it.
    private var isBigUTF16: Bool?
    private var state = State.text
    /// In the brackets of the document type.
    private var isInSubset = false
    /// The quote that ends the string being read in a declaration.
    private var quote: UInt8?
    /// The two characters before this one, in a comment or an instruction.
    private var last: (UInt8, UInt8) = (0, 0)
    /// The beginning of the root's name, without its prefix.
    private var name: [UInt8] = []

    private enum State {
        /// Between markup.
        case text
        /// Behind `<`.
        case markup
        /// Behind `<!`.
        case exclamation
        /// Behind `<!-`.
        case dash
        case comment
        case instruction
        /// The document type, or what is declared in its brackets.
        case declaration
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

    /// The byte order mark, or the first characters.
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

    /// Takes a character, of which only those of ASCII mean something.
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
            // Its own dashes do not end it.
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
        // References to parameter entities.
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
        // More than the name that is sought has.
        default: if name.count < 4 { name.append(character) }
        }
        return nil
    }
}
