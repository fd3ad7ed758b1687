import Ground
import HTTPRules
import Testing
import Trials

/// The timing of a head received at 1,000 s of the boot clock, 2 s after its request, on Sun, 06
/// Nov 1994 08:49:37 GMT.
let receipt = Freshness.ResponseTiming(
    requestedAt: Instant(nanoseconds: 998_000_000_000),
    receivedAt: Instant(nanoseconds: 1_000_000_000_000),
    receivedWallTime: WallTime(seconds: 784_111_777))

@Suite struct FreshnessTests {
    private func freshness(_ head: ResponseHead, defaultTTL: Int64 = 3600) -> Freshness {
        var policy = FreshnessPolicy(defaultTTL: .seconds(defaultTTL))
        policy.defaultsEveryStatus = true
        return Freshness(
            head, control: EffectiveCacheControl(cacheControlOf: head), timing: receipt,
            policy: policy)
    }

    private func age(_ fields: String...) -> Int64 {
        (receipt.receivedAt - freshness(ResponseHead(status: 200, fields: fields)).generatedAt)
            .seconds
    }

    @Test("RFC 9111 §4.2.3: without Age and Date the age is the response delay")
    func journey() {
        #expect(age() == 2)
    }

    @Test("RFC 9111 §4.2.3: the greater of apparent age and corrected Age counts")
    func greater() {
        #expect(age("Age: 100") == 102)
        #expect(age("Age: 0") == 2)
        #expect(age("Date: Sun, 06 Nov 1994 08:49:37 GMT") == 2)
        #expect(age("Date: Sun, 06 Nov 1994 08:49:27 GMT") == 10)
        #expect(age("Date: Sun, 06 Nov 1994 08:49:27 GMT", "Age: 7") == 10)
        #expect(age("Date: Sun, 06 Nov 1994 08:49:27 GMT", "Age: 9") == 11)
    }

    @Test("RFC 9111 §4.2.3: a Date in the future does not reduce the age below the delay")
    func future() {
        #expect(age("Date: Sun, 06 Nov 1994 09:49:37 GMT") == 2)
        #expect(age("Date: nonsense") == 2)
    }

    @Test(
        "RFC 9111 §5.1: the first member of Age counts, and an invalid number does not",
        arguments: [
            ("Age: 5, 10", 7), ("Age: 5,x", 7), ("Age:  5 ", 7), ("Age: x", 2), ("Age: -5", 2),
            ("Age: 5.5", 2), ("Age: ", 2), ("Age: ,5", 2), ("Age: \"5\"", 2), ("Age: x, 5", 2),
            ("Age: 2147483647", 2_147_483_649), ("Age: 2147483648", 2_147_483_650),
            ("Age: 99999999999999999999", 2_147_483_650),
        ] as [(String, Int64)])
    func ages(field: String, seconds: Int64) {
        #expect(age(field) == seconds)
    }

    @Test("RFC 9111 §5.1: of several Age lines the first counts")
    func severalAges() {
        #expect(age("Age: 5", "Age: 50") == 7)
        #expect(age("Age: 50", "Age: 5") == 52)
    }

    @Test("RFC 9111 §5.1: an invalid Age is ignored, whatever other lines follow")
    func brokenAges() {
        #expect(age("Age: x", "Age: 50") == 2)
        #expect(age("Age: 7200;foo=bar") == 2)
        #expect(age("Age: 7200;foo=111") == 2)
        #expect(age("Age: 0, 7200") == 2)
        #expect(age("Age: 7200, 0") == 7202)
        #expect(age("Age: 5", "Age: x") == 7)
    }

    @Test("RFC 9110 §6.6.1: of several Date lines the first counts, in any date format")
    func severalDates() {
        #expect(
            age("Date: Sun, 06 Nov 1994 08:49:27 GMT", "Date: Sun, 06 Nov 1994 08:49:07 GMT") == 10)
        #expect(age("Date: x", "Date: Sun, 06 Nov 1994 08:49:07 GMT") == 2)
        #expect(age("Date: Sunday, 06-Nov-94 08:49:27 GMT") == 10)
        #expect(age("Date: Sun Nov  6 08:49:27 1994") == 10)
    }

    private static let lifetimeTable: [([String], Int64)] = [
        (["Cache-Control: s-maxage=1, max-age=2", "Expires: 0"], 1),
        (["Cache-Control: max-age=2, s-maxage=1"], 1),
        (["Cache-Control: max-age=2", "Expires: Sun, 06 Nov 1994 09:49:37 GMT"], 2),
        (["Cache-Control: max-age=0"], 0),
        (["Cache-Control: max-age=x"], 0),
        (["Cache-Control: s-maxage=x, max-age=9"], 0),
        (["Expires: Sun, 06 Nov 1994 08:50:37 GMT"], 60),
        (
            ["Expires: Sun, 06 Nov 1994 08:50:37 GMT", "Date: Sun, 06 Nov 1994 08:50:07 GMT"],
            30
        ),
        (["Expires: Sun, 06 Nov 1994 08:50:37 GMT", "Date: x"], 60),
        (["Expires: Sun, 06 Nov 1994 08:49:36 GMT"], 0),
        (["Expires: Sun, 06 Nov 1993 08:49:36 GMT"], 0),
        (["Expires: 0"], 0), (["Expires: -1"], 0),
        (["Expires: "], 0),
        (["Expires: Sun, 06 Nov 1994 09:49:37 UTC"], 0),
        (["Expires: Sunday, 06-Nov-94 08:50:37 GMT"], 60),
        (["Expires: Sun Nov  6 08:50:37 1994"], 60),
        (["Expires: Fri, 31 Dec 9999 23:59:59 GMT"], 2_147_483_648),
        (["Expires: Sun, 06 Nov 1994 08:50:37 GMT", "Expires: 0"], 60),
        (["Expires: 0", "Expires: Sun, 06 Nov 1994 08:50:37 GMT"], 0),
        (["Cache-Control: no-cache"], 3600),
        (["Cache-Control: public"], 3600),
        ([], 3600),
    ]

    @Test(
        "RFC 9111 §4.2.1: s-maxage, then max-age, then Expires, then the default",
        arguments: lifetimeTable)
    func lifetime(fields: [String], seconds: Int64) {
        let found = freshness(ResponseHead(status: 200, fields: fields))
        #expect(found.lifetime == .seconds(seconds))
        #expect(found.freshUntil == found.generatedAt + .seconds(seconds))
    }

    @Test("A negative default TTL counts as none")
    func negativeDefault() {
        #expect(freshness(ResponseHead(200), defaultTTL: -5).lifetime == .zero)
    }

    @Test("RFC 9111 §4.2.3: the age at receipt is never negative")
    func neverNegative() {
        var dice = SplitMix64(seed: 3)
        for _ in 0..<Trials.count(5000) {
            var fields: [String] = []
            var date: [UInt8] = []
            let seconds = Int64.random(in: -62_000_000_000...253_000_000_000, using: &dice)
            HTTPDate.append(WallTime(seconds: seconds), to: &date)
            if Bool.random(using: &dice) { fields.append("Date: \(date.text)") }
            let age =
                UInt64.random(in: 0...UInt64.max, using: &dice)
                >> UInt64.random(in: 0..<64, using: &dice)
            if Bool.random(using: &dice) { fields.append("Age: \(age)") }
            let start = Int64.random(in: 0...Int64.max, using: &dice)
            let journey = Int64.random(in: -5_000_000_000...5_000_000_000, using: &dice)
            let receipt = Freshness.ResponseTiming(
                requestedAt: Instant(nanoseconds: start) - Interval(nanoseconds: journey),
                receivedAt: Instant(nanoseconds: start),
                receivedWallTime: WallTime(
                    seconds: Int64.random(in: 0...4_000_000_000, using: &dice)))
            let head = ResponseHead(status: 200, fields: fields)
            let found = Freshness(
                head, control: EffectiveCacheControl(head), timing: receipt,
                policy: FreshnessPolicy(defaultTTL: .seconds(1)))
            #expect(found.generatedAt <= receipt.receivedAt)
            #expect(found.lifetime >= .zero && found.freshUntil >= found.generatedAt)
        }
    }
}
