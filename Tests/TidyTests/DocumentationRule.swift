/// What must be documented, and where citations of the design lead.
enum DocumentationRule {
    private static let kinds: Set = [
        "var", "let", "func", "init", "struct", "class", "enum", "actor", "protocol", "subscript",
        "typealias",
    ]

    /// The `package` and `public` declarations without a documentation comment, but for rows of a
    /// table, each of which states its meaning as an argument.
    static func undocumented(in text: SwiftText) -> [Violation] {
        text.code.indices.filter { index in
            declaresForOthers(text.code[index]) && !isRow(text.code[index])
                && !isDocumented(index, in: text)
        }.map { Violation(line: $0 + 1, message: "a package declaration without documentation") }
    }

    private static func declaresForOthers(_ line: String) -> Bool {
        let words = line.split { $0 == " " || $0 == "(" || $0 == "<" || $0 == "?" }
        guard let access = words.firstIndex(where: { $0 == "package" || $0 == "public" }),
            words[..<access].allSatisfy({ $0.first == "@" || $0 == "indirect" }),
            let kind = words[access...].first(where: { kinds.contains(String($0)) })
        else { return false }
        return !kind.isEmpty && words[words.index(after: access)] != "import"
    }

    /// True for the declaration of a setting or of a site's option.
    private static func isRow(_ line: String) -> Bool {
        ["= SettingKey(", "= SettingKey<", "= SiteOption("].contains {
            line[...].place(of: $0) != nil
        }
    }

    private static func isDocumented(_ index: Int, in text: SwiftText) -> Bool {
        let above = text.lines[..<index].last { line in
            line.drop { $0 == " " }.first != "@"
        }
        return above?.drop { $0 == " " }.hasPrefix("///") ?? false
    }

    /// The citations `(Design, "Title")` whose title is no heading of the design; they may go on
    /// over the end of a line.
    static func deadCitations(in text: SwiftText, titles: Set<String>) -> [Violation] {
        text.lines.indices.compactMap { index in
            guard let start = text.lines[index][...].place(of: "(Design, ") else { return nil }
            let rest = text.lines[index][start.upperBound...]
            let next = index + 1 < text.lines.count ? text.lines[index + 1] : ""
            let joined = rest + " " + next.drop { $0 == " " || $0 == "/" }
            let title = joined.dropFirst().prefix { $0 != "\"" }
            guard joined.first != "\"" || !titles.contains(String(title)) else { return nil }
            return Violation(line: index + 1, message: "\(title) is no section of the design")
        }
    }
}

/// How many files a folder may have.
enum FolderRule {
    static let filesMax = 20

    /// The folders with more Swift files of their own.
    static func violations(in paths: [String]) -> [Violation] {
        let folders = Dictionary(grouping: paths) { path in
            path.split(separator: "/").dropLast().joined(separator: "/")
        }
        return folders.filter { $0.value.count > filesMax }.keys.sorted().map {
            Violation(path: $0, message: "more than \(filesMax) Swift files: divide it")
        }
    }
}

/// How many Swift files Sources has, and how short each may be: a noun of a few lines stands with
/// the one that it belongs to.
enum SourceFilesRule {
    static let filesMax = 700
    static let linesMin = 30

    /// Files that are shorter, but for the only one of a target, and Sources if it has more.
    static func violations(in files: [(path: String, lines: Int)]) -> [Violation] {
        let targets = Dictionary(grouping: files) { $0.path.split(separator: "/")[1] }
        let short = targets.values.filter { $0.count > 1 }.joined().filter { $0.lines < linesMin }
        let tooMany =
            files.count > filesMax
            ? [
                Violation(
                    path: "Sources", message: "\(files.count) Swift files; at most \(filesMax)")
            ] : []
        return tooMany
            + short.sorted { $0.path < $1.path }.map {
                Violation(
                    path: $0.path, line: $0.lines,
                    message: "\($0.lines) lines; under \(linesMin) it joins its noun")
            }
    }
}
