import Foundation
import HTTPRules
import Harness
import NodeConfiguration
import Testing

@Suite("Secret field values of sites are never shown")
struct SiteSecretTests {
    private let secret = "Bearer Zm9vYmFy"

    private func file(_ fields: String) -> String {
        "sites:\n  a.example:\n    origin: http://o.example\n    set-request-fields: \(fields)\n"
    }

    /// Loads a file whose only site has these fields, with `VALUE` for the path of a file with
    /// `text`.
    private func load(
        _ fields: String, _ text: String?
    ) throws -> (configuration: Configuration?, lines: [String]) {
        try withTemporaryFile(text) { path in
            let text = file(fields.replacing("VALUE", with: path))
            let loaded = try loadSettings(text) { ["config": [$0]] }
            return (loaded.configuration, loaded.lines.map { $0.replacing(path, with: "VALUE") })
        }
    }

    private func values(_ configuration: Configuration?) -> [String] {
        (configuration?.sites[0].settings.overriddenRequestFields ?? []).map {
            String(decoding: $0.value, as: UTF8.self)
        }
    }

    @Test("The listing has names and paths of files, and no values")
    func listing() throws {
        let text = file("{Authorization: \(secret), X-Edge: a, X-Key: {file: /run/k}}")
        let configuration = try resolve(file: text)
        #expect(
            configuration.listing.last
                == "    set-request-fields: {Authorization: \"(redacted)\", "
                + "X-Edge: \"(redacted)\", X-Key: {file: /run/k}}")
        #expect(values(configuration) == [secret, "a", ""])
    }

    @Test("The placeholder of the listing is not accepted as a value")
    func redacted() {
        let lines = faults(file("{Authorization: (redacted)}"))
        #expect(lines.count == 1)
        #expect(lines.first?.contains("the value of \"Authorization\" is invalid; ") == true)
    }

    @Test("A refused value is not repeated in the error")
    func refused() {
        for fields in ["{Authorization: ' \(secret)'}", "{Authorization: \"\(secret)\\n\"}"] {
            let lines = faults(file(fields))
            #expect(lines.count == 1 && !lines[0].contains("Zm9v"), "\(lines)")
        }
    }

    @Test("A changed value is reported by name, even if it is the only change")
    func changes() throws {
        let before = try resolve(file: file("{Authorization: \(secret)}"))
        let next = try resolve(file: file("{Authorization: Bearer YmFyZm9v}"))
        let (after, change) = try before.changed(to: next)
        let site = "a.example=http://o.example, set-request-fields: {Authorization: \"(redacted)\"}"
        #expect(change.live.map(\.description) == ["site \(site) -> \(site) with other secrets"])
        #expect(values(after) == ["Bearer YmFyZm9v"])
        #expect(try before.changed(to: before).change.isEmpty)
    }

    @Test("A file contains the value, with or without the end of the line")
    func ofFile() throws {
        for text in [secret, secret + "\n", secret + "\r\n"] {
            let loaded = try load("{X-A: b, Authorization: {file: VALUE}}", text).configuration
            #expect(values(loaded) == ["b", secret])
        }
        let first = try load("{A: {file: VALUE}}", "1").configuration
        let second = try load("{A: {file: VALUE}}", "2").configuration
        let (after, _) = try #require(first).changed(to: #require(second))
        #expect(values(after) == ["2"])
    }

    @Test(
        "An invalid file is reported with its site and field, without its content",
        arguments: [
            (nil, "the file does not exist"), ("", "it is empty"), ("\n", "it is empty"),
            ("Zm9v\nZm9v\n", "it is not a field value"),
            (" Zm9v", "it is not a field value"),
        ] as [(String?, String)])
    func useless(text: String?, why: String) throws {
        let lines = try load("{Authorization: {file: VALUE}}", text).lines
        #expect(
            lines == [
                "site a.example (from PATH, line 2): set-request-fields: Authorization: "
                    + "\"VALUE\" cannot be used: \(why); "
                    + "allowed: a file of 1 to 4096 bytes in one line"
            ])
    }

    @Test(
        "Only values of request fields may come from a file, given as one path",
        arguments: [
            "set-request-fields: {A: {file: ''}}", "set-request-fields: {A: {path: /a}}",
            "set-request-fields: {A: {file: /a, b: c}}", "set-request-fields: {A: {file: [/a]}}",
            "set-response-fields: {A: {file: /a}}", "negative-ttl: {404: {file: /a}}",
        ])
    func elsewhere(line: String) {
        let text = "sites:\n  a.example:\n    origin: http://o.example\n    \(line)\n"
        #expect(faults(text).count == 1)
    }

    @Test("A password in a refused URL is not repeated in the error")
    func passwords() throws {
        let texts = [
            "origin-proxy: me:Zm9v@proxy.example:3128", "site: a.example=http://me:Zm9v@o.example",
            "sites: {a.example: 'http://me:Zm9v@o.example'}", "allow-origin: me:Zm9v@o.example",
        ]
        for text in texts {
            let lines = faults(text)
            #expect(lines.count == 1 && !lines[0].contains("Zm9v"), "\(lines)")
            #expect(lines.first?.contains("…@") == true, "\(lines)")
        }
    }
}
