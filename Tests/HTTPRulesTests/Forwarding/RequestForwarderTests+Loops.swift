import Ground
import HTTPRules
import Testing

extension RequestForwarderTests {
    @Test("RFC 9110 §7.6.3: a request with too many Via entries of ours is refused")
    func loop() {
        let many = Array(repeating: "1.1 nuthatch", count: 7).joined(separator: ", 1.1 x, ")
        #expect(lines(outcome(["Via: \(many)"])).count > 1)
        #expect(outcome(["Via: \(many)", "Via: 1.1 nuthatch"]) == .loopDetected)
        let others = Array(repeating: "nuthatch;id=\"a,b\"", count: 7).joined(separator: ", x, ")
        #expect(lines(outcome(["CDN-Loop: \(others)"])).count > 1)
        #expect(outcome(["CDN-Loop: \(others)", "cdn-loop: Nuthatch"]) == .loopDetected)
        let twice = outcome(["Via: 1.1 nuthatch, 1.1 nuthatch"], version: "2")
        #expect(lines(twice).suffix(1) == ["Via: 2 nuthatch"])
        var rules = plain
        rules.hopsMax = 1
        #expect(outcome(["Via: 1.1 nuthatch"], rules) == .loopDetected)
    }

    @Test("RFC 8586: a request that returns with our identifier is refused, others are forwarded")
    func comesBack() {
        let passage = CDNLoop.LoopIdentifier(process: 0xAB, request: 0xCD)
        let mark = "nuthatch;id=00000000000000ab00000000000000cd"
        let first = outcome([], passage: passage)
        #expect(fields(first) == ["CDN-Loop: \(mark)"])
        for member in [
            mark, "NUTHATCH ; a=b; id=00000000000000ab00000000000000cd", "x, \(mark);c",
        ] {
            #expect(
                outcome(["CDN-Loop: \(member)"], passage: passage) == .loopDetected, "\(member)")
            #expect(
                fields(outcome(["CDN-Loop: \(member)"]))
                    == ["CDN-Loop: \(member)"], "\(member)")
        }
        for member in [
            "nuthatch", "nuthatch;id=00000000000000ab00000000000000ce",
            "x;id=\(mark.dropFirst(12))",
            "nuthatch;id=\"\(mark)\"", "nuthatch;x=\(mark.dropFirst(12))",
        ] {
            #expect(
                fields(outcome(["CDN-Loop: \(member)"], passage: passage))
                    == ["CDN-Loop: \(member)", "CDN-Loop: \(mark)"], "\(member)")
        }
    }

    @Test("RFC 8586: neither settings nor Connection remove CDN-Loop")
    func loopFieldStays() {
        var rules = plain
        rules.forwardsOthers = false
        rules.addsVia = false
        let passed = fields(outcome(["Connection: cdn-loop", "CDN-Loop: x"], rules))
        #expect(passed == ["CDN-Loop: x"])
        #expect(!RequestFieldRules.mayChange("cdn-loop".bytes))
        #expect(RequestFieldRules.mayChange("cdn-loops".bytes))
    }
}
