/// How many columns of a terminal text takes: none for what is drawn over the character before it,
/// two for East Asian wide ones and emoji (UAX #11), else one.
enum TextWidth {
    static func columns(of text: some StringProtocol) -> Int {
        // Most text is ASCII without control characters.
        var columns = 0
        for byte in text.utf8 {
            guard byte < 0x80 else { return text.reduce(0) { $0 + Self.columns(of: $1) } }
            columns += 1
        }
        return columns
    }

    /// As much of `text` as `columnsMax` columns can take.
    static func prefix(of text: String, columnsMax: Int) -> Substring {
        var room = columnsMax
        return text.prefix { character in
            room -= columns(of: character)
            return room >= 0
        }
    }

    private static func columns(of character: Character) -> Int {
        character.unicodeScalars.reduce(0) { max($0, columns(of: $1)) }
    }

    private static func columns(of scalar: Unicode.Scalar) -> Int {
        if scalar.isASCII { return 1 }
        let properties = scalar.properties
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        return properties.isEmojiPresentation || wide.contains { $0.contains(scalar.value) } ? 2 : 1
    }

    /// Blocks of wide characters, by the first and last of their code points.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF,
        0xA000...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
        0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1_B000...0x1_B2FF, 0x2_0000...0x3_FFFD,
    ]
}
