/// A Swift file, and the same with comments and the insides of string literals blanked.
///
/// Interpolations inside literals are blanked too. Lines keep their numbers and lengths.
struct SwiftText: Sendable {
    let lines: [String]
    /// ``lines`` without what is not code.
    let code: [String]

    init(_ text: String) {
        lines = Self.split(text)
        var blanker = Blanker(Array(text.utf8))
        code = Self.split(String(decoding: blanker.run(), as: UTF8.self))
    }

    /// The lines without the empty one after the last line break.
    var lineCount: Int { lines.last?.isEmpty == true ? lines.count - 1 : lines.count }

    private static func split(_ text: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }
}

extension Substring {
    /// Where `text` first stands, compared by bytes.
    ///
    /// `firstRange(of:)` builds a table for each search, which took most of these tests' time.
    func place(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            var (end, place) = (start, text.utf8.startIndex)
            while place < text.utf8.endIndex, end < endIndex, utf8[end] == text.utf8[place] {
                end = utf8.index(after: end)
                place = text.utf8.index(after: place)
            }
            if place == text.utf8.endIndex { return start..<end }
            start = utf8.index(after: start)
        }
        return nil
    }
}

/// Walks over a file once and replaces everything that is not code by spaces.
///
/// By bytes: by characters it took most of the time of these tests.
private struct Blanker {
    private let text: [UInt8]
    private var index = 0
    private var output: [UInt8] = []

    private static let newline = UInt8(ascii: "\n")
    private static let quote = UInt8(ascii: "\"")
    private static let pound = UInt8(ascii: "#")
    private static let slash = UInt8(ascii: "/")
    private static let star = UInt8(ascii: "*")
    private static let backslash = UInt8(ascii: "\\")
    private static let space = UInt8(ascii: " ")

    init(_ text: [UInt8]) {
        self.text = text
        output.reserveCapacity(text.count)
    }

    mutating func run() -> [UInt8] {
        while index < text.count {
            let byte = text[index]
            if byte == Self.slash, starts(Self.slash, Self.slash) {
                while index < text.count, text[index] != Self.newline { blank() }
            } else if byte == Self.slash, starts(Self.slash, Self.star) {
                blankComment()
            } else if byte == Self.quote || byte == Self.pound, let pounds = literalPounds() {
                blankLiteral(pounds)
            } else {
                output.append(byte)
                index += 1
            }
        }
        return output
    }

    private func starts(_ first: UInt8, _ second: UInt8) -> Bool {
        index + 1 < text.count && text[index] == first && text[index + 1] == second
    }

    /// True if `count` bytes from `start` on are all `byte`.
    private func repeats(_ byte: UInt8, _ count: Int, from start: Int) -> Bool {
        guard start + count <= text.count else { return false }
        for index in start..<start + count where text[index] != byte { return false }
        return true
    }

    /// One space for each character, so that lines keep their lengths.
    private mutating func blank() {
        let byte = text[index]
        if byte == Self.newline {
            output.append(byte)
        } else if byte & 0xC0 != 0x80 {
            output.append(Self.space)
        }
        index += 1
    }

    private mutating func blank(count: Int) {
        for _ in 0..<count where index < text.count { blank() }
    }

    private mutating func blankComment() {
        var depth = 0
        repeat {
            if starts(Self.slash, Self.star) {
                depth += 1
                blank(count: 2)
            } else if starts(Self.star, Self.slash) {
                depth -= 1
                blank(count: 2)
            } else {
                blank()
            }
        } while depth > 0 && index < text.count
    }

    /// The number of `#` before a string literal that starts here; nil if none starts here.
    private func literalPounds() -> Int? {
        var end = index
        while end < text.count, text[end] == Self.pound { end += 1 }
        return end < text.count && text[end] == Self.quote ? end - index : nil
    }

    private mutating func blankLiteral(_ pounds: Int) {
        blank(count: pounds)
        let isMultiline = repeats(Self.quote, 3, from: index)
        let quotes = isMultiline ? 3 : 1
        blank(count: quotes)
        while index < text.count {
            if repeats(Self.quote, quotes, from: index),
                repeats(Self.pound, pounds, from: index + quotes)
            {
                return blank(count: quotes + pounds)
            }
            if !isMultiline, text[index] == Self.newline { return }
            let isEscape =
                text[index] == Self.backslash && repeats(Self.pound, pounds, from: index + 1)
            blank(count: isEscape ? 2 + pounds : 1)
        }
    }
}
