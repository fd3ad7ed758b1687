import Ground
import Testing

@Suite("IP addresses")
struct IPAddressTests {
    @Test(
        "An address is parsed from text and written in canonical form",
        arguments: [
            ("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"),
            ("255.255.255.255", "255.255.255.255"), ("::", "::"), ("::1", "::1"),
            ("1::", "1::"), ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
            ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
            ("fe80:0000:0000:0000:0000:0000:0000:000a", "fe80::a"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"), ("::ffff:c000:201", "::ffff:192.0.2.1"),
            ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
        ])
    func canonical(text: String, written: String) throws {
        let address = try #require(IPAddress(text))
        #expect(address.description == written)
        #expect(IPAddress(written) == address)
    }

    @Test(
        "Text that is not a strictly valid address is refused",
        arguments: [
            "", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "01.2.3.4", "1.2.3.", "1.2.3.-4",
            "256.0.0.1", "0x7f.0.0.1", "2130706433", "127.1", "localhost", " 1.2.3.4", "1.2.3.4 ",
            ":", ":::", "1:::2", "1::2::3", "::1::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
            "1:2:3:4:5:6:7::8", "1:2:3:4:5:6:7:8::", "12345::", "g::", "fe80::1%eth0", "[::1]",
            "::+1", "+1::", "::1.2.3", "1.2.3.4::", "::1.2.3.4:5", "1:2:3:4:5:6:7:1.2.3.4",
        ])
    func refused(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test("Addresses are read from four or sixteen bytes in network order, and give them back")
    func bytes() {
        let four: [UInt8] = [127, 0, 0, 1]
        let sixteen: [UInt8] = [0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]
        #expect(IPAddress(four.span) == IPAddress("127.0.0.1"))
        #expect(IPAddress(sixteen.span) == IPAddress("2001:db8::9"))
        #expect(IPAddress(four.span)?.networkBytes == four)
        #expect(IPAddress(sixteen.span)?.networkBytes == sixteen)
        let five: [UInt8] = [1, 2, 3, 4, 5]
        #expect(IPAddress(five.span) == nil)
    }

    @Test(
        "The loopback addresses are 127.0.0.0/8 and ::1",
        arguments: [
            ("127.0.0.1", true), ("127.255.0.3", true), ("::1", true), ("128.0.0.1", false),
            ("0.0.0.0", false), ("::", false), ("::7f00:1", false), ("::ffff:127.0.0.1", false),
        ])
    func loopbackIsKnown(text: String, isLoopback: Bool) throws {
        #expect(try #require(IPAddress(text)).isLoopback == isLoopback)
    }
}
