import NodeConfiguration
import Testing

@Suite("The token for decision traces")
struct DecisionTokenTests {
    /// The token loaded from a file of these bytes, and the errors as lines.
    private func load(_ text: String?) throws -> (token: [UInt8]?, lines: [String]) {
        let loaded = try loadSettings(text) { ["decision-token-file": [$0]] }
        return (loaded.configuration?.decisionToken, loaded.lines)
    }

    @Test("A token is read without the end of its line")
    func words() throws {
        let word = "0123456789abcdef"
        for text in [word, word + "\n", word + "\r\n", word + "\n\n"] {
            #expect(try load(text).token == Array(word.utf8))
        }
        #expect(try load(String(repeating: "x", count: 256)).token?.count == 256)
    }

    @Test(
        "An invalid token stops the start with the reason",
        arguments: [
            ("0123456789abcde\n", "it contains 15 characters"), ("", "it contains 0 characters"),
            (String(repeating: "x", count: 257), "it contains 257 characters"),
            ("0123456789abcdef ghi", "it contains more than one word"),
            ("0123456789abcdef\n0", "it contains more than one word"),
            ("0123456789abcdefé", "it contains more than one word"),
            (nil, "the file does not exist"),
        ] as [(String?, String)])
    func faults(text: String?, why: String) throws {
        #expect(
            try load(text).lines == [
                "setting decision-token-file: \"PATH\" cannot be used: \(why); "
                    + "allowed: a file of 16 to 256 visible ASCII characters in one line"
            ])
    }

    @Test("A running node adopts a token changed in its file")
    func reloaded() throws {
        let sources = ConfigurationSources(flags: [:], environment: [:])
        var (before, next) = (try sources.load(), try sources.load())
        before.decisionToken = Array("old".utf8)
        next.decisionToken = Array("new".utf8)
        #expect(try before.changed(to: next).configuration.decisionToken == Array("new".utf8))
    }
}
