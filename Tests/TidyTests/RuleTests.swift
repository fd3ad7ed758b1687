import Foundation
import Testing

@Suite("Each rule fails on what it forbids")
struct RuleTests {
    private let pure = Room("Tiers", .pure, uses: ["Ground"])

    @Test(
        "an import that the row lacks is a violation, however it is written",
        arguments: [
            ("import Glibc", "Glibc"), ("package import Store", "Store"),
            ("@preconcurrency import NIOCore", "NIOCore"),
            ("internal import struct Foundation.Date", "Foundation"),
            ("public import Telemetry // why", "Telemetry"),
            ("@_spi(Testing) import NIOCore", "NIOCore"),
            ("@_spi(A, B) package import NIOCore", "NIOCore"),
            ("@_spi( A )import NIOCore", "NIOCore"),
            ("@unheardOf @preconcurrency internal import NIOCore", "NIOCore"),
        ])
    func importsAreHeld(line: String, module: String) {
        let text = SwiftText("import Ground\n\(line)\n")
        #expect(
            ArrowRule.violations(in: text, of: pure) == [
                Violation(line: 2, message: "Tiers may not import \(module)")
            ])
    }

    @Test(
        "an import that the row has, or that is no code, is none",
        arguments: [
            "import Ground", "package import Ground", "import struct Ground.Instant",
            "// import Glibc", "let text = \"\"\"\nimport Glibc\n\"\"\"", "/* \nimport Glibc\n*/",
        ])
    func allowedImportsPass(text: String) {
        #expect(ArrowRule.violations(in: SwiftText(text), of: pure) == [])
    }

    @Test("a package that differs from the table is a violation")
    func arrowsAreHeld() throws {
        let json = """
            {"targets": [
            {"name": "Ground", "type": "regular", "dependencies": []},
            {"name": "Tiers", "type": "regular", "dependencies": [
             {"byName": ["Ground", null]}, {"target": ["Store", null]},
             {"product": ["NIOCore", "swift-nio", null, null]}]},
            {"name": "Extra", "type": "regular", "dependencies": []},
            {"name": "TiersTests", "type": "test", "dependencies": [{"byName": ["A", null]}]}
            ]}
            """
        let package = try JSONDecoder().decode(ArrowRule.Package.self, from: Data(json.utf8))
        let table = [Room("Ground", .pure), pure, Room("Cluster", .pure, uses: ["Ground"])]
        #expect(
            ArrowRule.violations(in: package, table: table).map(\.message) == [
                "room Cluster has no target", "Tiers may not use NIOCore",
                "Tiers may not use Store", "target Extra is not in the table",
            ])
    }

    @Test(
        "a banned call is a violation that names its replacement",
        arguments: BannedCall.inPureRooms)
    func pureCallsAreHeld(banned: BannedCall) {
        let text = SwiftText("// \(banned.call)\nlet a = \(banned.call)\n")
        let violations = BannedCall.violations(in: text, banning: [banned])
        #expect(violations.map(\.line) == [2])
        #expect(violations.first?.message.hasSuffix(banned.instead) == true)
    }

    @Test("what is banned everywhere is a violation", arguments: BannedCall.everywhere)
    func callsAreHeldEverywhere(banned: BannedCall) {
        let text = SwiftText("    \(banned.call) 1\n")
        #expect(BannedCall.violations(in: text, banning: BannedCall.everywhere).map(\.line) == [1])
    }

    @Test(
        "a part of a longer word, a comment or a literal is no call",
        arguments: [
            "unsafeName()", "let isUnsafe = 1", "updateDate(x)", "Atomically", "oversleep(1)",
            "/// Mutex", "\"Mutex\"", "#\"a \" Mutex\"#", "\"a \\\" Mutex\"", "/* /* */ Mutex */",
        ])
    func otherWordsPass(line: String) {
        let calls = BannedCall.inPureRooms + BannedCall.everywhere
        #expect(BannedCall.violations(in: SwiftText(line), banning: calls) == [])
    }

    @Test("code after a literal or a comment is still code")
    func codeAfterLiteralsIsCode() {
        let text = SwiftText(
            "let a = \"x\" + \"\"\"\n  \"\n\"\"\"; Mutex()\n/* a */ Mutex()\n\"a\n Mutex")
        let violations = BannedCall.violations(in: text, banning: BannedCall.inPureRooms)
        #expect(violations.map(\.line) == [3, 4, 6])
    }

    @Test(
        "dice without using: are a violation",
        arguments: [
            ("Int.random(in: 0..<6)", 1), ("cards.shuffled()", 1), ("cards.randomElement()", 1),
            ("Int.random(in: 0..<6, using: &dice)", 0),
            ("a.random(\n in: 0..<6,\n using: &dice)", 0),
        ])
    func diceAreHeld(code: String, count: Int) {
        #expect(BannedCall.diceViolations(in: SwiftText(code)).count == count)
    }

    @Test(
        "a run that is repeated from its seed reads no clock and throws no dice but its own",
        arguments: [Room.Kind.pure, .atomics, .rendering, .sansIO, .simulation],
        [
            "ContinuousClock.now", "SuspendingClock()", "Date()", "Date.now", "DispatchTime.now()",
            "clock_gettime(CLOCK_MONOTONIC, &now)", "gettimeofday(&now, nil)",
            "SystemRandomNumberGenerator()", "arc4random()", "UUID()", "Task.sleep(for: .zero)",
            "Bool.random()", "Int.random(in: 0..<6)", "cards.shuffled()",
        ])
    func seededRoomsAreHeld(kind: Room.Kind, call: String) {
        let text = SwiftText(
            "let mine = Int.random(in: 0..<6, using: &dice)\n\n\n\nlet a = \(call)\n")
        #expect(BannedCall.violations(in: text, of: kind).map(\.line) == [5])
    }

    @Test(
        "at the edge clocks and dice are those of the machine",
        arguments: [Room.Kind.edge, .program, .testSupport, .c])
    func edgeRoomsAreFree(kind: Room.Kind) {
        let text = SwiftText("let a = ContinuousClock.now\nlet b = Bool.random()\n")
        #expect(BannedCall.violations(in: text, of: kind) == [])
    }

    @Test("a line past the last column is a violation")
    func lineLengthIsHeld() {
        let full = String(repeating: "é", count: ShapeRules.lineColumnsMax)
        #expect(ShapeRules.lineLengths(in: SwiftText(full)) == [])
        #expect(ShapeRules.lineLengths(in: SwiftText("a\n\(full)b")).map(\.line) == [2])
    }

    @Test("a file past the last line is a violation")
    func fileLengthIsHeld() {
        let full = String(repeating: "a\n", count: ShapeRules.fileLinesMax)
        #expect(ShapeRules.fileLength(in: SwiftText(full)) == [])
        #expect(ShapeRules.fileLength(in: SwiftText(full + "a")).count == 1)
    }

    @Test(
        "a function past its last line is a violation, however it is declared",
        arguments: [
            "func f() {", "package static func f<T>(_ t: T) -> [Int] {", "init?(_ text: String) {",
            "deinit {", "subscript(index: Int) -> Int {", "package override init() {",
            "func f(\n    a: Int\n) throws(E) -> Int {",
            "func f(\n    a: Int\n) -> Int\nwhere T: P {",
        ])
    func functionLengthIsHeld(declaration: String) {
        let header = declaration.split(separator: "\n")
        func text(_ count: Int) -> SwiftText {
            let body = Array(repeating: "        {", count: count - header.count - 1)
            let lines = header.map { "    " + $0 } + body + ["    }"]
            return SwiftText("struct S {\n" + lines.joined(separator: "\n") + "\n}\n")
        }
        #expect(ShapeRules.functionLengths(in: text(ShapeRules.functionLinesMax)) == [])
        let violations = ShapeRules.functionLengths(in: text(ShapeRules.functionLinesMax + 1))
        #expect(violations.map(\.line) == [2])
    }

    @Test("a requirement without a body does not borrow the next one's")
    func requirementsHaveNoLength() {
        let rest = String(repeating: "    let a = 1\n", count: 80)
        #expect(
            ShapeRules.functionLengths(
                in: SwiftText("protocol P {\n    func f()\n}\nstruct S {\n\(rest)}\n")) == [])
    }

    @Test("a type past its last line is a violation, all its extensions counted")
    func typeLengthIsHeld() {
        let rest = String(repeating: "    let a = 1\n", count: 498) + "    // Why.\n\n"
        let text = SwiftText(
            """
            /// Not counted.
            package final class Big<T>: P {
            \(rest)}
            struct Small { let a = 1 }
            extension Big.Part where T == Int {
            \(rest)}
            extension Outside {
                @Suite("A struct")
                struct Tests {
            \(rest)    }
            }
            """)
        let lines = TypeLengthRule.lines(in: text)
        #expect(lines == ["Big": 1_004, "Small": 1, "Tests": 502])
        #expect(
            TypeLengthRule.violations(in: lines, of: "Tiers").map(\.message) == [
                "Tiers.Big has 1004 lines; at most 600"
            ])
    }

    @Test(
        "a wait of fixed length is a violation from half a second on, or where none can be read",
        arguments: [
            ("Deadline.seconds(0.5).waitUntilPassed()", 1),
            ("Deadline.seconds(0.4).waitUntilPassed()", 0),
            ("deadline.waitUntilPassed()", 1),
            ("Deadline.seconds(30).waitUntilPassed(holding: { true })", 1),
            (".delayingHead(.seconds(1))", 1), (".delayingHead(.gate(gate))", 0),
            (".stalling(at: 9_000, .seconds(0.2))", 0), (".stalling(at: 9, .gate(gate))", 0),
            (".dripping(bytesMax: 10_000, seconds: 0.001)", 0), ("isIdle(seconds: 2)", 1),
            ("loop.scheduleTask(in: .milliseconds(1_000))", 1), ("Task.sleep(for: time)", 1),
            ("Deadline.seconds(30).waitUntil { isThere }", 0), ("// deadline.waitUntilPassed()", 0),
        ])
    func fixedWaitsAreHeld(code: String, count: Int) {
        #expect(FixedWaitRule.violations(in: SwiftText(code)).count == count)
    }

    @Test("an exception accounts for so many waits of its file, and for no other number")
    func waitExceptionsAreHeld() {
        let one = Violation(path: "a", line: 1, message: "wait")
        func left(_ count: Int, of found: [Violation]) -> [Violation] {
            let exception = FixedWaitRule.Exception(path: "a", count: count, reason: "")
            return FixedWaitRule.violations(found, excepting: [exception])
        }
        #expect(left(1, of: [one]) == [])
        #expect(left(2, of: [one]) == [one])
        #expect(left(1, of: []).map(\.path) == ["a"])
    }

    @Test(
        "what ends the process is a violation, wherever in a line it stands",
        arguments: [
            ("precondition(a)", 1), ("guard a else { preconditionFailure(b) }", 1),
            ("fatalError()", 1), ("let a = try! b()", 1), ("a as! B; c as! D", 2),
            ("loop.preconditionInEventLoop()", 0), ("// fatalError()", 0), ("a as? B", 0),
            ("let a = \"fatalError()\"", 0), ("myprecondition(a)", 0),
        ])
    func trapsAreHeld(code: String, count: Int) {
        #expect(TrapRule.violations(in: SwiftText(code)).count == count)
    }

    @Test("a reason accounts for so many traps of its file, and for no other number")
    func trapExceptionsAreHeld() {
        let one = Violation(path: "Sources/A/B.swift", line: 1, message: "trap")
        func left(_ count: Int, of found: [Violation]) -> [Violation] {
            TrapRule.violations(
                found, excepting: [TrapRule.Exception(reason: "", files: ["A/B": count])])
        }
        #expect(left(1, of: [one]) == [])
        #expect(left(2, of: [one]) == [one])
        #expect(left(1, of: [one, one]) == [one, one])
        #expect(left(1, of: []).map(\.path) == ["Sources/A/B.swift"])
    }

    @Test("leftover words are a violation, in comments too", arguments: ShapeRules.leftoverWords)
    func leftoversAreHeld(word: String) {
        let violations = ShapeRules.leftovers(in: SwiftText("let a = 1\n// \(word): b\n"))
        #expect(violations.map(\.line) == [2])
        #expect(ShapeRules.leftovers(in: SwiftText("// \(word)X \(word.lowercased())")) == [])
    }

    @Test("a name at the top that was not agreed is a violation")
    func topLevelIsHeld() {
        let names = ["Sources", ".ci", "README.md", "notes.txt", "scripts"]
        #expect(
            TopLevelRule.violations(in: names).map(\.message) == [
                "notes.txt is at the top; put it into Sources, Tests or deploy",
                "scripts is at the top; put it into Sources, Tests or deploy",
            ])
    }

    @Test("an old word is a violation wherever it stands, a part of another word is none")
    func oldWordsAreHeld() {
        let word = VocabularyRule.terms[0].word
        let text = SwiftText("let a = \(word)()\n/// The \(word).\nlet b = \"\(word)s\"\n")
        #expect(VocabularyRule.violations(in: text).map(\.line) == [1, 2])
    }

    @Test("what others may use is documented, and attributes may stand between")
    func documentationIsHeld() {
        let text = SwiftText(
            """
            /// A type.
            package struct A {
                package var a: Int
                /// Returns `b`.
                @inline(__always)
                package static func b() {}
                package private(set) var c = 0
                // No documentation.
                package init() {}
                let packageName = 0
            }
            package import Ground

            """)
        #expect(DocumentationRule.undocumented(in: text).map(\.line) == [3, 7, 9])
    }

    @Test("a citation of the design leads to a section, also over the end of a line")
    func citationsAreHeld() {
        let text = SwiftText(
            """
            /// Good (Design, "Rooms"), and (Design, "The path of
            /// a miss").
            /// Bad (Design, "Nothing").
            /// Bad (Design, Rooms).

            """)
        let dead = DocumentationRule.deadCitations(
            in: text, titles: ["Rooms", "The path of a miss"])
        #expect(dead.map(\.line) == [3, 4])
    }

    @Test("a folder of too many files is a violation, whatever lies below it")
    func foldersAreHeld() {
        let files = (0...FolderRule.filesMax).map { "A/\($0).swift" }
        #expect(FolderRule.violations(in: files + ["A/B/C.swift"]).map(\.path) == ["A"])
        #expect(FolderRule.violations(in: Array(files.dropFirst())) == [])
    }

    @Test("a very short file is a violation beside others of its target, and so are too many files")
    func filesThatAreTooSmallAreHeld() {
        let whole = SourceFilesRule.linesMin
        let files = [
            ("Sources/A/B/Short.swift", whole - 1), ("Sources/A/Whole.swift", whole),
            ("Sources/Alone/Alone.swift", 1),
        ]
        #expect(SourceFilesRule.violations(in: files).map(\.path) == ["Sources/A/B/Short.swift"])
        let many = (0...SourceFilesRule.filesMax).map { ("Sources/A/\($0).swift", whole) }
        #expect(SourceFilesRule.violations(in: many).map(\.path) == ["Sources"])
        #expect(SourceFilesRule.violations(in: Array(many.dropFirst())) == [])
    }
}
