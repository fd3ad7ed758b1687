import Foundation

/// A parser of cases.
///
/// A case begins with `== name [section]`. The following lines are:
///
/// - `at HOST` selects another site than the plain one.
/// - `> METHOD SUFFIX` is a request for the case's own path with that suffix; `>>` repeats it until
///   all expectations hold.
/// - `< STATUS` is the origin's response, or `< close`, `reset`, `hang`, `cut`; a status below 200
///   precedes the next response.
/// - Two spaces and `ID: value`, `| body`, `trailer Name: value`, `no Date`, `no length` belong to
///   the request or response above.
/// - `! …` are expectations.
/// - `- a | b` makes a case of its own with `a` for `{1}` and `b` for `{2}`.
/// - `#` begins a comment.
struct TableReader {
    struct Wrong: Error, CustomStringConvertible {
        let description: String
    }

    private var cases: [TableCase] = []
    private var block: [String] = []
    private var rows: [[String]] = []

    /// Returns the cases of a file of this folder.
    static func cases(of file: String) throws -> [TableCase] {
        let folder = Bundle.module.resourceURL?.appendingPathComponent("Table")
        let url = (folder ?? URL(filePath: "/")).appendingPathComponent(file + ".txt")
        return try cases(in: try String(contentsOf: url, encoding: .utf8))
    }

    static func cases(in text: String) throws -> [TableCase] {
        var reader = TableReader()
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            if line.hasPrefix("== ") { try reader.endBlock() }
            if line.hasPrefix("- ") {
                reader.rows.append(split(line.dropFirst(2), by: " | "))
            } else {
                reader.block.append(String(line))
            }
        }
        try reader.endBlock()
        return reader.cases
    }

    /// Creates the cases of a block: one, or one for each of its rows.
    private mutating func endBlock() throws {
        guard !block.isEmpty else { return }
        var made: [TableCase] = []
        for row in rows.isEmpty ? [[]] : rows {
            var lines = block
            for (index, word) in row.enumerated() {
                lines = lines.map { $0.replacingOccurrences(of: "{\(index + 1)}", with: word) }
            }
            made.append(try Self.one(lines))
        }
        if Set(made.map(\.name)).count < made.count {
            for index in made.indices {
                made[index].name += " | " + rows[index].joined(separator: " | ")
            }
        }
        cases += made
        (block, rows) = ([], [])
    }

    private static func one(_ lines: [String]) throws -> TableCase {
        var result = TableCase()
        var interim: [TableAnswer] = []
        for line in lines {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            let rest = words.count > 1 ? words[1] : ""
            switch words.first {
            case "==": (result.name, result.section) = try title(rest)
            case "at": result.host = rest
            case ">", ">>":
                result.exchanges.append(request(rest, isRepeated: words[0] == ">>"))
            case "<":
                var response = try answer(rest)
                guard !result.exchanges.isEmpty else { throw Wrong(description: line) }
                if response.status < 200 {
                    interim.append(response)
                } else {
                    (response.interim, interim) = (interim, [])
                    result.exchanges[result.exchanges.count - 1].answers.append(response)
                }
            case "!":
                guard !result.exchanges.isEmpty else { throw Wrong(description: line) }
                result.exchanges[result.exchanges.count - 1].expectations +=
                    try TableExpectation.read(rest)
            default:
                guard line.hasPrefix("  ") else { throw Wrong(description: line) }
                let detail = String(line.dropFirst(2))
                if interim.isEmpty {
                    try add(detail, to: &result)
                } else {
                    interim[interim.count - 1].fields.append(detail)
                }
            }
        }
        guard !result.exchanges.isEmpty else { throw Wrong(description: result.name) }
        return result
    }

    private static func title(_ text: String) throws -> (String, String) {
        let parts = split(text[...], by: " [")
        guard parts.count == 2, parts[1].hasSuffix("]") else { throw Wrong(description: text) }
        return (parts[0], String(parts[1].dropLast()))
    }

    private static func request(_ text: String, isRepeated: Bool) -> TableExchange {
        let words = text.split(separator: " ", maxSplits: 1).map(String.init)
        return TableExchange(
            method: words[0], suffix: words.count > 1 ? words[1] : "", isRepeated: isRepeated)
    }

    private static func answer(_ text: String) throws -> TableAnswer {
        let words = text.split(separator: " ", maxSplits: 1).map(String.init)
        guard let first = words.first else { throw Wrong(description: "an answer of nothing") }
        let reason = words.count > 1 ? words[1] : ""
        if let status = Int(first) { return TableAnswer(status: status, reason: reason) }
        guard let ending = TableAnswer.Ending(rawValue: first) else {
            throw Wrong(description: text)
        }
        return TableAnswer(ending: ending)
    }

    /// Adds a detail line to the last response, or to the request if there is none yet.
    private static func add(_ detail: String, to result: inout TableCase) throws {
        let last = result.exchanges.count - 1
        guard last >= 0 else { throw Wrong(description: detail) }
        let body = detail == "|" ? "" : detail.hasPrefix("| ") ? String(detail.dropFirst(2)) : nil
        let trailer = detail.hasPrefix("trailer ") ? String(detail.dropFirst(8)) : nil
        let responses = result.exchanges[last].answers.count
        if responses == 0 {
            if let body {
                result.exchanges[last].body = body
            } else if let trailer {
                result.exchanges[last].trailers.append(trailer)
            } else {
                result.exchanges[last].fields.append(detail)
            }
            return
        }
        var response = result.exchanges[last].answers[responses - 1]
        switch detail {
        case "no Date": response.hasDate = false
        case "no length": response.isEndedByClose = true
        default:
            if let body {
                response.body = body
            } else if let trailer {
                response.trailers.append(trailer)
            } else {
                response.fields.append(detail)
            }
        }
        result.exchanges[last].answers[responses - 1] = response
    }

    static func split(_ text: Substring, by separator: String) -> [String] {
        text.components(separatedBy: separator)
    }
}
