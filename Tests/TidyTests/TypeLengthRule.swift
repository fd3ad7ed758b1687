/// How long a type may be, all its extensions in its target together.
enum TypeLengthRule {
    static let linesMax = 600

    /// A type that is longer, its limit until then, and what will make it shorter.
    struct Exception: Sendable {
        let room: String
        let type: String
        let linesMax: Int
        let reason: String
    }

    static let exceptions: [Exception] = []

    /// Types that only hold others: what they hold is counted by itself.
    static let namespaces: Set<String> = ["Outside"]

    /// The lines of code of each type that `text` declares or extends at its outermost level; blank
    /// lines and comments are not counted.
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
                lines[type, default: 0] += code[index...end].count { line in
                    line.contains { $0 != " " }
                }
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

    /// Types over the limit, and exceptions that are not needed any more.
    static func violations(
        in lines: [String: Int], of room: String, excepting exceptions: [Exception] = exceptions
    ) -> [Violation] {
        lines.sorted { $0.key < $1.key }.compactMap { type, count in
            let exception = exceptions.first { $0.room == room && $0.type == type }
            if exception != nil, count <= linesMax {
                return Violation(message: "\(room).\(type) is short enough: drop the exception")
            }
            let limit = exception?.linesMax ?? linesMax
            guard count > limit else { return nil }
            return Violation(message: "\(room).\(type) has \(count) lines; at most \(limit)")
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
