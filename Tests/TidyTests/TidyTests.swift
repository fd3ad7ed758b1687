import Testing

@Suite("The house is tidy")
struct TidyTests {
    private let repository = Repository()

    @Test("targets use the rooms and packages of the table and no others")
    func arrowsAreThoseOfTheTable() throws {
        #expect(ArrowRule.violations(in: try repository.package(), table: Room.table) == [])
    }

    @Test("files import what their room may use", arguments: Room.table)
    func importsAreThoseOfTheTable(room: Room) throws {
        let violations = try check(room) { ArrowRule.violations(in: $0, of: room) }
        #expect(violations == [])
    }

    @Test("rooms do not call what is banned in them", arguments: Room.table)
    func bannedCallsAreAbsent(room: Room) throws {
        let violations = try check(room) { BannedCall.violations(in: $0, of: room.kind) }
        #expect(violations == [])
    }

    @Test("lines, functions and files are short, nothing is left over, nothing sleeps")
    func filesAreInShape() throws {
        let rules: [(SwiftText) -> [Violation]] = [
            ShapeRules.lineLengths, ShapeRules.functionLengths, ShapeRules.fileLength,
            ShapeRules.leftovers,
            { BannedCall.violations(in: $0, banning: BannedCall.everywhere) },
        ]
        let files = try ["Sources", "Tests"].flatMap { try repository.swiftFiles(under: $0) }
        #expect(files.count > 30)
        #expect(located(files) { text in rules.flatMap { $0(text) } } == [])
    }

    @Test("the field's words, documentation of what others use, citations that lead somewhere")
    func wordsAreThoseOfTheField() throws {
        let files = try ["Sources", "Tests"].flatMap { try repository.swiftFiles(under: $0) }
        let design = try repository.pages().first { $0.path.hasSuffix("/Design.md") }
        let titles = try #require(design).titles
        #expect(titles.count > 20)
        #expect(located(files, VocabularyRule.violations) == [])
        let sources = files.filter { $0.path.hasPrefix("Sources/") }
        #expect(
            located(sources) { DocumentationRule.deadCitations(in: $0, titles: titles) } == [])
        #expect(located(sources, DocumentationRule.undocumented) == [])
        #expect(FolderRule.violations(in: files.map(\.path)) == [])
    }

    @Test("the files of Sources are not too many, and none is of a few lines")
    func filesAreWhole() throws {
        let files = try repository.swiftFiles(under: "Sources")
        #expect(files.count > 300)
        let lengths = files.map { (path: $0.path, lines: $0.text.lineCount) }
        #expect(SourceFilesRule.violations(in: lengths) == [])
    }

    @Test("no bytes from outside reach what would end the node")
    func trapsAreReasoned() throws {
        let files = try TrapRule.rooms.flatMap { try repository.swiftFiles(under: "Sources/\($0)") }
        let found = located(files, TrapRule.violations)
        #expect(found.count > 50)
        #expect(TrapRule.violations(found) == [])
    }

    @Test("types are short, with all their extensions")
    func typesAreShort() throws {
        let files = try ["Sources", "Tests"].flatMap { try repository.swiftFiles(under: $0) }
        let rooms = Dictionary(grouping: files) { $0.path.split(separator: "/")[1] }
        let violations = rooms.sorted { $0.key < $1.key }.flatMap { room, files in
            let lines = files.reduce(into: [:]) { all, file in
                all.merge(TypeLengthRule.lines(in: file.text), uniquingKeysWith: +)
            }
            return TypeLengthRule.violations(in: lines, of: String(room))
        }
        #expect(violations == [])
    }

    @Test("no test waits for longer than it has to")
    func waitsAreShort() throws {
        // Harness is what tests wait with.
        let files = try repository.swiftFiles(under: "Tests").filter {
            !$0.path.hasPrefix("Tests/TidyTests/") && !$0.path.hasPrefix("Tests/Harness/")
        }
        let found = located(files, FixedWaitRule.violations)
        #expect(FixedWaitRule.violations(found) == [])
    }

    @Test("only the agreed names are at the top")
    func topIsAgreed() throws {
        let names = try repository.topLevel()
        #expect(names.contains("Package.swift"))
        #expect(TopLevelRule.violations(in: names) == [])
    }

    @Test("README is short, and it and the guide link to what is there, the index to every page")
    func guideIsWhole() throws {
        let pages = try repository.pages()
        let index = try #require(pages.first { $0.path == GuideRule.index })
        let readme = try #require(pages.first)
        #expect(pages.count > 20)
        #expect(GuideRule.readmeLength(in: readme) == [])
        let read = Dictionary(uniqueKeysWithValues: pages.map { ($0.path, $0.anchors) })
        let dead = pages.flatMap { page in
            GuideRule.deadLinks(in: page) { read[$0] ?? repository.anchors(of: $0) }
        }
        #expect(dead == [])
        #expect(GuideRule.unlisted(Array(pages.dropFirst()), index: index) == [])
    }

    private func check(_ room: Room, _ rule: (SwiftText) -> [Violation]) throws -> [Violation] {
        let folder = room.kind == .testSupport ? "Tests" : "Sources"
        let files = try repository.swiftFiles(under: "\(folder)/\(room.name)")
        #expect(!files.isEmpty || room.kind == .c)
        return located(files, rule)
    }

    private func located(
        _ files: [Repository.File], _ rule: (SwiftText) -> [Violation]
    ) -> [Violation] {
        files.flatMap { file in
            rule(file.text).map { violation in
                var violation = violation
                violation.path = file.path
                return violation
            }
        }
    }
}
