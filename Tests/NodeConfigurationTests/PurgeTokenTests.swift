import Ground
import HTTPRules
import NodeConfiguration
import Telemetry
import Testing

@Suite("Settings of PURGE")
struct PurgeTokenTests {
    private static let word = "0123456789abcdef"

    /// The tokens loaded from a file of these bytes, and the errors as lines.
    private func load(_ text: String?) throws -> (tokens: [TokenDigest], lines: [String]) {
        let loaded = try loadSettings(text) { ["purge-token-file": [$0]] }
        return (loaded.configuration?.purgeTokens ?? [], loaded.lines)
    }

    @Test("Only the digests of tokens are kept")
    func tokens() throws {
        let given = try load("# ours\n\(Self.word)\r\n\(Self.word)=\n")
        let (one, other) = (try load(Self.word).tokens, try load(Self.word + "=").tokens)
        #expect(one.count == 1 && other.count == 1 && one != other)
        #expect(given.tokens == one + other)
        let none = try ConfigurationSources(flags: [:], environment: [:]).load()
        #expect(none.purgeTokens.isEmpty && none.purgeFrom.isEmpty)
    }

    @Test(
        "An invalid file stops the start with the reason, without its content",
        arguments: [
            ("secret\n", "the token in line 1 has 6 characters"), ("", "it contains no token"),
            ("\(word)\n\(word)", "line 2 repeats a token"),
            ("\(word) x", "line 1 contains a character that a token cannot have"),
            (nil, "the file does not exist"),
        ] as [(String?, String)])
    func faults(text: String?, why: String) throws {
        let lines = try load(text).lines
        #expect(
            lines == [
                "setting purge-token-file: \"PATH\" cannot be used: \(why); "
                    + "allowed: \(TokenFile.allowed)"
            ])
    }

    @Test("Networks are a list in either notation")
    func networks() throws {
        let given = try ConfigurationSources(
            flags: [:], environment: ["NUTHATCH_PURGE_FROM": "10.0.0.0/8 ::1"]
        ).load()
        #expect(given.purgeFrom.map(\.description) == ["10.0.0.0/8", "::1/128"])
    }

    @Test("A running node adopts networks, and tokens changed in their file")
    func reloaded() throws {
        let sources = ConfigurationSources(flags: [:], environment: [:])
        var next = try ConfigurationSources(
            flags: ["purge-from": ["10.0.0.0/8"]], environment: [:]
        ).load()
        next.purgeTokens = try load(Self.word).tokens
        let (kept, change) = try sources.load().changed(to: next)
        #expect(kept.purgeTokens == next.purgeTokens && kept.purgeFrom.count == 1)
        #expect(change.live.map(\.setting.name) == ["purge-from"] && change.awaitingRestart.isEmpty)
    }
}
