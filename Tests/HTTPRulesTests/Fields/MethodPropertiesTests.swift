import HTTPRules
import Testing

@Suite struct MethodPropertiesTests {
    private func rules(_ method: String) -> MethodProperties {
        let bytes = ("x" + method + "x").bytes
        return MethodProperties(bytes.span, at: 1..<bytes.count - 1)
    }

    @Test("RFC 9110 §9.2.1: safe methods")
    func safe() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"] {
            #expect(rules(method).isSuperset(of: [.isSafe, .isIdempotent]), "\(method)")
        }
    }

    @Test(
        "RFC 9111 §4.4: unsafe methods, including all unknown ones",
        arguments: [
            "POST", "PUT", "DELETE", "PATCH", "CONNECT", "PROPPATCH", "LOCK", "MOVE", "PURGE",
            "get", "Get", "GETS", "GE", "", "HEAD ", "UNHEARD-OF",
        ])
    func unsafeMethods(method: String) {
        #expect(rules(method).isDisjoint(with: .isSafe))
    }

    @Test("RFC 9110 §9.2.2: idempotent methods")
    func idempotent() {
        for method in ["PUT", "DELETE", "MKCOL"] {
            #expect(rules(method) == .isIdempotent, "\(method)")
        }
        for method in ["POST", "PATCH", "CONNECT", "LOCK", "UNHEARD-OF"] {
            #expect(rules(method) == [], "\(method)")
        }
    }
}
