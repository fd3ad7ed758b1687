/// What README and the guide hold to: README is short, links lead somewhere in a checkout, and the
/// index has every page.
enum GuideRule {
    static let readmeLinesMax = 150
    static let folder = "Sources/nuthatch/nuthatch.docc"
    static let index = folder + "/nuthatch.md"

    static func readmeLength(in readme: MarkdownText) -> [Violation] {
        let count = readme.lines.last?.isEmpty == true ? readme.lines.count - 1 : readme.lines.count
        guard count > readmeLinesMax else { return [] }
        return [
            Violation(
                path: readme.path, line: count,
                message: "\(count) lines; at most \(readmeLinesMax), the rest is for the guide")
        ]
    }

    /// The links of a page that lead nowhere, or only in DocC.
    ///
    /// `anchors` are those of a file that is there, none of them where it is no page.
    static func deadLinks(
        in page: MarkdownText, anchors: (_ path: String) -> Set<String>?
    ) -> [Violation] {
        page.links.compactMap { link in
            guard !link.leavesRepository else { return nil }
            let violation = Violation(
                path: page.path, line: link.line, message: "\(link.target) leads nowhere")
            guard let path = link.path(from: page.path), let known = anchors(path) else {
                return violation
            }
            guard let anchor = link.anchor else { return nil }
            return known.contains(anchor) ? nil : violation
        }
    }

    /// The pages that the index has no link to.
    static func unlisted(_ pages: [MarkdownText], index: MarkdownText) -> [Violation] {
        let listed = Set(index.links.compactMap { $0.path(from: index.path) })
        return pages.filter { $0.path != index.path && !listed.contains($0.path) }.map {
            Violation(path: $0.path, message: "not linked from \(index.path)")
        }
    }
}
