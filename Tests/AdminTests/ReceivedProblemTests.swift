import Admin
import Foundation
import HTTPRules
import Testing

@Suite("Problem documents as the client reads them")
struct ReceivedProblemTests {
    private func read(_ text: String) throws -> ReceivedProblem {
        try JSONDecoder().decode(ReceivedProblem.self, from: Data(text.utf8))
    }

    @Test("A node's problem is read as it was written")
    func node() throws {
        var bytes: [UInt8] = []
        ProblemDocument(status: 503, name: "overloaded", title: "Too much", detail: "Wait.\n")
            .append(to: &bytes)
        let report = try read(String(decoding: bytes, as: UTF8.self))
        #expect(report.name == "overloaded" && report.message == "Too much: Wait.\\n")
    }

    @Test("A foreign problem has no name, and may have fewer members")
    func others() throws {
        let report = try read(#"{"type": "about:blank", "title": "No"}"#)
        #expect(report.name == nil && report.message == "No")
        #expect(throws: (any Error).self) { try read(#"{"type": "urn:nuthatch:problem:a"}"#) }
    }

    @Test("Of a body that is no problem document the beginning is shown on one line")
    func text() {
        let report = ReceivedProblem(ofText: Array("a\n\(String(repeating: "b", count: 100))".utf8))
        #expect(report.name == nil && report.message.hasPrefix("a\\nbb"))
        #expect(report.message.count == 81)
    }
}
