import Foundation
import HTTPRules
import Testing

@Suite("The guide's list of unkeyed fields")
struct UnkeyedPageTests {
    @Test("The page lists exactly the fields that are not forwarded")
    func list() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
        let page = try String(
            contentsOf: root.appending(path: "Sources/nuthatch/nuthatch.docc/Credentials.md"),
            encoding: .utf8)
        let start = try #require(page.range(of: "## Fields that are in no key"))
        let list = try #require(
            page[start.upperBound...].components(separatedBy: "\n\n").first { $0.hasPrefix("`") })
        let words = list.components(separatedBy: "`")
        let named = words.indices.filter { !$0.isMultiple(of: 2) }.map { words[$0] }
        #expect(named == UnkeyedFields.names)
    }
}
