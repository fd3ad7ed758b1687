import Ground
import Testing

@Suite struct ASCIITests {
    @Test("Only A to Z are converted to lower case", arguments: UInt8.min...UInt8.max)
    func lowercase(byte: UInt8) {
        let isUpper = (0x41...0x5A).contains(byte)
        #expect(ASCII.lowercased(byte) == (isUpper ? byte + 32 : byte))
    }

    @Test(
        "Exactly the ASCII digits and hexadecimal digits are accepted as such",
        arguments: UInt8.min...UInt8.max)
    func digits(byte: UInt8) {
        let decimal = Array("0123456789".utf8).firstIndex(of: byte)
        let lower = Array("0123456789abcdef".utf8).firstIndex(of: byte)
        let upper = Array("0123456789ABCDEF".utf8).firstIndex(of: byte)
        #expect(ASCII.isDigit(byte) == (decimal != nil))
        #expect(ASCII.hexValue(byte).map(Int.init) == lower ?? upper)
    }

    @Test("A value's hexadecimal digit is lower case and is read back as the value")
    func hexDigits() {
        #expect((0..<16).map(ASCII.hexDigit) == Array("0123456789abcdef".utf8))
    }

    @Test(
        "A number is appended as Swift prints it", arguments: [0, 7, 10, 99, 1_234_567, UInt64.max])
    func append(number: UInt64) {
        var bytes = Array("n=".utf8)
        ASCII.append(number, to: &bytes)
        #expect(bytes == Array("n=\(number)".utf8))
    }

    @Test(
        "Decimal numbers are read as a whole or not at all",
        arguments: [
            ("0", 0), ("00042", 42), ("18446744073709551615", .max), ("18446744073709551616", nil),
            ("99999999999999999999", nil), ("", nil), ("+1", nil), ("-1", nil), ("1 ", nil),
            ("1a", nil), ("٣", nil),
        ] as [(String, UInt64?)])
    func decimal(text: String, value: UInt64?) {
        let bytes = Array("x\(text)y".utf8)
        let read = bytes.span.decimal(at: 1..<bytes.count - 1)
        #expect(read == value)
    }

    @Test(
        "Literals are compared whole, with case or without",
        arguments: [
            ("Content-Type", true, nil), ("content-type", false, true),
            ("Content-Typ", false, nil), ("content-typ", false, false),
            ("content-typo", false, false), ("", false, false),
        ] as [(String, Bool, Bool?)])
    func literals(literal: String, isSame: Bool, isSameIgnoringCase: Bool?) {
        let bytes = Array("--Content-Type--".utf8)
        let holds = bytes.span.matches(literal, at: 2..<14)
        #expect(holds == isSame)
        // Comparison without regard to case requires a literal in lower case.
        guard let isSameIgnoringCase else { return }
        let holdsIgnoringCase = bytes.span.matchesIgnoringCase(literal, at: 2..<14)
        #expect(holdsIgnoringCase == isSameIgnoringCase)
    }

    @Test("An empty span equals only an empty literal")
    func emptyLiteral() {
        let bytes = Array("ab".utf8)
        let holds = bytes.span.matches("", at: 1..<1)
        #expect(holds)
    }

    @Test("Case is ignored for letters only")
    func caseOfOthers() {
        // @ and `, [ and {, differ only in the bit that distinguishes upper from lower case.
        let bytes: [UInt8] = [0x40, 0x5B]
        let holds = bytes.span.matchesIgnoringCase("`{", at: 0..<2)
        #expect(!holds)
    }

    @Test(
        "Spans are equal byte for byte",
        arguments: [([1, 2, 3], true), ([1, 2, 3, 4], false), ([1, 2, 4], false), ([], false)]
            as [([UInt8], Bool)])
    func equality(other: [UInt8], isEqual: Bool) {
        let bytes: [UInt8] = [1, 2, 3]
        let equals = bytes.span.equals(other.span)
        #expect(equals == isEqual)
    }

    @Test("A range is copied out")
    func copies() {
        let bytes: [UInt8] = [1, 2, 3, 4]
        let pair = bytes.span.copy(1..<3)
        let nothing = bytes.span.copy(2..<2)
        #expect(pair == [2, 3])
        #expect(nothing.isEmpty)
    }

    @Test("An extent and its range are equivalent, empty or not")
    func extent() {
        let extent = Extent(start: 3, count: 4)
        #expect(extent.range == 3..<7)
        #expect(extent.end == 7)
        #expect(!extent.isEmpty)
        #expect(Extent.empty.isEmpty)
        #expect(MemoryLayout<Extent>.size == 8)
    }
}
