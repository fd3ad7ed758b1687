/// A Swift file, and the same with comments and the insides of string literals blanked.
///
/// Interpolations inside literals are blanked too. Lines keep their numbers and lengths.
struct SwiftText {
    let lines: [String]
    /// ``lines`` without what is not code.
    let code: [String]

    init(_ text: String) {
        lines = Self.split(text)
        var blanker = Blanker(Array(text))
        code = Self.split(blanker.run())
    }

    private static func split(_ text: String) -> [String] {
        text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }
}

/// Walks over a file once and replaces everything that is not code by spaces.
private struct Blanker {
    private let text: [Character]
    private var index = 0
    private var output: [Character] = []

    init(_ text: [Character]) {
        self.text = text
    }

    mutating func run() -> String {
        while index < text.count {
            if starts("//") {
                blank { $0.isNewline }
            } else if starts("/*") {
                blankComment()
            } else if let pounds = literalPounds() {
                blankLiteral(pounds)
            } else {
                output.append(text[index])
                index += 1
            }
        }
        return String(output)
    }

    private func starts(_ token: String) -> Bool {
        text[index...].starts(with: token)
    }

    private mutating func blankOne() {
        output.append(text[index].isNewline ? "\n" : " ")
        index += 1
    }

    private mutating func blank(count: Int) {
        for _ in 0..<count where index < text.count { blankOne() }
    }

    private mutating func blank(until isEnd: (Character) -> Bool) {
        while index < text.count, !isEnd(text[index]) { blankOne() }
    }

    private mutating func blankComment() {
        var depth = 0
        repeat {
            if starts("/*") {
                depth += 1
                blank(count: 2)
            } else if starts("*/") {
                depth -= 1
                blank(count: 2)
            } else {
                blankOne()
            }
        } while depth > 0 && index < text.count
    }

    /// The number of `#` before a string literal that starts here; nil if none starts here.
    private func literalPounds() -> Int? {
        let pounds = text[index...].prefix { $0 == "#" }.count
        let quote = index + pounds
        return quote < text.count && text[quote] == "\"" ? pounds : nil
    }

    private mutating func blankLiteral(_ pounds: Int) {
        blank(count: pounds)
        let isMultiline = starts("\"\"\"")
        let quote = isMultiline ? "\"\"\"" : "\""
        let fence = String(repeating: "#", count: pounds)
        blank(count: quote.count)
        while index < text.count {
            if starts(quote + fence) {
                blank(count: quote.count + pounds)
                return
            }
            if !isMultiline, text[index].isNewline { return }
            blank(count: starts("\\" + fence) ? 2 + pounds : 1)
        }
    }
}
