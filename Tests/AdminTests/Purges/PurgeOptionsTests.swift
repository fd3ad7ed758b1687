import Admin
import Ground
import HTTPRules
import Testing

@Suite("Wait options and receipt names of purges")
struct PurgeOptionsTests {
    private let text = "0123456789abcdeffedcba9876543210-17"
    private let name = ReceiptID(
        high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210, number: 17)

    private func options(_ query: String) throws -> PurgeOptions {
        let parameters = AdminOperation.operation(.issuePurge).parameters
        return try PurgeOptions(AdminQuery(query[...], parameters))
    }

    @Test("The wait can be in the query or in the body")
    func options() throws {
        var body = PurgeRequest(targets: [.everything])
        let usual = try PurgeOptions().resolved(with: body)
        #expect(usual.wait == .issued && usual.timeout == .seconds(5))
        let resolved = try options("wait=all&timeout=1s").resolved(with: body)
        #expect(resolved.wait == .all && resolved.timeout == .seconds(1))
        #expect(try options("timeout_ms=1000").timeout == .seconds(1))
        #expect(try options("timeout=60s&").timeout == .seconds(60))
        #expect(try options("timeout_ms=0").timeout == .zero)
        body.wait = PurgeAcknowledgement.none
        body.timeout = .milliseconds(7)
        let inBody = try PurgeOptions().resolved(with: body)
        #expect(inBody.wait == .none && inBody.timeout == .milliseconds(7))
        #expect(throws: PurgeError.duplicateParameter("wait")) {
            try options("wait=all").resolved(with: body)
        }
        #expect(throws: PurgeError.duplicateParameter("timeout")) {
            try options("timeout=1s").resolved(with: body)
        }
    }

    @Test("An invalid query purges nothing")
    func badQueries() {
        for query in ["wait=most", "wait", "wait="] {
            #expect(
                throws: AdminQuery.QueryError.invalidValue("wait", allowed: "none, issued, all")
            ) {
                try options(query)
            }
        }
        for value in ["1", "61s", "2m", "-1s", "", "s", "1%73x"] {
            #expect(
                throws: AdminQuery.QueryError.invalidValue(
                    "timeout", allowed: "0s to 1m, with ms, s or m"),
                "\(value)"
            ) { try options("timeout=\(value)") }
        }
        for value in ["60001", "1s", "x", ""] {
            #expect(throws: AdminQuery.QueryError.invalidValue("timeout_ms", allowed: "0 to 60000"))
            {
                try options("timeout_ms=\(value)")
            }
        }
        #expect(throws: AdminQuery.QueryError.duplicateParameter("wait")) {
            try options("wait=all&wait=all")
        }
        #expect(throws: PurgeError.duplicateParameter("timeout")) {
            try options("timeout=1s&timeout_ms=1")
        }
        let known = ["wait", "timeout", "timeout_ms"]
        #expect(throws: AdminQuery.QueryError.unknownParameter("soft", allowed: known)) {
            try options("soft=1")
        }
    }

    @Test("A receipt's name has one spelling")
    func names() {
        #expect(name.description == text && ReceiptID(text) == name)
        let last = "00000000000000000000000000000000-18446744073709551615"
        #expect(ReceiptID(last)?.number == .max && ReceiptID(last)?.description == last)
        let digits = String(text.prefix(32))
        for other in [
            "", digits, digits + "-", digits + "-0", digits + "-01", digits + "-1x", digits + "_1",
            digits + "-+1", digits.uppercased() + "-1", "g" + digits.dropFirst() + "-1",
            digits.dropFirst() + "-1", digits + "-18446744073709551616", digits + "0-1",
            " " + text, text + " ",
        ] {
            #expect(ReceiptID(other) == nil, "\(other)")
        }
    }
}
