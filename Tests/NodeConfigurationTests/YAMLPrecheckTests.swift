import NodeConfiguration
import Testing

@Suite("Hostile YAML files")
struct YAMLPrecheckTests {
    private func refusal(_ file: String) -> String? { faults(file).first }

    @Test("An anchor is refused at any position, so that nothing can be multiplied")
    func bombs() {
        var laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        for level in 1..<20 {
            let last = level == 1 ? "*a" : "*a\(level - 1)"
            let many = Array(repeating: last, count: 10).joined(separator: ",")
            laughs += "b\(level): &a\(level) [\(many)]\n"
        }
        #expect(refusal(laughs + "? *a19\n: x\n")?.contains("n.yaml, line 1: anchors") == true)
        for text in [
            "loops: &a 1", "&a loops: 1", "{&a loops: 1}", "listen: [&a x]", "listen: [x,&a y]",
            "listen:\n- &a x", "# c\r&a loops: 1", "\u{85}&a x: 1", "\"x\"&a : 1",
            "# é\u{2028}&a x: 1", "\u{FEFF}&a x: 1", "x: !t &a 1",
        ] {
            #expect(refusal(text)?.contains("anchors (&) are not supported") == true, "\(text)")
        }
    }

    @Test("Text that only looks like an anchor is accepted")
    func harmless() {
        for text in [
            "# R&D, Q & A, this &that\nloops: 1\n", "  # a &b ?\nloops: 1", "cache-dir: /a&b",
            "cache-dir: '/a & b'", "cache-dir: /what?", "# What is this?\nloops: 2\n",
        ] {
            #expect(refusal(text) == nil, "\(text)")
        }
    }

    @Test("Excessive depth and length are refused with a line, and do no harm")
    func deepAndLong() {
        for text in [
            String(repeating: "[", count: 100_000),
            "loops: " + String(repeating: "{", count: 100_000),
            String(repeating: "- ", count: 100_000), String(repeating: "? ", count: 1_000),
            (0..<900).map { String(repeating: " ", count: $0) + "a:\n" }.joined(),
            "loops: " + String(repeating: "[", count: 900) + String(repeating: "]", count: 900),
            "cache-dir: [" + String(repeating: "x", count: 900_000) + "]\n" + "loops: x",
            String(repeating: "x", count: 500_000) + ": 1",
            (0..<60_000).map { "k\($0): 1\n" }.joined(),
            String(repeating: "loops: 1\n", count: 60_000),
            "loops: \"" + String(repeating: "\\n", count: 100_000) + "\"",
        ] {
            let line = refusal(text)
            #expect(line != nil && line?.contains("\n") == false, "\(text.prefix(40))")
            #expect((line?.utf8.count ?? 0) < 2_000, "\(text.prefix(40))")
        }
    }

    @Test("A file of one MiB is accepted, and one byte more is not")
    func size() {
        let room = (1 << 20) - "loops: 1\n".utf8.count - 1
        let comment = "#" + String(repeating: "x", count: room)
        #expect(refusal("loops: 1\n" + comment) == nil)
        #expect(refusal("loops: 1\n" + comment + "x")?.contains("larger than 1 MiB") == true)
    }
}
