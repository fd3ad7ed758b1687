import HTTPRules
import Testing

@Suite struct ForwardedStartTests {
    private func start(
        _ key: String, isSecure: Bool = false,
        _ change: (inout RequestFieldRules) -> Void = { _ in }
    ) -> String? {
        var rules = RequestFieldRules(authority: "o.example:81".bytes, basePath: "/base".bytes)
        change(&rules)
        return RequestForwarder.requestLineAndHost(
            ofKey: key.bytes, isSecure: isSecure, rules: rules)?.text
    }

    @Test("The start of the request that is forwarded for a key")
    func start() {
        #expect(
            start("//a.example/x?y") == "GET /base/x?y HTTP/1.1\r\nHost: o.example:81\r\n")
        #expect(
            start("//a.example/#https", isSecure: true) { $0.host = .client }
                == "GET /base/ HTTP/1.1\r\nHost: a.example\r\n")
        #expect(
            start("//a.example/") { $0.host = .fixed("h".bytes) }
                == "GET /base/ HTTP/1.1\r\nHost: h\r\n")
    }

    @Test(
        "Other keys have no forwarded request",
        arguments: [
            "", "//", "///x", "//a.example", "http://a.example/", "//a.example/x#https",
            "//a.example/x#y", "//a.example/x y", "//a.example/x\n0000000000000000\n",
            "//a.example/../x", "//a.example/%2e%2e/x", "//a.example/x\r\nHost: b",
        ])
    func none(key: String) {
        #expect(start(key) == nil)
    }

    @Test("Secure and plain requests have different keys")
    func secure() {
        #expect(start("//a.example/x", isSecure: true) == nil)
    }
}
