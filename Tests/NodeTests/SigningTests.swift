import Foundation
import Harness
import HTTPRules
import Node
import Testing

@Suite("The keys of signed URLs, and the command that signs")
struct SigningTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    /// Hands over the path of a file with these bytes.
    private func withFile<Result>(
        _ text: String, _ body: (String) throws -> Result
    ) throws -> Result {
        let path = FileManager.default.temporaryDirectory
            .appending(path: "nuthatch-keys-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data(text.utf8).write(to: URL(filePath: path))
        return try body(path)
    }

    private func load(_ flags: [String: [String]]) throws -> Configuration {
        try ConfigurationSources(flags: flags, environment: [:]).load()
    }

    @Test("the file's keys are taken, and a running node takes over others")
    func taken() throws {
        try withFile("a:\(Self.secret)\n") { path in
            var before = try load(["signing-key-file": [path]])
            #expect(before.signingKeys.map(\.name) == ["a"])
            let next = before
            before.signingKeys = []
            #expect(try before.changed(to: next).configuration.signingKeys == next.signingKeys)
        }
    }

    @Test("a file that is of no use stops the start and is named, without its secrets")
    func faults() throws {
        try withFile("\(Self.secret)\nshort-secret\n") { path in
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
        try withFile(file) { path in
            let faults = #expect(throws: ConfigurationFaults.self) {
                try load(["config": [path]])
            }
            #expect(
                faults?.lines == [
                    "site a.example (from \(path), line 2): signed is on; allowed: only with "
                        + "setting signing-key-file, e.g. --signing-key-file "
                        + "/etc/nuthatch/signing-keys"
                ])
            try withFile(Self.secret) { keys in
                let found = try load(["config": [path], "signing-key-file": [keys]])
                #expect(found.sites.sites.map(\.settings.isSigned) == [true])
            }
        }
    }

    @Test(
        "what is signed is printed as it is to be asked for",
        arguments: [
            (
                ["HTTP://A.example:80/x/../b"],
                "/v1/image?url=http%3A%2F%2Fa.example%2Fb"
                    + "&signature=Fmaj6MOkkVTm1vnFkJGNu1IJy1p-PIIzGn5-A_cjcUo"
            ),
            (
                ["--base", "http://n:8080/", "--expires-at", "1767225600", "http://a.example/b"],
                "http://n:8080/v1/image?url=http%3A%2F%2Fa.example%2Fb&expires=1767225600"
                    + "&signature=ulOpNGIaBvswWReDe03BU36EQDG98Xr4bRRGI11qV0o"
            ),
            (
                [
                    "--site", "www.example.com", "--expires-at", "4102444800",
                    "https://www.example.com/a?b=c",
                ],
                "https://www.example.com/a?b=c&expires=4102444800"
                    + "&signature=k3BDt7U8-W9EIHrl5V9ofUbXEKximVlgFqysZ_LWeOE"
            ),
            (
                ["--site", "www.example.com", "--expires-at", "4102444800", "/a?b=c"],
                "/a?b=c&expires=4102444800"
                    + "&signature=k3BDt7U8-W9EIHrl5V9ofUbXEKximVlgFqysZ_LWeOE"
            ),
            (
                [
                    "--site", "*", "--expires-at", "4102444800", "http://WWW.example.com:80/a?b=c",
                ],
                "http://WWW.example.com:80/a?b=c&expires=4102444800"
                    + "&signature=k3BDt7U8-W9EIHrl5V9ofUbXEKximVlgFqysZ_LWeOE"
            ),
        ])
    func printed(arguments: [String], line: String) throws {
        let outcome = try withFile("\(Self.secret)\nold:\(Self.secret)x\n") { path in
            try NodeProcess.run(
                ["sign"] + arguments, environment: ["NUTHATCH_SIGNING_KEY_FILE": path])
        }
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(String(decoding: outcome.output, as: UTF8.self) == line + "\n")
    }

    @Test(
        "what cannot be signed is named, and nothing is printed",
        arguments: [
            ["ftp://a/b"], ["http://a/%zz"], ["--expires-in", "1", "http://a/"],
            ["--expires-in", "0s", "http://a/"], ["--expires-at", "1767225600000", "http://a/"],
            ["--expires-at", "1", "--expires-in", "1h", "http://a/"], ["--base", "n", "http://a/"],
            ["--site", "a b", "/"], ["--site", "*", "/"], ["--site", "a", "http://a/#b"],
            ["--site", "a", "/b c"], ["--site", "a", "/b?signature=c"], ["--site", "a", "x"],
            ["--site", "a", "/b?expires=5&c"], ["--site", "a", "--base", "http://n", "/"], [],
            ["http://a/", "ftp://b/"],
        ])
    func refused(arguments: [String]) throws {
        let outcome = try withFile(Self.secret) { path in
            try NodeProcess.run(["sign", "--signing-key-file", path] + arguments)
        }
        #expect(outcome.status == 64, "\(outcome.errors)")
        #expect(outcome.output.isEmpty && !outcome.errors.isEmpty)
    }

    @Test("a file of keys that is refused has the status of settings that are")
    func badKeys() throws {
        let outcome = try NodeProcess.run(
            ["sign", "--signing-key-file", "/nowhere", "http://a/"])
        #expect(outcome.status == 78)
        #expect(outcome.errors.contains("there is no such file"), "\(outcome.errors)")
        #expect(try NodeProcess.run(["sign", "http://a/"]).status == 64)
    }

    @Test("a time from now is that many seconds ahead")
    func fromNow() throws {
        let outcome = try withFile(Self.secret) { path in
            try NodeProcess.run(
                ["sign", "--signing-key-file", path, "--expires-in", "90s", "http://a/"])
        }
        let line = String(decoding: outcome.output, as: UTF8.self)
        let seconds = try #require(
            line.firstMatch(of: /&expires=([0-9]+)&/).flatMap { Int($0.output.1) })
        let ahead = seconds - Int(Date().timeIntervalSince1970)
        #expect((60...90).contains(ahead))
    }
}
