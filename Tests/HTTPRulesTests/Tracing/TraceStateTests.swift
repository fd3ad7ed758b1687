import Ground
import HTTPRules
import Testing
import Trials

@Suite("W3C Trace Context: tracestate")
struct TraceStateTests {
    private func state(_ text: String) -> String { TraceState.parse(text.bytes).text }

    @Test(
        "Members are forwarded in order, without white space and empty members",
        arguments: [
            ("", ""), ("  ,\t, ", ""), ("a=1", "a=1"), ("congo=t61rcWkgMzE", "congo=t61rcWkgMzE"),
            ("foo=1 \t , \t bar=2, \t baz=3", "foo=1,bar=2,baz=3"),
            (",foo=1,,bar=2,", "foo=1,bar=2"),
            ("foo=1,foo=1", "foo=1,foo=1"), ("foo=1,foo=2", "foo=1,foo=2"),
            ("0a_-*/@z=1", "0a_-*/@z=1"), ("fw529a3039@dt=x", "fw529a3039@dt=x"),
            ("a= x", "a= x"), ("a=\"b;c\"!~ <>", "a=\"b;c\"!~ <>"),
        ])
    func goesOn(text: String, expected: String) {
        #expect(state(text) == expected)
    }

    @Test(
        "One invalid member invalidates all",
        arguments: [
            "a", "=1", "a=", "a= ", "foo=bar=baz", "foo=,bar=3", "foo =1", "FOO=1", "foo.bar=1",
            "@foo=1", "_foo=1", "-foo=1", "*foo=1", "/foo=1", "foo bar=1", "fo\u{e9}=1",
            "a=\u{e9}", "a=\u{7F}", "a=b\tc", "ok=1,a", "a\u{0}=1",
        ])
    func invalid(text: String) {
        #expect(state(text) == "")
    }

    @Test("A key and a value have at most 256 bytes, a list 32 members")
    func limits() {
        let (long, value) = (String(repeating: "k", count: 256), String(repeating: "v", count: 200))
        #expect(state("\(long)=1") == "\(long)=1")
        #expect(state("\(long)k=1") == "")
        #expect(state("a=\(value)") == "a=\(value)")
        #expect(state("a=" + String(repeating: "v", count: 256)).utf8.count == 258)
        #expect(state("a=" + String(repeating: "v", count: 257)) == "")
        let members = (1...32).map { "k\($0)=\($0)" }
        #expect(state(members.joined(separator: ",")) == members.joined(separator: ","))
        #expect(state((members + ["a=1"]).joined(separator: ",")) == "")
    }

    @Test("Beyond 512 bytes long members are dropped first, then the last ones")
    func tooLong() {
        let short = (10..<40).map { "k\($0)=" + String(repeating: "v", count: 14) }
        // 30 members of 18 bytes with commas: 569.
        #expect(state(short.joined(separator: ",")) == short.prefix(27).joined(separator: ","))
        let long = "long=" + String(repeating: "l", count: 130)
        let exact = (10..<13).map { "k\($0)=" + String(repeating: "v", count: 124) }
        let text = ([long] + exact).joined(separator: ",")
        #expect(state(text) == exact.joined(separator: ","))
        let two = [String](repeating: "l=" + String(repeating: "l", count: 250), count: 2)
        let (fits, above) = (two + ["a=1234"], two + ["a=12345"])
        #expect(state(fits.joined(separator: ",")) == fits.joined(separator: ","))
        #expect(state(above.joined(separator: ",")) == "\(two[0]),a=12345")
    }

    @Test("Several lines are one list, and an invalid one does not affect the parent")
    func lines() {
        let parent = "traceparent: 00-\(TraceContextTests.trace)-\(TraceContextTests.parent)-01"
        func context(_ fields: String...) -> TraceContext? {
            let head = ResponseHead(status: 200, fields: fields)
            return TraceContext(head.lines, in: head.bytes.span)
        }
        #expect(context("TraceState: a=1", parent, "tracestate: b=2")?.state.text == "a=1,b=2")
        let three = context("tracestate: a=1", "tracestate: ", "tracestate: b=2", parent)
        #expect(three?.state.text == "a=1,b=2")
        #expect(context(parent, "tracestate: A=1")?.state.text == "")
        #expect(context(parent)?.state.text == "")
    }

    @Test("A forwarded list is short and is forwarded unchanged by the next node")
    func again() {
        var dice = SplitMix64(seed: 3)
        var passed = 0
        for _ in 0..<Trials.count(20_000) {
            let count = Int.random(in: 1...256, using: &dice)
            let member = "k=" + String(repeating: "x", count: count)
            let text = dice.text(of: "ab1=,=,_ \t@Z", upTo: 20) + ",\(member),\(member),\(member)"
            let once = TraceState.parse(text.bytes)
            #expect(once.count <= TraceState.bytesMax)
            #expect(TraceState.parse(once) == once)
            if !once.isEmpty { passed += 1 }
        }
        #expect(passed > Trials.count(500))
    }
}
