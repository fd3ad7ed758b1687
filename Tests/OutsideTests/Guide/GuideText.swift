import Foundation

/// The blocks of a page of Markdown as steps of one shell session.
///
/// Comments, which no reader sees, tell a test what the text cannot. On the lines before a block:
///
/// - `<!-- not run: REASON -->`: No test machine can run the block; its syntax is checked.
/// - `<!-- needs: PROGRAM -->`: The block is run where the program is installed.
/// - `<!-- file: NAME -->`: The block is saved under this name.
/// - `<!-- output -->`: The block is what the one before it prints.
/// - `<!-- output of: COMMANDS -->`: The block is what these commands print.
///
/// `<!-- run: COMMANDS -->` needs no block: it provides what the page takes for granted, or checks
/// what it claims.
struct GuideText {
    /// Shell commands from a page.
    struct Step: Equatable {
        /// The line of the block or comment, counted from 1.
        let line: Int
        var commands: String
        /// The text of the block, which the commands find in `$block`.
        var text = ""
        /// The program without which the step is left out.
        var program: String?
        /// What the commands print, as the page shows it.
        var output: ShownOutput?
    }

    /// A block that cannot be tested as it is written.
    struct Fault: Error, Equatable, CustomStringConvertible {
        let line: Int
        let message: String

        var description: String { "line \(line): \(message)" }
    }

    private(set) var steps: [Step] = []
    /// Blocks of Swift, with their lines.
    private(set) var swift: [(line: Int, text: String)] = []
    private var comment: Comment?

    /// A comment that is about the next block.
    private struct Comment {
        let line: Int
        let word: String
        let argument: String
    }

    /// Reads a page.
    ///
    /// - Parameter text: The page's Markdown.
    /// - Throws: ``Fault`` at the first block that can neither be run nor is marked.
    init(_ text: String) throws {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var index = 0
        while index < lines.count {
            let line = lines[index].drop { $0 == " " }
            if line.hasPrefix("<!--") {
                let end = try Self.end(of: lines, from: index) { $0.contains("-->") }
                try read(lines[index...end].joined(separator: "\n"), at: index + 1)
                index = end
            } else if line.hasPrefix("```") {
                let end = try Self.end(of: lines, from: index + 1) {
                    $0.drop { $0 == " " } == "```"
                }
                let indent = lines[index].count - line.count
                let block = lines[(index + 1)..<end].map { $0.dropFirst(indent) + "\n" }.joined()
                try add(block, in: String(line.dropFirst(3)), at: index + 1)
                index = end
            } else if let comment, !line.isEmpty {
                throw Fault(line: comment.line, message: "no block follows")
            }
            index += 1
        }
        if let comment { throw Fault(line: comment.line, message: "no block follows") }
    }

    private static func end(
        of lines: [Substring], from index: Int, _ isEnd: (Substring) -> Bool
    ) throws -> Int {
        guard let end = lines[index...].firstIndex(where: isEnd) else {
            throw Fault(line: index, message: "does not end")
        }
        return end
    }

    private mutating func read(_ text: String, at line: Int) throws {
        let known = /<!-- (run|not run|needs|file|output of|output)(?:: ?(.*)| )-->\s*/
            .dotMatchesNewlines()
        guard let match = text.wholeMatch(of: known) else {
            throw Fault(line: line, message: "a comment that means nothing to the tests: \(text)")
        }
        let word = String(match.1)
        let value = (match.2 ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        guard (word == "output") == value.isEmpty else {
            throw Fault(line: line, message: "`\(word)` with \(value.isEmpty ? "nothing" : value)")
        }
        if word == "run" {
            steps.append(Step(line: line, commands: value + "\n"))
        } else if comment == nil {
            comment = Comment(line: line, word: word, argument: value)
        } else {
            throw Fault(line: line, message: "a second comment about one block")
        }
    }

    private mutating func add(_ block: String, in language: String, at line: Int) throws {
        defer { comment = nil }
        var step = Step(line: line, commands: block, text: block)
        switch comment?.word {
        case "output":
            guard let last = steps.indices.last, steps[last].output == nil else {
                throw Fault(line: line, message: "the output of nothing")
            }
            steps[last].output = ShownOutput(block, isJSON: language == "json")
            return
        case "output of":
            step.commands = (comment?.argument ?? "") + "\n"
            step.output = ShownOutput(block, isJSON: language == "json")
        case "file":
            step.commands = "cp \"$block\" '\(comment?.argument ?? "")'\n"
        case "not run":
            guard language == "sh" else {
                throw Fault(line: line, message: "only commands can be left out")
            }
            step.commands = "unrun\n"
        default:
            step.program = comment?.argument
            guard try complete(&step, in: language) else { return }
        }
        steps.append(step)
    }

    /// Completes a step by the language of its block; false if there is nothing to run.
    private mutating func complete(_ step: inout Step, in language: String) throws -> Bool {
        switch language {
        case "sh": break
        case "console":
            let lines = step.text.split(separator: "\n", omittingEmptySubsequences: false)
            let prompt = "$ "
            let typed = lines.filter { $0.hasPrefix(prompt) }.map { $0.dropFirst(prompt.count) }
            let printed = lines.filter { !$0.hasPrefix(prompt) }.joined(separator: "\n")
            step.commands = "set +e\n" + typed.map { $0 + "\n" }.joined() + "set -e\n"
            step.output = ShownOutput(printed, isJSON: false)
        case "yaml": step.commands = "nuthatch check-config --config \"$block\"\n"
        case "json": step.commands = "python3 -m json.tool \"$block\"\n"
        case "python": step.commands = "python3 \"$block\"\n"
        case "swift":
            swift.append((line: step.line, text: step.text))
            return false
        case "text", "":
            guard !step.text.split(separator: "\n").contains(where: Self.isCommand) else {
                throw Fault(line: step.line, message: "a command in a block of text")
            }
            return false
        default:
            throw Fault(line: step.line, message: "a block of \(language) cannot be run")
        }
        return true
    }

    private static func isCommand(_ line: Substring) -> Bool {
        line.hasPrefix("$ ")
            || line.prefixMatch(
                of: /(nuthatch|curl|deploy|docker|openssl|promtool|python3?|swift|sudo)[ \/]/)
                != nil
    }
}
