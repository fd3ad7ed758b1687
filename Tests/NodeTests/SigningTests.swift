import Harness
import HTTPRules
import Node
import Testing

@Suite("The keys of signed URLs")
struct SigningTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    private func load(_ flags: [String: [String]]) throws -> Configuration {
        try ConfigurationSources(flags: flags, environment: [:]).load()
    }

    @Test("the file's keys are taken, and a running node takes over others")
    func taken() throws {
        try withTemporaryFile("a:\(Self.secret)\n") { path in
            var before = try load(["signing-key-file": [path]])
            #expect(before.signingKeys.map(\.name) == ["a"])
            let next = before
            before.signingKeys = []
            #expect(try before.changed(to: next).configuration.signingKeys == next.signingKeys)
        }
    }

    @Test("a file that is of no use stops the start and is named, without its secrets")
    func faults() throws {
        try withTemporaryFile("\(Self.secret)\nshort-secret\n") { path in
            let faults = #expect(throws: ConfigurationFaults.self) {
                try load(["signing-key-file": [path]])
            }
            #expect(
                faults?.lines == [
                    "setting signing-key-file: \"\(path)\" cannot be used: the secret in line 2 "
                        + "has 12 characters; allowed: 1 to 16 lines SECRET or NAME:SECRET, each "
                        + "secret 32 to 512 visible ASCII characters; # begins a comment line"
                ])
        }
    }

    @Test("a site that is to be signed needs keys")
    func siteWithoutKeys() throws {
        let file = "sites:\n  a.example: {origin: http://o.example, signed: on}\n"
        try withTemporaryFile(file) { path in
            let faults = #expect(throws: ConfigurationFaults.self) {
                try load(["config": [path]])
            }
            #expect(
                faults?.lines == [
                    "site a.example (from \(path), line 2): signed is on; allowed: only with "
                        + "setting signing-key-file, e.g. --signing-key-file "
                        + "/etc/nuthatch/signing-keys"
                ])
            try withTemporaryFile(Self.secret) { keys in
                let found = try load(["config": [path], "signing-key-file": [keys]])
                #expect(found.sites.sites.map(\.settings.isSigned) == [true])
            }
        }
    }
}
