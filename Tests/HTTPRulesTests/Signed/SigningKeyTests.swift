import HTTPRules
import Testing

@Suite("Files of signing keys")
struct SigningKeyTests {
    private static let one = "0123456789abcdef0123456789abcdef"
    private static let two = "another-secret-of-enough-bytes-:)"

    private func keys(_ text: String) throws(SigningKeyFault) -> [SigningKey] {
        try SigningKey.keys(of: text.bytes)
    }

    @Test("There is one key a line, with or without a name, and their order is kept")
    func read() throws {
        let plain = SigningKey(secret: Self.one.bytes)
        #expect(try keys(Self.one) == [plain])
        #expect(try keys("# of May\r\n\n\(Self.one)\r\n") == [plain])
        let named = SigningKey(name: "2026-06", secret: Self.two.bytes)
        #expect(try keys("2026-06:\(Self.two)\n\(Self.one)\n#") == [named, plain])
    }

    @Test(
        "An invalid key is reported with its line and without its content",
        arguments: [
            ("", .noKeys), ("#\n\n", .noKeys), ("abc", .short(line: 1, count: 3)),
            ("A\nabc", .short(line: 2, count: 3)), ("n:abc", .short(line: 1, count: 3)),
            ("A:", .short(line: 1, count: 0)), (":A", .name(line: 1)), ("a b:A", .byte(line: 1)),
            ("a/b:A", .name(line: 1)), (" A", .byte(line: 1)), ("A A", .byte(line: 1)),
            ("A\u{E9}", .byte(line: 1)), ("A\n\nA", .repeated(line: 3)),
            ("n:A\nn:B", .repeated(line: 2)), ("n:A\nm:A", .repeated(line: 2)),
        ] as [(String, SigningKeyFault)])
    func refused(text: String, fault: SigningKeyFault) {
        let file = text.replacing("A", with: Self.one).replacing(
            "B", with: String(Self.one.reversed()))
        #expect(throws: fault) { try keys(file) }
        #expect(!fault.message.contains(Self.one))
    }

    @Test("The number of keys and their lengths are limited")
    func limits() throws {
        let many = (0..<17).map { "k\($0):\(Self.one)\($0)" }
        #expect(try keys(many.dropLast().joined(separator: "\n")).count == 16)
        #expect(throws: SigningKeyFault.tooMany(17)) { try keys(many.joined(separator: "\n")) }
        #expect(try keys(String(repeating: "a", count: 512)).count == 1)
        #expect(throws: SigningKeyFault.long(line: 1, count: 513)) {
            try keys(String(repeating: "a", count: 513))
        }
    }
}
