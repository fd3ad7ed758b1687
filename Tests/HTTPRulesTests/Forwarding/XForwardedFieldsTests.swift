import Ground
import HTTPRules
import Testing

@Suite("X-Forwarded fields from a trusted proxy")
struct XForwardedFieldsTests {
    private static let proxies = [Network(IPAddress("10.0.0.0") ?? .v4(0), 8)]

    private func read(_ fields: String...) -> (XForwardedFields, host: String?) {
        let head = ResponseHead(status: 200, fields: fields)
        let forwarding = XForwardedFields(head.lines, in: head.bytes.span, proxies: Self.proxies)
        return (forwarding, forwarding.host.map { Array(head.bytes[$0]).text })
    }

    @Test(
        "The client is the last address that is not a trusted proxy's",
        arguments: [
            ("192.0.2.7", "192.0.2.7"), ("198.51.100.1, 192.0.2.7", "192.0.2.7"),
            ("198.51.100.1, 192.0.2.7, 10.0.0.2, 10.0.0.3", "192.0.2.7"),
            ("10.0.0.1, 10.0.0.2", "10.0.0.1"), ("192.0.2.7:4321", "192.0.2.7"),
            ("2001:db8::7", "2001:db8::7"), ("[2001:db8::7]:80", "2001:db8::7"),
            ("::ffff:192.0.2.7", "192.0.2.7"), ("[::ffff:192.0.2.7]", "192.0.2.7"),
            ("[::ffff:192.0.2.7]:80", "192.0.2.7"),
            ("192.0.2.7, [::ffff:10.0.0.2]:80", "192.0.2.7"),
            ("192.0.2.1, odd, 10.0.0.2", "10.0.0.2"),
            (", 192.0.2.7 ,", "192.0.2.7"), ("unknown", nil), ("", nil),
            ("192.0.2.1, unknown", nil), ("\", 192.0.2.7", "192.0.2.7"),
            ("a\"b, 192.0.2.7", "192.0.2.7"), ("\"\\, 192.0.2.7, 10.0.0.2", "192.0.2.7"),
        ] as [(String, String?)])
    func client(value: String, expected: String?) {
        let (forwarding, _) = read("X-Forwarded-For: \(value)")
        #expect(forwarding.client.map { "\($0)" } == expected)
    }

    @Test("Several lines are one list (RFC 9110 §5.3)")
    func lines() {
        let (forwarding, host) = read(
            "X-Forwarded-For: 192.0.2.1", "x-forwarded-for: 192.0.2.7", "X-Forwarded-Proto: http",
            "X-Forwarded-Proto: https", "X-Forwarded-Host: a, b.example:81")
        #expect(forwarding.client.map { "\($0)" } == "192.0.2.7")
        #expect(forwarding.isSecure == true)
        #expect(host == "b.example:81")
    }

    @Test(
        "Another scheme than http and https counts as unknown",
        arguments: [
            ("https", true), ("HTTP", false), ("http, https", true), ("ftp", nil), ("", nil),
        ] as [(String, Bool?)])
    func scheme(value: String, expected: Bool?) {
        #expect(read("X-Forwarded-Proto: \(value)").0.isSecure == expected)
    }

    @Test("A field without a valid address means that the client is unknown")
    func unnamed() {
        #expect(read("X-Forwarded-For: unknown").0.hasClientField)
        #expect(read("X-Forwarded-For: fe80::1%1").0.hasClientField)
        #expect(!read("X-Forwarded-For: ,").0.hasClientField && !read("A: b").0.hasClientField)
    }

    @Test("Missing fields leave everything unknown")
    func nothing() {
        let (forwarding, host) = read("Forwarded: for=192.0.2.7;proto=https;host=a", "X-A: b")
        #expect(forwarding.client == nil && forwarding.isSecure == nil && host == nil)
    }
}
