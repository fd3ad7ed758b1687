import HTTPRules
import Harness
import NodeConfiguration
import Testing

@Suite("Settings of signed URLs")
struct SigningTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    @Test("The keys in the file are used, and a running node adopts others")
    func taken() throws {
        let loaded = try loadSettings("a:\(Self.secret)\n") { ["signing-key-file": [$0]] }
        let next = try #require(loaded.configuration)
        #expect(next.signingKeys.map(\.name) == ["a"])
        var before = next
        before.signingKeys = []
        #expect(try before.changed(to: next).configuration.signingKeys == next.signingKeys)
    }

    @Test("An invalid file stops the start with the reason, without its secrets")
    func faults() throws {
        let text = "\(Self.secret)\nshort-secret\n"
        #expect(
            try loadSettings(text) { ["signing-key-file": [$0]] }.lines == [
                "setting signing-key-file: \"PATH\" cannot be used: the secret in line 2 "
                    + "has 12 characters; allowed: 1 to 16 lines SECRET or NAME:SECRET, each "
                    + "secret 32 to 512 visible ASCII characters; # begins a comment line"
            ])
    }

    @Test("A site with signed URLs requires keys")
    func siteWithoutKeys() throws {
        let file = "sites:\n  a.example: {origin: http://o.example, signed: on}\n"
        #expect(
            try loadSettings(file) { ["config": [$0]] }.lines == [
                "site a.example (from PATH, line 2): signed is on; allowed: only with "
                    + "setting signing-key-file, e.g. --signing-key-file "
                    + "/etc/nuthatch/signing-keys"
            ])
        try withTemporaryFile(Self.secret) { keys in
            let loaded = try loadSettings(file) { ["config": [$0], "signing-key-file": [keys]] }
            #expect(loaded.configuration?.sites.sites.map(\.settings.requiresSignature) == [true])
        }
    }
}
