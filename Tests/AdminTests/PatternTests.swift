import Admin
import FoundationEssentials
import HTTPRules
import Testing

@Suite("Patterns in the OpenAPI description")
struct PatternTests {
    /// Valid, invalid and borderline texts of each kind.
    private static let texts = [
        "a", "", " ", "a b", " a", "a ", "a\tb", "\ta", "a\u{1}b", "a\u{7F}", "\u{80}", "ä", "ä ",
        "a?b", "a#b", "host/path", "//host/path", "https://host/path", "HtTp://host/a b", "http:/x",
        "ftp://host/", "http://", "http://a\u{1}/", String(repeating: "0a", count: 16),
        String(repeating: "0A", count: 16), String(repeating: "0", count: 31),
        String(repeating: "0a", count: 16) + "-1", String(repeating: "0a", count: 16) + "-0",
        String(repeating: "0a", count: 16) + "-01", String(repeating: "0a", count: 16) + "-",
        String(repeating: "0a", count: 16) + "-9999999999999999999",
        String(repeating: "0a", count: 16) + "-18446744073709551615",
    ]

    private func isRead(_ body: JSON) -> Bool {
        let data = Data(body.compactText.utf8)
        return (try? JSONDecoder().decode(PurgeRequest.self, from: data)) != nil
    }

    private func isDescribed(_ body: JSON) throws -> Bool {
        let shape = try #require(AdminOperation.operation(.issuePurge).body?.schema.json)
        return ShapeCheck.faults(body, shape, at: "body").isEmpty
    }

    @Test(
        "The patterns for ids and tags of purges match exactly what is accepted", arguments: texts)
    func exact(_ text: String) throws {
        let tag: JSON = ["targets": [["tag": .text(text)]]]
        #expect(try isDescribed(tag) == isRead(tag))
        let id: JSON = ["id": .text(text), "targets": [["everything": true]]]
        #expect(try isDescribed(id) == isRead(id))
    }

    @Test("The patterns for URLs and prefixes match everything that is accepted", arguments: texts)
    func wider(_ text: String) throws {
        for name in ["url", "prefix"] {
            let body: JSON = ["targets": [.object([JSON.Member(name, .text(text))])]]
            #expect(try isDescribed(body) || !isRead(body), "\(name)")
        }
        #expect(try !isDescribed(["targets": [["url": "host/path"]]]))
        #expect(try !isDescribed(["targets": [["prefix": "host/path?a"]]]))
    }

    @Test("The pattern for receipts matches exactly what is accepted", arguments: texts)
    func names(_ text: String) throws {
        let parameter = try #require(AdminOperation.operation(.getReceipt).parameters.first)
        let faults = ShapeCheck.faults(.text(text), parameter.schema.json, at: "receipt")
        #expect(faults.isEmpty == (ReceiptID(text) != nil))
    }

    @Test("The problem for an entry that is not held includes its owners")
    func owners() {
        let problem: JSON = [
            "type": "urn:nuthatch:problem:entry-unknown", "title": "Not stored on this node",
            "status": 404, "owners": [.text(String(repeating: "0a", count: 16))],
        ]
        #expect(ShapeCheck.faults(problem, .getEntry, 404) == [])
    }
}
