import Ground
import HTTPRules
import Testing
import Trials

@Suite("Request ids")
struct RequestIDTests {
    @Test(
        "A number is written as sixteen digits",
        arguments: [
            (0, "0000000000000000"), (.max, "ffffffffffffffff"), (1, "0000000000000001"),
            (0x0123_4567_89AB_CDEF, "0123456789abcdef"), (0x9A << 32, "0000009a00000000"),
        ] as [(UInt64, String)])
    func digits(number: UInt64, expected: String) {
        var bytes: [UInt8] = []
        HexDigits(number).append(to: &bytes)
        #expect(bytes.text == expected)
    }

    @Test("The digits of any number are read back as the number")
    func anyDigits() {
        var dice = SplitMix64(seed: 1)
        for _ in 0..<Trials.count(10_000) {
            let number = dice.next() >> UInt64.random(in: 0...63, using: &dice)
            var bytes: [UInt8] = []
            HexDigits(number).append(to: &bytes)
            #expect(bytes.count == HexDigits.count && UInt64(bytes.text, radix: 16) == number)
            #expect(bytes.text == bytes.text.lowercased())
        }
    }

    @Test("Ids of one run are unique, and may be adopted")
    func own() {
        let ids = (0..<1_000 as Range<UInt64>).map { RequestID(process: 7, number: $0 << 40 | $0) }
        #expect(Set(ids).count == 1_000)
        #expect(ids.allSatisfy { $0.text.count == 32 && RequestID($0.text) == $0 })
        #expect(RequestID(process: 7, number: 1) != RequestID(process: 8, number: 1))
        #expect("\(RequestID(process: 0xA, number: 0xB))" == "000000000000000a000000000000000b")
    }

    @Test("Only harmless bytes are adopted")
    func bytes() {
        let harmless = Set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=-".utf8)
        for byte in UInt8.min...UInt8.max {
            #expect((RequestID([0x61, byte, 0x62]) != nil) == harmless.contains(byte), "\(byte)")
        }
    }

    @Test("An id has between 1 and 128 bytes")
    func length() {
        #expect(RequestID([]) == nil)
        #expect(RequestID("x".bytes) != nil)
        #expect(RequestID([UInt8](repeating: 0x61, count: 128)) != nil)
        #expect(RequestID([UInt8](repeating: 0x61, count: 129)) == nil)
    }
}
