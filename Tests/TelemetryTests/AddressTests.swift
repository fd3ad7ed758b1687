import Telemetry
import Testing

@Suite("Addresses, networks and ports as text")
struct AddressTests {
    @Test(
        "an address is shown in its canonical form",
        arguments: [
            ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"),
            ("255.255.255.255", "255.255.255.255"), ("::", "::"), ("::1", "::1"),
            ("1::", "1::"), ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("fe80:0000:0000:0000:0000:0000:0000:000a", "fe80::a"),
            ("::ffff:192.0.2.1", "::ffff:c000:201"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
            ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
        ])
    func addressesAreRead(text: String, canonical: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == canonical)
        #expect(IPAddress(canonical) == address)
    }

    @Test(
        "anything else is no address",
        arguments: [
            "", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "1.2.3.", "1.2.3.-4", "0x7f.0.0.1",
            "127.1", "localhost", ":", ":::", "1:::2", "::1::", "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1:2:3:4:5:6:7::8", "12345::", "g::", "::1%eth0", "[::1]", "1.2.3.4::", "::1.2.3.4:5",
            "1:2:3:4:5:6:7:1.2.3.4", "+1::",
        ])
    func otherTextIsNoAddress(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test(
        "loopback is 127.0.0.0/8 and ::1",
        arguments: [
            ("127.0.0.1", true), ("127.255.0.3", true), ("::1", true), ("128.0.0.1", false),
            ("0.0.0.0", false), ("::", false), ("::7f00:1", false), ("::ffff:127.0.0.1", false),
        ])
    func loopbackIsKnown(text: String, isLoopback: Bool) throws {
        #expect(try #require(IPAddress(text)).isLoopback == isLoopback)
    }

    @Test(
        "a network holds the addresses that share its prefix",
        arguments: [
            ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true), ("::/0", "10.0.0.1", false),
            ("fd00::/8", "fdff::1", true), ("fd00::/8", "fe00::", false),
            ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.6", false),
            ("192.0.2.6/31", "192.0.2.7", true), ("::1", "::1", true), ("::1/128", "::2", false),
        ])
    func networkHoldsItsAddresses(network: String, address: String, isInside: Bool) throws {
        let address = try #require(IPAddress(address))
        #expect(try Network(parsing: network).contains(address) == isInside)
    }

    @Test(
        "anything else is no network",
        arguments: [
            "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8",
            "10/8", "fd00::/129", "private", "10.0.0.0/255.0.0.0",
        ])
    func otherTextIsNoNetwork(text: String) {
        #expect(throws: Network.Problem.malformed) { try Network(parsing: text) }
    }

    @Test(
        "a network with bits past its prefix is refused, naming the one perhaps meant",
        arguments: [("127.0.0.1/8", "127.0.0.0/8"), ("fd00::1/8", "fd00::/8")])
    func hostBitsAreRefused(text: String, meant: String) {
        #expect(throws: Network.Problem.hostBitsSet(meant: meant)) { try Network(parsing: text) }
    }

    @Test(
        "a listen address is a numeric address and a port",
        arguments: [
            ("127.0.0.1:8080", "127.0.0.1:8080"), ("0.0.0.0:0", "0.0.0.0:0"),
            ("[::]:65535", "[::]:65535"), ("localhost:80", "127.0.0.1:80"),
        ])
    func listenAddressesAreRead(text: String, shown: String) {
        #expect(ListenAddress(text)?.description == shown)
    }

    @Test(
        "anything else is no listen address",
        arguments: [
            "", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:+80",
            "::1:80", "[::1]", "[::1]80", "[127.0.0.1]:80", "[localhost]:80", "example.com:80",
            "[::1:80", "127.0.0.1:80:80", "*:80",
        ])
    func otherTextIsNoListenAddress(text: String) {
        #expect(ListenAddress(text) == nil)
    }
}
