import Ground
import HTTPRules
import Testing
import Trials

@Suite struct HTTPDateTests {
    /// 2026-11-21 00:00:00 UTC.
    private let now = WallTime(seconds: 1_795_219_200)

    private func parse(_ text: String, now: WallTime? = nil) -> Int64? {
        let bytes = ("=" + text + "=").bytes
        let range = 1..<1 + text.utf8.count
        return HTTPDate.parse(bytes.span, at: range, now: now ?? self.now)?.seconds
    }

    private func print(_ seconds: Int64) -> String {
        var bytes: [UInt8] = []
        HTTPDate.append(WallTime(seconds: seconds), to: &bytes)
        return bytes.text
    }

    @Test(
        "RFC 9110 §5.6.7: all three formats are read",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Thu Jan  1 00:00:00 1970", 0),
            ("Tue Nov 16 08:49:37 2010", 1_289_897_377),
            ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
            ("Fri, 30 Jun 2012 23:59:60 GMT", 1_341_100_800),
            ("sun, 06 nov 1994 08:49:37 gmt", 784_111_777),
            ("SUNDAY, 06-NOV-94 08:49:37 GMT", 784_111_777),
            ("sUN nOV  6 08:49:37 1994", 784_111_777),
            ("Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Monday, 07-Nov-94 08:49:37 GMT", 784_198_177),
            ("Tuesday, 08-Nov-94 08:49:37 GMT", 784_284_577),
            ("Wednesday, 09-Nov-94 08:49:37 GMT", 784_370_977),
            ("Thursday, 10-Nov-94 08:49:37 GMT", 784_457_377),
            ("Friday, 11-Nov-94 08:49:37 GMT", 784_543_777),
            ("Saturday, 12-Nov-94 08:49:37 GMT", 784_630_177),
        ] as [(String, Int64)])
    func read(text: String, seconds: Int64) {
        #expect(parse(text) == seconds)
    }

    @Test(
        "RFC 9110 §5.6.7: anything not exactly in one format is refused",
        arguments: [
            "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 06 Nov 1994 08:49:37 GMT ",
            " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun,06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06  Nov 1994 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
            "Xun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nvo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 29 Feb 2023 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 30 Feb 2024 08:49:37 GMT",
            "Sun, 32 Jan 1994 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT",
            "Sundax, 06-Nov-94 08:49:37 GMT", "Sunsday, 06-Nov-94 08:49:37 GMT",
            "Sunday, 6-Nov-94 08:49:37 GMT", "Sun Nov 06 08:49:37 94", "Sun Nov 6 08:49:37 1994",
            "Sun Nov  6 08:49:37 1994 GMT", "Sun Nov  0 08:49:37 1994",
            "Sunday Nov  6 08:49:37 1994",
            "Sun Nov   6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 GMTX", "Sun, 06 Nov 1994",
            "Sun, 06 Nov -994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37  GMT", "Sun,", "Sunday,",
            "S,",
        ])
    func notRead(text: String) {
        #expect(parse(text) == nil)
    }

    @Test(
        "RFC 9110 §5.6.7: a two-digit year more than 50 years ahead is in the past century",
        arguments: [
            ("Saturday, 21-Nov-76 00:00:00 GMT", "Sat, 21 Nov 2076 00:00:00 GMT"),
            ("Saturday, 21-Nov-76 00:00:01 GMT", "Sun, 21 Nov 1976 00:00:01 GMT"),
            ("Saturday, 20-Nov-76 23:59:59 GMT", "Fri, 20 Nov 2076 23:59:59 GMT"),
            ("Saturday, 01-Jan-77 00:00:00 GMT", "Sat, 01 Jan 1977 00:00:00 GMT"),
            ("Saturday, 01-Jan-99 00:00:00 GMT", "Fri, 01 Jan 1999 00:00:00 GMT"),
            ("Saturday, 01-Jan-00 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:00 GMT"),
            ("Saturday, 01-Jan-26 00:00:00 GMT", "Thu, 01 Jan 2026 00:00:00 GMT"),
            ("Saturday, 29-Feb-76 00:00:00 GMT", "Sat, 29 Feb 2076 00:00:00 GMT"),
        ])
    func shortYear(text: String, expected: String) throws {
        let seconds = try #require(parse(text))
        #expect(print(seconds) == expected)
    }

    @Test("A two-digit year within 50 years is read as it was written")
    func shortYearProperty() throws {
        var dice = SplitMix64(seed: 8)
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov"]
        for _ in 0..<Trials.count(3000) {
            let year = Int.random(in: 1970...2076, using: &dice)
            let month = names[Int.random(in: 0..<names.count, using: &dice)]
            let tail = year % 100
            let short = tail < 10 ? "0\(tail)" : "\(tail)"
            let seconds = try #require(parse("Monday, 07-\(month)-\(short) 01:02:03 GMT"))
            #expect(seconds <= now.seconds + 50 * 366 * 86_400)
            #expect(seconds > now.seconds - 100 * 366 * 86_400)
        }
    }

    @Test("A written date is read back to the second")
    func printed() {
        var dice = SplitMix64(seed: 7)
        for _ in 0..<Trials.count(20_000) {
            let seconds = Int64.random(in: -62_167_219_200...253_402_300_799, using: &dice)
            #expect(parse(print(seconds)) == seconds)
        }
        #expect(print(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(print(0) == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(print(-1) == "Wed, 31 Dec 1969 23:59:59 GMT")
        #expect(print(.min) == "Sat, 01 Jan 0000 00:00:00 GMT")
        #expect(print(.max) == "Fri, 31 Dec 9999 23:59:59 GMT")
    }

    @Test("Each day follows the previous one through four centuries of leap years")
    func days() {
        let names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        var day = 0
        var month = 0
        for number in 0..<146_097 {
            let text = print((Int64(number) - 10_957 + 2 * 10_957) * 86_400)
            #expect(text.hasPrefix(names[(number + 6) % 7]))
            let next = Int(text.dropFirst(5).prefix(2)) ?? 0
            if next == 1 { month += 1 } else { #expect(next == day + 1) }
            day = next
        }
        #expect(month == 4800)
    }

    @Test("No input makes the reader leave its range")
    func anyBytes() {
        var dice = SplitMix64(seed: 9)
        let full = "Sun, 06 Nov 1994 08:49:37 GMT".bytes
        for _ in 0..<Trials.count(5000) {
            var text = Array(full.prefix(Int.random(in: 0...full.count, using: &dice)))
            if !text.isEmpty {
                let index = Int.random(in: 0..<text.count, using: &dice)
                text[index] = UInt8.random(in: 0...255, using: &dice)
            }
            _ = HTTPDate.parse(text.span, at: 0..<text.count, now: now)
        }
    }
}
