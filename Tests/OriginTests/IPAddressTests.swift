import Origin
import Testing

@Suite("Addresses and ranges of them")
struct IPAddressTests {
    @Test(
        "An address is read from its text and written canonically",
        arguments: [
            ("127.0.0.1", "127.0.0.1"), ("255.255.255.255", "255.255.255.255"),
            ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"), ("::", "::"), ("::1", "::1"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"), ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ])
    func canonical(text: String, written: String) throws {
        #expect(try address(text).description == written)
    }

    @Test(
        "What is no strict address is not read as one",
        arguments: [
            "", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.0.0.1", "0x7f.0.0.1", "2130706433", "127.1",
            " 1.2.3.4", "1.2.3.4 ", ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
            "fe80::1%eth0", "[::1]", "12345::", "::+1", "1:2:3:4:5:6:7:8::", "::1.2.3",
        ])
    func refused(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test("Bytes in network order are read, four or sixteen of them")
    func bytes() {
        let four: [UInt8] = [127, 0, 0, 1]
        let sixteen: [UInt8] = [0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]
        #expect(IPAddress(four.span) == IPAddress("127.0.0.1"))
        #expect(IPAddress(sixteen.span) == IPAddress("2001:db8::9"))
        let five: [UInt8] = [1, 2, 3, 4, 5]
        #expect(IPAddress(five.span) == nil)
    }

    @Test(
        "A range holds its first and last address and not their neighbours",
        arguments: [
            ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255"], ["9.255.255.255", "11.0.0.0"]),
            ("10.1.2.3", ["10.1.2.3", "::ffff:10.1.2.3"], ["10.1.2.2", "10.1.2.4"]),
            ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255"], ["::", "::1"]),
            ("::/0", ["::", "ffff::"], ["1.2.3.4"]),
            ("fd00::/8", ["fd00::", "fdff:ffff::"], ["fc00::", "fe00::"]),
            ("2001:db8::/65", ["2001:db8::7fff:0:0:0"], ["2001:db8::8000:0:0:0"]),
            ("::ffff:10.0.0.0/104", ["10.0.0.0", "::ffff:10.255.0.0"], ["11.0.0.0"]),
        ])
    func ranges(text: String, inside: [String], outside: [String]) throws {
        let range = try CIDR(text)
        for text in inside { #expect(range.contains(try address(text)), "\(text)") }
        for text in outside { #expect(!range.contains(try address(text)), "\(text)") }
    }

    @Test(
        "A wrong range is refused with what was wrong",
        arguments: [
            ("", CIDRError.notAnAddress("")), ("10.0.0.0/8/8", .notAnAddress("10.0.0.0/8/8")),
            ("localhost/8", .notAnAddress("localhost/8")),
            ("10.0.0.0/33", .prefixLength("10.0.0.0/33", max: 32)),
            ("10.0.0.0/", .prefixLength("10.0.0.0/", max: 32)),
            ("10.0.0.0/+8", .prefixLength("10.0.0.0/+8", max: 32)),
            ("fd00::/129", .prefixLength("fd00::/129", max: 128)),
            ("127.0.0.1/8", .bitsPastPrefix("127.0.0.1/8", network: "127.0.0.0/8")),
        ])
    func wrongRanges(text: String, error: CIDRError) {
        #expect(throws: error) { try CIDR(text) }
    }
}
