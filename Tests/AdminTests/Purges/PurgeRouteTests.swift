import Admin
import Ground
import HTTPRules
import Testing

@Suite("Routes of purges")
struct PurgeRouteTests {
    private let text = "0123456789abcdeffedcba9876543210-17"
    private let name = ReceiptName(
        high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210, number: 17)

    private func options(_ query: String) throws -> PurgeOptions {
        let route = PurgeRoute(method: "POST", target: "/admin/v1/purges" + query)
        guard case .issue(let options)? = route else {
            throw Unexpected(route: route)
        }
        return options
    }

    private struct Unexpected: Error {
        var route: PurgeRoute?
    }

    private func fault(_ method: String, _ target: String) -> PurgeFault? {
        guard case .refused(let fault)? = PurgeRoute(method: method, target: target) else {
            return nil
        }
        return fault
    }

    @Test("a purge is posted, a receipt is got by its name or by the client's id")
    func routes() {
        let path = "/admin/v1/purges"
        #expect(PurgeRoute(method: "POST", target: path) == .issue(PurgeOptions()))
        #expect(PurgeRoute(method: "POST", target: path + "?") == .issue(PurgeOptions()))
        for method in ["GET", "HEAD"] {
            #expect(PurgeRoute(method: method, target: "\(path)/\(text)") == .receipt(name))
            #expect(PurgeRoute(method: method, target: "\(path)/\(text)?x") == .receipt(name))
            #expect(
                PurgeRoute(method: method, target: path + "?id=deploy%2D7+%C3%A9")
                    == .receiptOfID(Array("deploy-7+é".utf8)))
        }
        #expect(
            PurgeRoute(method: "DELETE", target: path)
                == .methodNotAllowed(allowed: "GET, HEAD, POST"))
        #expect(
            PurgeRoute(method: "POST", target: "\(path)/\(text)")
                == .methodNotAllowed(allowed: "GET, HEAD"))
        for target in ["/admin/v1/purge", "/admin/v1/purgesx", "/admin/v1/members", "", "*"] {
            #expect(PurgeRoute(method: "GET", target: target) == nil)
        }
    }

    @Test("what is waited for can stand in the query or in the body")
    func options() throws {
        var body = PurgeRequest(targets: [.everything])
        let usual = try PurgeOptions().settled(with: body)
        #expect(usual.wait == .issued && usual.timeout == .seconds(5))
        let said = try options("?wait=all&timeout=1s").settled(with: body)
        #expect(said.wait == .all && said.timeout == .seconds(1))
        #expect(try options("?timeout_ms=1000").timeout == .seconds(1))
        #expect(try options("?timeout=60s&").timeout == .seconds(60))
        #expect(try options("?timeout_ms=0").timeout == .zero)
        body.wait = PurgeWait.none
        body.timeout = .milliseconds(7)
        let inBody = try PurgeOptions().settled(with: body)
        #expect(inBody.wait == .none && inBody.timeout == .milliseconds(7))
        #expect(throws: PurgeFault.saidTwice("wait")) {
            try options("?wait=all").settled(with: body)
        }
        #expect(throws: PurgeFault.saidTwice("timeout")) {
            try options("?timeout=1s").settled(with: body)
        }
    }

    @Test("a query that is not understood purges nothing")
    func badQueries() {
        let path = "/admin/v1/purges"
        for query in ["?wait=most", "?wait", "?wait="] {
            #expect(
                fault("POST", path + query)
                    == .parameter("wait", allowed: "none, issued, all"))
        }
        for value in ["1", "61s", "2m", "-1s", "", "s", "1%73x"] {
            guard case .parameter("timeout", _)? = fault("POST", "\(path)?timeout=\(value)") else {
                Issue.record("\(value)")
                continue
            }
        }
        for value in ["60001", "1s", "x", ""] {
            #expect(
                fault("POST", "\(path)?timeout_ms=\(value)")
                    == .parameter("timeout_ms", allowed: "0 to 60000"))
        }
        #expect(fault("POST", path + "?wait=all&wait=all") == .saidTwice("wait"))
        #expect(fault("POST", path + "?timeout=1s&timeout_ms=1") == .saidTwice("timeout_ms"))
        #expect(
            fault("POST", path + "?soft=1")
                == .parameterUnknown("soft", allowed: ["wait", "timeout", "timeout_ms"]))
        #expect(fault("GET", path + "?id=a&wait=all") == .parameterUnknown("wait", allowed: ["id"]))
        #expect(fault("GET", path + "?id=a&id=b") == .saidTwice("id"))
        for query in ["", "?id=", "?id=%00", "?id=%zz", "?id=%ff", "?id"] {
            guard case .parameter("id", _)? = fault("GET", path + query) else {
                Issue.record("\(query)")
                continue
            }
        }
        #expect(fault("GET", path + "/x") == .receiptName)
        #expect(fault("GET", path + "/") == .receiptName)
    }

    @Test("a receipt's name has one spelling")
    func names() {
        #expect(name.description == text && ReceiptName(text) == name)
        let last = "00000000000000000000000000000000-18446744073709551615"
        #expect(ReceiptName(last)?.number == .max && ReceiptName(last)?.description == last)
        let digits = String(text.prefix(32))
        for other in [
            "", digits, digits + "-", digits + "-0", digits + "-01", digits + "-1x", digits + "_1",
            digits + "-+1", digits.uppercased() + "-1", "g" + digits.dropFirst() + "-1",
            digits.dropFirst() + "-1", digits + "-18446744073709551616", digits + "0-1",
            " " + text, text + " ",
        ] {
            #expect(ReceiptName(other) == nil, "\(other)")
        }
    }
}
