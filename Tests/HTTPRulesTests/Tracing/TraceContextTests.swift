import Ground
import HTTPRules
import Testing
import Trials

@Suite("W3C Trace Context: traceparent")
struct TraceContextTests {
    static let trace = "0af7651916cd43dd8448eb211c80319c"
    static let parent = "b7ad6b7169203331"

    private func context(_ fields: String...) -> TraceContext? {
        let head = ResponseHead(status: 200, fields: fields)
        return TraceContext(head.lines, in: head.bytes.span)
    }

    /// The forwarded traceparent.
    private func onward(_ context: TraceContext?) -> String? {
        context?.traceparent(span: 0x00F0_67AA_0BA9_02B7).text
    }

    @Test(
        "Trace id and flags are forwarded, and the parent is this node's own",
        arguments: [
            ("00", "00"), ("01", "01"), ("02", "02"), ("03", "03"),
            // Flags without a meaning in any version are not forwarded.
            ("ff", "03"), ("fc", "00"), ("09", "01"),
        ])
    func goesOn(flags: String, passed: String) {
        let context = context("traceparent: 00-\(Self.trace)-\(Self.parent)-\(flags)")
        #expect(onward(context) == "00-\(Self.trace)-00f067aa0ba902b7-\(passed)")
        #expect(context?.traceIDText == Self.trace)
        #expect(context?.parentID == 0xB7AD_6B71_6920_3331)
        #expect(onward(context)?.utf8.count == TraceContext.parentBytes)
    }

    @Test(
        "The name is matched in any case", arguments: ["traceparent", "TraceParent", "TRACEPARENT"])
    func name(name: String) {
        #expect(context("\(name): 00-\(Self.trace)-\(Self.parent)-01") != nil)
    }

    @Test(
        "Of a later version the common part is read",
        arguments: [
            "01-\(trace)-\(parent)-01", "cc-\(trace)-\(parent)-01",
            "fe-\(trace)-\(parent)-01-", "cc-\(trace)-\(parent)-01-what-will-be",
        ])
    func later(value: String) {
        #expect(onward(context("traceparent: \(value)")) == "00-\(Self.trace)-00f067aa0ba902b7-01")
    }

    @Test(
        "An invalid traceparent is ignored",
        arguments: [
            "", "-", "00", "00-\(trace)-\(parent)", "00-\(trace)-\(parent)-",
            // This version ends here; a later one continues after a dash.
            "00-\(trace)-\(parent)-01-", "00-\(trace)-\(parent)-01.",
            "00-\(trace)-\(parent)-01-more", "cc-\(trace)-\(parent)-01.more",
            "cc-\(trace)-\(parent)-0", "cc-\(trace)-\(parent)-011",
            // The version.
            "ff-\(trace)-\(parent)-01", ".0-\(trace)-\(parent)-01", "0.-\(trace)-\(parent)-01",
            "0-\(trace)-\(parent)-01", "000-\(trace)-\(parent)-01", "0G-\(trace)-\(parent)-01",
            "CC-\(trace)-\(parent)-01",
            // The trace.
            "00-00000000000000000000000000000000-\(parent)-01",
            "00-0AF7651916cd43dd8448eb211c80319c-\(parent)-01",
            "00-.af7651916cd43dd8448eb211c80319c-\(parent)-01",
            "00-\(trace)0-\(parent)-01", "00-af7651916cd43dd8448eb211c80319c-\(parent)-01",
            // The parent.
            "00-\(trace)-0000000000000000-01", "00-\(trace)-B7ad6b7169203331-01",
            "00-\(trace)-b7ad6b716920333.-01", "00-\(trace)-\(parent)0-01",
            "00-\(trace)-7ad6b7169203331-01",
            // The flags.
            "00-\(trace)-\(parent)-.1", "00-\(trace)-\(parent)-0.", "00-\(trace)-\(parent)-1",
            "00-\(trace)-\(parent)-0A",
            // Another separator.
            "00_\(trace)-\(parent)-01", "00-\(trace)_\(parent)-01", "00-\(trace)-\(parent)_01",
            "00-\(trace)-\(parent)-01,00-\(trace)-\(parent)-01", "00-\(trace)-\(parent)-01 a",
        ])
    func invalid(value: String) {
        #expect(context("traceparent: \(value)", "tracestate: a=1") == nil)
    }

    @Test("A repeated traceparent, and a tracestate alone, are ignored")
    func counts() {
        let valid = "traceparent: 00-\(Self.trace)-\(Self.parent)-01"
        #expect(context(valid, valid) == nil)
        #expect(context("tracestate: a=1") == nil)
        #expect(context("X: 1", valid, "Y: 2") != nil)
        #expect(context() == nil)
    }

    @Test("Random bytes never trap, and a valid value is written as it was read")
    func random() {
        var dice = SplitMix64(seed: 2)
        var found = 0
        for _ in 0..<Trials.count(50_000) {
            var text = "00-\(Self.trace)-\(Self.parent)-01".bytes
            for _ in 0..<Int.random(in: 0...2, using: &dice) {
                let index = Int.random(in: 0..<text.count, using: &dice)
                text[index] = dice.byte(of: "0123456789abcdefAF-, .\u{0}".bytes)
            }
            if Bool.random(using: &dice) { text.append(dice.byte(of: "-0".bytes)) }
            guard let context = TraceContext(parent: text) else { continue }
            found += 1
            let written = context.traceparent(span: context.parentID)
            #expect(written[2..<53] == text[2..<53])
        }
        #expect(found > Trials.count(5_000))
    }
}
