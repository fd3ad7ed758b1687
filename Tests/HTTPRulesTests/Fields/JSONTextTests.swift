import HTTPRules
import Testing

@Suite("JSON strings")
struct JSONTextTests {
    @Test(
        "RFC 8259 §7: required escapes and control characters of terminals are escaped",
        arguments: [
            ("", ""), ("a\"b\\c", #"a\"b\\c"#), ("\u{1B}[31m\n", #"\u001b[31m\u000a"#),
            ("\u{7F}", #"\u007f"#), ("\u{9B}31m", #"\u009b31m"#),
            ("\u{80}\u{9F}", #"\u0080\u009f"#),
            ("\u{A0}", "\u{A0}"), ("ÂÃ\u{BF}", "ÂÃ\u{BF}"), ("é€🙂", "é€🙂"),
            ("Â\u{85}Â", #"Â\u0085Â"#),
        ])
    func quoted(text: String, expected: String) {
        #expect(JSONText.quoted(text) == "\"\(expected)\"")
    }
}
