import Telemetry

/// The style of text on a terminal with colours.
package enum TextStyle: Hashable, Sendable {
    case plain
    case strong
    case faint
    case good
    case warning
    case bad
    case accent
    /// Foreground and background exchanged, for headings and selections.
    case reversed

    /// The parameters of SGR (ECMA-48 §8.3.117); `nil` for none.
    ///
    /// The colours are those of the terminal's palette.
    var parameters: String? {
        switch self {
        case .plain: nil
        case .strong: "1"
        case .faint: "2"
        case .good: "32"
        case .warning: "33"
        case .bad: "31"
        case .accent: "36"
        case .reversed: "7"
        }
    }
}

/// Text on one line of a terminal, in pieces with styles.
///
/// Control and format characters are escaped on creation, so that no content can move the cursor or
/// change the terminal.
package struct TextLine: Hashable, Sendable {
    /// A piece of text with its style.
    package struct Piece: Hashable, Sendable {
        /// The escaped text.
        package let text: String
        /// The style.
        package let style: TextStyle
    }

    /// The pieces from left to right.
    package private(set) var pieces: [Piece] = []
    /// The number of terminal columns.
    package private(set) var columns = 0

    /// Creates an empty line.
    package init() {}

    /// Creates a line from `text`, escaping control and format characters.
    package init(_ text: String, _ look: TextStyle = .plain) {
        append(text, look)
    }

    /// Escapes text and appends it.
    package mutating func append(_ text: String, _ look: TextStyle = .plain) {
        guard !text.isEmpty else { return }
        appendEscaped(text.singleLine, look)
    }

    /// Appends text that is already escaped.
    private mutating func appendEscaped(_ text: String, _ look: TextStyle) {
        guard !text.isEmpty else { return }
        columns += TextWidth.columns(of: text)
        if let last = pieces.last, last.style == look {
            pieces[pieces.count - 1] = Piece(text: last.text + text, style: look)
        } else {
            pieces.append(Piece(text: text, style: look))
        }
    }

    /// Returns the two lines in a row.
    package static func + (left: TextLine, right: TextLine) -> TextLine {
        var sum = left
        for piece in right.pieces { sum.appendEscaped(piece.text, piece.style) }
        return sum
    }

    /// Appends a line.
    package static func += (left: inout TextLine, right: TextLine) { left = left + right }

    /// The text without styles.
    package var text: String { pieces.map(\.text).joined() }

    /// Returns at most `columnsMax` columns, the last an ellipsis if something is cut.
    package func truncated(to columnsMax: Int) -> TextLine {
        guard columns > columnsMax else { return self }
        guard columnsMax > 0 else { return TextLine() }
        var line = TextLine()
        var room = columnsMax - 1
        for piece in pieces {
            let kept = TextWidth.prefix(of: piece.text, columnsMax: room)
            line.appendEscaped(String(kept), piece.style)
            guard kept.endIndex == piece.text.endIndex else {
                line.appendEscaped("…", piece.style)
                return line
            }
            room -= TextWidth.columns(of: piece.text)
        }
        return line
    }

    /// Returns exactly `count` columns: cut, or padded with blanks on the right, or on the left if
    /// `isRight`.
    package func padded(to count: Int, isRight: Bool = false, with look: TextStyle = .plain)
        -> TextLine
    {
        let line = truncated(to: count)
        let blanks = TextLine(String(repeating: " ", count: count - line.columns), look)
        return isRight ? blanks + line : line + blanks
    }

    /// Returns the text in one style.
    package func styled(_ look: TextStyle) -> TextLine { TextLine(text, look) }

    /// Returns the line with escape sequences, or without them if not coloured; trailing blanks are
    /// removed unless they are visible.
    package func rendered(isColoured: Bool) -> String {
        var ended = pieces[...]
        var tail = ""
        // Reversed blanks are visible.
        while let last = ended.last, !isColoured || last.style != .reversed {
            tail = String(last.text.reversed().drop { $0 == " " }.reversed())
            ended.removeLast()
            guard tail.isEmpty else {
                ended.append(Piece(text: tail, style: last.style))
                break
            }
        }
        guard isColoured else { return ended.map(\.text).joined() }
        return ended.map { piece in
            piece.style.parameters.map { "\u{1B}[\($0)m\(piece.text)\u{1B}[0m" } ?? piece.text
        }.joined()
    }
}

/// The width of text on a terminal: no column for combining characters, two for East Asian wide
/// ones and emoji (UAX #11), otherwise one.
enum TextWidth {
    /// Returns the number of columns of a text.
    static func columns(of text: some StringProtocol) -> Int {
        // Most text is ASCII without control characters.
        var columns = 0
        for byte in text.utf8 {
            guard byte < 0x80 else { return text.reduce(0) { $0 + Self.columns(of: $1) } }
            columns += 1
        }
        return columns
    }

    /// Returns as much of `text` as fits into `columnsMax` columns.
    static func prefix(of text: String, columnsMax: Int) -> Substring {
        var room = columnsMax
        return text.prefix { character in
            room -= columns(of: character)
            return room >= 0
        }
    }

    /// Returns the columns of a character.
    private static func columns(of character: Character) -> Int {
        character.unicodeScalars.reduce(0) { max($0, columns(of: $1)) }
    }

    /// Returns the columns of a code point.
    private static func columns(of scalar: Unicode.Scalar) -> Int {
        if scalar.isASCII { return 1 }
        let properties = scalar.properties
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        return properties.isEmojiPresentation || wide.contains { $0.contains(scalar.value) } ? 2 : 1
    }

    /// The ranges of wide characters, by their first and last code points.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF,
        0xA000...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
        0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1_B000...0x1_B2FF, 0x2_0000...0x3_FFFD,
    ]
}
