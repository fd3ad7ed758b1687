import Admin
import FoundationEssentials
import HTTPRules
import Testing

@Suite("What the description says of texts")
struct PatternTests {
    /// Of each kind some that are, some that are not, and some that are hard to tell.
    private static let texts = [
        "a", "", " ", "a b", " a", "a ", "a\tb", "\ta", "a\u{1}b", "a\u{7F}", "\u{80}", "ä", "ä ",
        "a?b", "a#b", "host/path", "//host/path", "https://host/path", "HtTp://host/a b", "http:/x",
        "ftp://host/", "http://", "http://a\u{1}/", String(repeating: "0a", count: 16),
        String(repeating: "0A", count: 16), String(repeating: "0", count: 31),
        String(repeating: "0a", count: 16) + "-1", String(repeating: "0a", count: 16) + "-0",
        String(repeating: "0a", count: 16) + "-01", String(repeating: "0a", count: 16) + "-",
        String(repeating: "0a", count: 16) + "-9999999999999999999",
    ]

    private func isRead(_ body: JSON) -> Bool {
        let data = Data(body.compactText.utf8)
        return (try? JSONDecoder().decode(PurgeRequest.self, from: data)) != nil
    }

    private func isDescribed(_ body: JSON) throws -> Bool {
        let shape = try #require(AdminOperation.operation(.issuePurge).body?.schema.json)
        return ShapeCheck.faults(body, shape, at: "body").isEmpty
    }

    @Test("ids and tags of purges are described as they are read", arguments: texts)
    func exact(_ text: String) throws {
        let tag: JSON = ["targets": [["tag": .text(text)]]]
        #expect(try isDescribed(tag) == isRead(tag))
        let id: JSON = ["id": .text(text), "targets": [["everything": true]]]
        #expect(try isDescribed(id) == isRead(id))
    }

    @Test("every URL and prefix that is read is described", arguments: texts)
    func wider(_ text: String) throws {
        for name in ["url", "prefix"] {
            let body: JSON = ["targets": [.object([JSON.Member(name, .text(text))])]]
            #expect(try isDescribed(body) || !isRead(body), "\(name)")
        }
        #expect(try !isDescribed(["targets": [["url": "host/path"]]]))
        #expect(try !isDescribed(["targets": [["prefix": "host/path?a"]]]))
    }

    @Test("names of receipts are described as they are read", arguments: texts)
    func names(_ text: String) throws {
        let parameter = try #require(AdminOperation.operation(.getReceipt).parameters.first)
        let faults = ShapeCheck.faults(.text(text), parameter.schema.json, at: "receipt")
        #expect(faults.isEmpty == (ReceiptID(text) != nil))
    }

    @Test("who owns what is not held is a part of the problem")
    func owners() {
        let problem: JSON = [
            "type": "urn:nuthatch:problem:entry-unknown", "title": "Nothing is held here",
            "status": 404, "owners": [.text(String(repeating: "0a", count: 16))],
        ]
        #expect(ShapeCheck.faults(problem, .getEntry, 404) == [])
    }
}
