import Ground
import Testing

@Suite("Networks")
struct NetworkTests {
    @Test(
        "A network contains its first and last address and not their neighbours",
        arguments: [
            ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255"], ["9.255.255.255", "11.0.0.0"]),
            ("10.1.2.3", ["10.1.2.3", "::ffff:10.1.2.3"], ["10.1.2.2", "10.1.2.4"]),
            ("192.0.2.6/31", ["192.0.2.6", "192.0.2.7"], ["192.0.2.5", "192.0.2.8"]),
            ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255"], ["::", "::1"]),
            ("::/0", ["::", "ffff::"], ["1.2.3.4"]),
            ("::1/128", ["::1"], ["::", "::2"]),
            ("fd00::/8", ["fd00::", "fdff:ffff::"], ["fc00::", "fe00::"]),
            ("2001:db8::/65", ["2001:db8::7fff:0:0:0"], ["2001:db8::8000:0:0:0"]),
            ("::ffff:10.0.0.0/104", ["10.0.0.0", "::ffff:10.255.0.0"], ["11.0.0.0"]),
        ])
    func networks(text: String, inside: [String], outside: [String]) throws {
        let network = try Network(parsing: text)
        for text in inside { #expect(network.contains(try address(text)), "\(text)") }
        for text in outside { #expect(!network.contains(try address(text)), "\(text)") }
    }

    @Test(
        "A network is written as its first address and prefix length",
        arguments: [
            ("10.0.0.0/8", "10.0.0.0/8"), ("10.1.2.3", "10.1.2.3/32"),
            ("FD00::/8", "fd00::/8"), ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ])
    func shown(text: String, shown: String) throws {
        #expect(try Network(parsing: text).description == shown)
    }

    @Test(
        "Other text is not parsed as a network",
        arguments: [
            "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8",
            "10/8", "fd00::/129", "private", "localhost/8", "10.0.0.0/255.0.0.0",
        ])
    func otherTextIsNoNetwork(text: String) {
        #expect(throws: Network.Problem.malformed) { try Network(parsing: text) }
    }

    @Test(
        "A network with host bits is refused, and the error suggests the network",
        arguments: [("127.0.0.1/8", "127.0.0.0/8"), ("fd00::1/8", "fd00::/8")])
    func hostBitsAreRefused(text: String, meant: String) {
        #expect(throws: Network.Problem.hostBitsSet(meant: meant)) { try Network(parsing: text) }
    }

    private func address(_ text: String) throws -> IPAddress {
        try #require(IPAddress(text), "\(text)")
    }
}
