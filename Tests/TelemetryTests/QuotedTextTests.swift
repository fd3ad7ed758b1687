import Telemetry
import Testing

@Suite("Untrusted text on one line")
struct QuotedTextTests {
    @Test(
        "Everything that could break or reverse a line is escaped",
        arguments: [
            ("a b", "\"a b\""), ("", "\"\""), ("a\"b\\c", "\"a\\\"b\\\\c\""),
            ("a\nb\r\tc", "\"a\\nb\\r\\tc\""),
            ("\u{0}\u{1B}[2J\u{7F}", "\"\\u{0}\\u{1B}[2J\\u{7F}\""),
            ("\u{85}\u{2028}\u{2029}", "\"\\u{85}\\u{2028}\\u{2029}\""),
            ("a\u{202E}b\u{FEFF}", "\"a\\u{202E}b\\u{FEFF}\""), ("né 日本", "\"né 日本\""),
        ])
    func escapes(text: String, quoted: String) {
        #expect(text.quoted() == quoted)
        #expect(text.singleLine == text || quoted.contains("\\"))
    }

    @Test("A long text is truncated and marked as such")
    func cuts() {
        let text = String(repeating: "x", count: 81)
        #expect(text.quoted(limit: 81) == "\"\(text)\"")
        #expect(text.quoted(limit: 80) == "\"\(text.dropLast())…\"")
    }
}
