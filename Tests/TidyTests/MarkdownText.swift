/// A page of Markdown: its headings and links, which blocks of code have none of.
struct MarkdownText {
    /// A link as it is written.
    struct Link {
        /// Counted from 1.
        let line: Int
        let target: String

        var leavesRepository: Bool {
            target.hasPrefix("https://") || target.hasPrefix("http://")
        }

        /// What stands behind the number sign.
        var anchor: String? {
            target.firstIndex(of: "#").map { String(target[target.index(after: $0)...]) }
        }

        /// Where it leads, from the top of the repository; nil if that is outside.
        func path(from page: String) -> String? {
            let file = target.prefix { $0 != "#" }
            guard !file.isEmpty else { return page }
            guard !file.hasPrefix("/") else { return nil }
            var parts = page.split(separator: "/").dropLast()
            for part in file.split(separator: "/") where part != "." {
                guard part == ".." else {
                    parts.append(part)
                    continue
                }
                guard parts.popLast() != nil else { return nil }
            }
            return parts.joined(separator: "/")
        }
    }

    /// From the top of the repository.
    let path: String
    let lines: [Substring]
    let links: [Link]
    /// What a code host calls the headings in links.
    let anchors: Set<String>
    /// The headings as they are written.
    let titles: Set<String>

    init(path: String, _ text: String) {
        var links: [Link] = []
        var anchors: Set<String> = []
        var titles: Set<String> = []
        var isCode = false
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            if line.drop(while: { $0 == " " }).hasPrefix("```") {
                isCode.toggle()
                continue
            }
            guard !isCode else { continue }
            if line.contains("]") || line.contains("<") {
                links += Self.targets(in: line).map { Link(line: index + 1, target: $0) }
            }
            guard line.first == "#", let heading = line.wholeMatch(of: /#+ +(.*)/)?.output.1
            else { continue }
            titles.insert(String(heading))
            let anchor = Self.anchor(of: heading)
            let again = (1...).lazy.map { "\(anchor)-\($0)" }.first { !anchors.contains($0) }
            anchors.insert(anchors.contains(anchor) ? again ?? anchor : anchor)
        }
        self.links = links
        self.anchors = anchors
        self.titles = titles
    }

    /// Of `[text](target)`, `[text]: target` and DocC's own `<doc:target>`.
    private static func targets(in line: Substring) -> [String] {
        let written = line.matches(of: /\]\(([^)\s]*)/).map { String($0.output.1) }
        let defined = line.prefixMatch(of: /\[[^\]]+\]: *(\S+)/).map { String($0.output.1) }
        let ofDocC = line.matches(of: /<(doc:[^>]*)>/).map { String($0.output.1) }
        return written + (defined.map { [$0] } ?? []) + ofDocC
    }

    private static func anchor(of heading: Substring) -> String {
        let text = heading.replacing(/\[([^\]]*)\]\([^)]*\)/) { $0.output.1 }
        return text.lowercased().filter { $0.isLetter || $0.isNumber || " -_".contains($0) }
            .replacing(" ", with: "-")
    }
}
