import Telemetry

/// How text is set off on a terminal that has colours.
package enum TextStyle: Hashable, Sendable {
    case plain
    case strong
    case faint
    case good
    case warning
    case bad
    case accent
    /// Light and dark exchanged, for heads and for what is chosen.
    case reversed

    /// Parameters of SGR (ECMA-48 §8.3.117), nil for none.
    ///
    /// Colours are those that the user has chosen for the terminal.
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

/// Text on one line of a terminal, in pieces that may look differently.
///
/// Whatever it is made of, nothing in it can move the cursor or change the terminal: control and
/// format characters are escaped when it is made.
package struct TextLine: Hashable, Sendable {
    package struct Piece: Hashable, Sendable {
        package let text: String
        package let style: TextStyle
    }

    package private(set) var pieces: [Piece] = []
    /// Columns of a terminal that it takes.
    package private(set) var columns = 0

    /// Nothing.
    package init() {}

    package init(_ text: String, _ look: TextStyle = .plain) {
        append(text, look)
    }

    package mutating func append(_ text: String, _ look: TextStyle = .plain) {
        guard !text.isEmpty else { return }
        appendEscaped(text.singleLine, look)
    }

    /// `text` must have been escaped.
    private mutating func appendEscaped(_ text: String, _ look: TextStyle) {
        guard !text.isEmpty else { return }
        columns += TextWidth.columns(of: text)
        if let last = pieces.last, last.style == look {
            pieces[pieces.count - 1] = Piece(text: last.text + text, style: look)
        } else {
            pieces.append(Piece(text: text, style: look))
        }
    }

    package static func + (left: TextLine, right: TextLine) -> TextLine {
        var sum = left
        for piece in right.pieces { sum.appendEscaped(piece.text, piece.style) }
        return sum
    }

    package static func += (left: inout TextLine, right: TextLine) { left = left + right }

    /// Without looks.
    package var text: String { pieces.map(\.text).joined() }

    /// At most `columnsMax` columns of it, the last an ellipsis if something is left out.
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

    /// Exactly `count` columns of it, with blanks behind it, or before it.
    package func padded(to count: Int, isRight: Bool = false, with look: TextStyle = .plain)
        -> TextLine
    {
        let line = truncated(to: count)
        let blanks = TextLine(String(repeating: " ", count: count - line.columns), look)
        return isRight ? blanks + line : line + blanks
    }

    /// All of it in one look.
    package func styled(_ look: TextStyle) -> TextLine { TextLine(text, look) }

    /// What is written to a terminal, or, without colours, into a file; no blanks at its end.
    package func rendered(isColoured: Bool) -> String {
        var ended = pieces[...]
        var tail = ""
        // Blanks that are reversed can be seen.
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
