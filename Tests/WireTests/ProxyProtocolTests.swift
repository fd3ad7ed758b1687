import Ground
import Testing
import Wire

/// Headers in version 2, and their parts.
private enum BinaryHeader {
    static func header(
        _ command: UInt8, _ family: UInt8, _ rest: [UInt8], length: Int? = nil
    ) -> [UInt8] {
        let length = length ?? rest.count
        let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]
        return signature + [command, family, UInt8(length >> 8), UInt8(length & 255)] + rest
    }

    static let v4: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 2, 0x30, 0x39, 0, 80]
    static let v6: [UInt8] =
        [0x20, 1, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [1]
        + [0x20, 1, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [2] + [0xFF, 0xFF, 1, 0xBB]
}

/// The PROXY protocol in both formats, and invalid input (HAProxy's proxy-protocol.txt, §2.1 and
/// §2.2).
@Suite("The PROXY protocol header")
struct ProxyProtocolTests {
    private func read(_ bytes: [UInt8]) -> ProxyProtocolResult { ProxyProtocol.read(bytes.span) }

    private func source(_ address: String, _ port: UInt16) throws -> ProxySource {
        ProxySource(try #require(IPAddress(address)), port: port)
    }

    @Test(
        "A text header gives the client's address",
        arguments: [
            ("TCP4 192.0.2.1 198.51.100.2 12345 80", "192.0.2.1", 12345),
            ("TCP4 255.255.255.255 255.255.255.255 65535 65535", "255.255.255.255", 65535),
            ("TCP4 0.0.0.0 0.0.0.0 0 0", "0.0.0.0", 0),
            ("TCP6 2001:db8::1 ::1 1 2", "2001:db8::1", 1),
            ("TCP6 2001:DB8:0:0:0:0:0:1 :: 65535 443", "2001:db8::1", 65535),
        ])
    func line(rest: String, address: String, port: UInt16) throws {
        let bytes = latin1("PROXY \(rest)\r\n")
        #expect(read(bytes) == .source(try source(address, port), end: bytes.count))
    }

    @Test(
        "The rest of an UNKNOWN header is ignored",
        arguments: ["", " ", " \u{E9}\u{0}x", " ffff::1 ::2 65535 65535"])
    func unknown(rest: String) {
        let bytes = latin1("PROXY UNKNOWN\(rest)\r\n")
        #expect(read(bytes) == .source(nil, end: bytes.count))
    }

    @Test("The longest text header is accepted, and one byte more is refused")
    func longest() {
        let long = Array(repeating: "ffff", count: 8).joined(separator: ":")
        let line = latin1("PROXY UNKNOWN \(long) \(long) 65535 65535\r\n")
        #expect(line.count == ProxyProtocol.lineBytesMax)
        #expect(read(line) == .source(nil, end: line.count))
        #expect(read(latin1("PROXY UNKNOWN \(long) \(long) 65535 655350\r\n")) == .refused)
        #expect(read(Array(line.dropLast(2)) + latin1("xx")) == .refused)
    }

    @Test(
        "A malformed text header is refused",
        arguments: [
            "GET / HTTP/1.1\r\n", "proxy UNKNOWN\r\n", "PROXY UNKNOWNX\r\n", "PROXY UNKNOW\r\n",
            "PROXY\r\n", "PROXY \r\n", "PROXY TCP5 a b 1 2\r\n", "PROXY UNKNOWN\n", "X", " ",
            "PROXY UNKNOWN\r\r\n",
        ]
            + [
                "", "192.0.2.1", "192.0.2.1 192.0.2.2 1", "192.0.2.1 192.0.2.2 1 2 3",
                "192.0.2.1  192.0.2.2 1 2", " 192.0.2.1 192.0.2.2 1 2", "192.0.2.1 192.0.2.2 1 2 ",
                "192.0.2.1 192.0.2.2 1 65536", "192.0.2.1 192.0.2.2 65536 1",
                "192.0.2.1 192.0.2.2 01 2", "192.0.2.1 192.0.2.2 1 -2", "192.0.2.1 192.0.2.2 1 +2",
                "192.0.2.1 192.0.2.2 1 ", "192.0.2.1 192.0.2.2 1\t2", "192.0.2.256 192.0.2.2 1 2",
                "192.0.2.1 192.0.2 1 2", "::1 ::2 1 2", "192.0.2.1 ::2 1 2", "1.1.1.1\n1.1.1.1 1 2",
            ].map { "PROXY TCP4 \($0)\r\n" }
            + [
                "192.0.2.1 192.0.2.2 1 2", "[::1] ::2 1 2", "::1%lo ::2 1 2", "::1::2 ::2 1 2",
            ].map { "PROXY TCP6 \($0)\r\n" })
    func noLine(text: String) {
        #expect(read(latin1(text)) == .refused)
    }

    @Test("A binary header gives the client's address")
    func binary() throws {
        let four = BinaryHeader.header(0x21, 0x11, BinaryHeader.v4)
        #expect(read(four) == .source(try source("192.0.2.1", 12345), end: 28))
        let six = BinaryHeader.header(0x21, 0x21, BinaryHeader.v6)
        #expect(read(six) == .source(try source("2001:db8::1", 65535), end: 52))
    }

    @Test("Fields after the addresses are skipped, up to the limit")
    func fields() throws {
        let crc: [UInt8] = [3, 0, 4, 1, 2, 3, 4]
        let name: [UInt8] = [2, 0, 1, 97]
        let bytes = BinaryHeader.header(0x21, 0x11, BinaryHeader.v4 + crc + name) + latin1("GET /")
        #expect(read(bytes) == .source(try source("192.0.2.1", 12345), end: bytes.count - 5))
        let room = ProxyProtocol.binaryBytesMax - 16
        let full = BinaryHeader.header(
            0x21, 0x11, BinaryHeader.v4 + Array(repeating: 0, count: room - 12))
        #expect(read(full) == .source(try source("192.0.2.1", 12345), end: full.count))
        #expect(
            read(BinaryHeader.header(0x21, 0x11, BinaryHeader.v4, length: room + 1)) == .refused)
    }

    @Test(
        "A binary header without a stream address keeps the connection's own",
        arguments: [
            BinaryHeader.header(0x20, 0x00, []), BinaryHeader.header(0x20, 0x11, BinaryHeader.v4),
            BinaryHeader.header(0x20, 0xFF, [1, 2, 3]),
            BinaryHeader.header(0x20, 0x21, []), BinaryHeader.header(0x21, 0x00, []),
            BinaryHeader.header(0x21, 0x00, [1]),
            BinaryHeader.header(0x21, 0x12, BinaryHeader.v4),
            BinaryHeader.header(0x21, 0x22, BinaryHeader.v6),
            BinaryHeader.header(0x21, 0x10, BinaryHeader.v4),
            BinaryHeader.header(0x21, 0x31, Array(repeating: 47, count: 216)),
        ])
    func noAddress(bytes: [UInt8]) {
        #expect(read(bytes) == .source(nil, end: bytes.count))
    }

    @Test(
        "A malformed binary header is refused",
        arguments: [
            BinaryHeader.header(0x11, 0x11, BinaryHeader.v4),
            BinaryHeader.header(0x31, 0x11, BinaryHeader.v4),
            BinaryHeader.header(0x22, 0x11, BinaryHeader.v4),
            BinaryHeader.header(0x01, 0x11, BinaryHeader.v4),
            BinaryHeader.header(0x21, 0x13, BinaryHeader.v4),
            BinaryHeader.header(0x21, 0x41, BinaryHeader.v4),
            BinaryHeader.header(0x21, 0x11, Array(BinaryHeader.v4.dropLast())),
            BinaryHeader.header(0x21, 0x21, BinaryHeader.v4),
            BinaryHeader.header(0x21, 0x31, BinaryHeader.v6),
            [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 13], [13, 13],
        ])
    func broken(bytes: [UInt8]) {
        #expect(read(bytes) == .refused)
    }

    @Test("Every prefix of a header needs more bytes, and bytes after it have no effect")
    func beginnings() {
        let headers = [
            latin1("PROXY TCP4 192.0.2.1 198.51.100.2 12345 80\r\n"),
            latin1("PROXY TCP6 2001:db8::1 ::1 1 2\r\n"), latin1("PROXY UNKNOWN ::1\r\n"),
            latin1("PROXY UNKNOWN\r\n"),
            BinaryHeader.header(0x21, 0x11, BinaryHeader.v4 + [4, 0, 1, 0]),
            BinaryHeader.header(0x21, 0x21, BinaryHeader.v6), BinaryHeader.header(0x20, 0, []),
        ]
        for header in headers {
            for count in 0..<header.count {
                #expect(read(Array(header.prefix(count))) == .needsMore, "\(header), \(count)")
            }
            #expect(read(header + header) == read(header))
        }
    }
}
