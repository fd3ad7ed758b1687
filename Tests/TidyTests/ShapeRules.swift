/// How long lines, functions and files may be, and what may not be left in them.
enum ShapeRules {
    static let lineColumnsMax = 100
    static let functionLinesMax = 70
    static let fileLinesMax = 400
    /// Each in two pieces, so that this file does not hold them.
    static let leftoverWords = ["FIX" + "ME", "TO" + "DO", "XX" + "X", "HA" + "CK"]

    static func lineLengths(in text: SwiftText) -> [Violation] {
        text.lines.indices.filter { text.lines[$0].count > lineColumnsMax }.map { index in
            Violation(
                line: index + 1,
                message: "\(text.lines[index].count) columns; at most \(lineColumnsMax)")
        }
    }

    static func fileLength(in text: SwiftText) -> [Violation] {
        let count = text.lineCount
        guard count > fileLinesMax else { return [] }
        return [
            Violation(line: count, message: "\(count) lines; split by concern at \(fileLinesMax)")
        ]
    }

    /// Functions from the line of their keyword to their closing brace, which `swift format` puts
    /// under the first column of the declaration.
    static func functionLengths(in text: SwiftText) -> [Violation] {
        var violations: [Violation] = []
        for (start, line) in text.code.enumerated() where declaresFunction(line) {
            let indent = line.prefix { $0 == " " }
            let body = text.code[start...]
            guard let opened = bodyOpens(body, indent: indent),
                let end = body[opened...].firstIndex(where: { $0.hasPrefix(indent + "}") })
            else { continue }
            let count = end - start + 1
            guard count > functionLinesMax else { continue }
            violations.append(
                Violation(
                    line: start + 1,
                    message: "a function of \(count) lines; at most \(functionLinesMax)"))
        }
        return violations
    }

    static func leftovers(in text: SwiftText) -> [Violation] {
        var violations: [Violation] = []
        for (index, line) in text.lines.enumerated()
        where leftoverWords.contains(where: { line[...].place(of: $0) != nil }) {
            let parts = line.split { !$0.isLetter }
            guard let word = leftoverWords.first(where: { parts.contains(Substring($0)) })
            else { continue }
            violations.append(Violation(line: index + 1, message: "\(word) is left over"))
        }
        return violations
    }

    /// The line on which the body opens, if the declaration has a body of more than one line.
    private static func bodyOpens(
        _ lines: ArraySlice<String>, indent: Substring
    ) -> ArraySlice<String>.Index? {
        for index in lines.indices {
            let line = lines[index]
            let isDeeper = line.hasPrefix(indent + " ")
            if index > lines.startIndex, !isDeeper, !line.hasPrefix(indent + ")"),
                !line.hasPrefix(indent + "where "), !line.hasPrefix(indent + "{")
            {
                return nil
            }
            let code = line.reversed().drop { $0 == " " }
            if code.first == "{", index == lines.startIndex || !isDeeper { return index }
            if !isDeeper, code.first == "}" { return nil }
        }
        return nil
    }

    private static func declaresFunction(_ line: String) -> Bool {
        let words = line.split { $0 == " " || $0 == "(" || $0 == "<" || $0 == "?" }
        for word in words {
            switch word {
            case "func", "init", "deinit", "subscript": return true
            case "var", "let", "case", "return", "if", "guard", "for", "self.init": return false
            default: continue
            }
        }
        return false
    }
}
