import Foundation
import Harness
import Testing

@Suite("nuthatch sign")
struct SignCommandTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    @Test(
        "Signed URLs are printed in the form to be requested",
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
        let outcome = try withTemporaryFile("\(Self.secret)\nold:\(Self.secret)x\n") { path in
            try NodeProcess.run(
                ["sign"] + arguments, environment: ["NUTHATCH_SIGNING_KEY_FILE": path])
        }
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(String(decoding: outcome.output, as: UTF8.self) == line + "\n")
    }

    @Test(
        "A URL that cannot be signed is reported, and nothing is printed",
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
        let outcome = try withTemporaryFile(Self.secret) { path in
            try NodeProcess.run(["sign", "--signing-key-file", path] + arguments)
        }
        #expect(outcome.status == 64, "\(outcome.errors)")
        #expect(outcome.output.isEmpty && !outcome.errors.isEmpty)
    }

    @Test("A refused key file has the status of refused settings")
    func badKeys() throws {
        let outcome = try NodeProcess.run(
            ["sign", "--signing-key-file", "/nowhere", "http://a/"])
        #expect(outcome.status == 78)
        #expect(outcome.errors.contains("the file does not exist"), "\(outcome.errors)")
        #expect(try NodeProcess.run(["sign", "http://a/"]).status == 64)
    }

    @Test("An expiry from now is that many seconds ahead")
    func fromNow() throws {
        let outcome = try withTemporaryFile(Self.secret) { path in
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
