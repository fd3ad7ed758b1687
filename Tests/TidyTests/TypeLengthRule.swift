/// How long a type may be, all its extensions in its target together, and comments and blank lines
/// within them counted.
enum TypeLengthRule {
    static let linesMax = 600

    /// Types that only hold others: what they hold is counted by itself.
    static let namespaces: Set<String> = ["Outside"]

    /// The lines of each type that `text` declares or extends at its outermost level, from the line
    /// of the declaration to that of its closing brace.
    static func lines(in text: SwiftText) -> [String: Int] {
        var lines: [String: Int] = [:]
        count(text.code[...], indent: "", into: &lines)
        return lines
    }

    private static func count(
        _ code: ArraySlice<String>, indent: String, into lines: inout [String: Int]
    ) {
        var index = code.startIndex
        while index < code.endIndex {
            guard let type = declaredType(code[index], indent: indent) else {
                index += 1
                continue
            }
            let end = self.end(of: code[index...], indent: indent)
            if namespaces.contains(type) {
                count(code[index...end].dropFirst(), indent: indent + "    ", into: &lines)
            } else {
                lines[type, default: 0] += end - index + 1
            }
            index = end + 1
        }
    }

    /// The line of the closing brace, which `swift format` puts under the declaration's first
    /// column.
    private static func end(of code: ArraySlice<String>, indent: String) -> Int {
        if code.first?.contains("}") == true { return code.startIndex }
        return code.firstIndex { $0.hasPrefix(indent + "}") } ?? code.endIndex - 1
    }

    /// Types over the limit.
    static func violations(in lines: [String: Int], of room: String) -> [Violation] {
        lines.filter { $0.value > linesMax }.sorted { $0.key < $1.key }.map { type, count in
            Violation(message: "\(room).\(type) has \(count) lines; at most \(linesMax)")
        }
    }

    /// The type that a line at this indent declares or extends.
    private static func declaredType(_ line: String, indent: String) -> String? {
        guard line.hasPrefix(indent), !line.dropFirst(indent.count).hasPrefix(" ") else {
            return nil
        }
        let kinds: Set = ["struct", "class", "enum", "actor", "extension", "protocol"]
        let words = line.split(separator: " ")
        guard let kind = words.firstIndex(where: { kinds.contains(String($0)) }),
            words.index(after: kind) < words.endIndex,
            words[..<kind].allSatisfy({ $0.first == "@" || $0.allSatisfy(\.isLetter) })
        else { return nil }
        let name = words[words.index(after: kind)].prefix {
            $0.isLetter || $0.isNumber || $0 == "_"
        }
        return name.isEmpty ? nil : String(name)
    }
}
