import Testing
import Wire

/// A malformed request and the expected error.
struct RequestCase: CustomTestStringConvertible, Sendable {
    var name: String
    var text: String
    var refusal: RequestParseError
    var status: UInt16

    init(_ name: String, _ text: String, _ refusal: RequestParseError, _ status: UInt16 = 400) {
        self.name = name
        self.text = text
        self.refusal = refusal
        self.status = status
    }

    var testDescription: String { name }
}

/// All malformed requests with their errors; texts are Latin-1.
enum RequestCases {
    static let lines: [RequestCase] = [
        .init("HTTP/0.9", "GET /\r\n\r\n", .malformedRequestLine),
        .init("no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n", .malformedRequestLine),
        .init(
            "two spaces in front", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", .malformedRequestLine),
        .init(
            "two spaces after target", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", .malformedRequestLine),
        .init("space after version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", .malformedRequestLine),
        .init("space before method", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", .malformedRequestLine),
        .init("tab after method", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", .malformedRequestLine),
        .init("tab in target", "GET /\t HTTP/1.1\r\nHost: a\r\n\r\n", .targetByte(9, at: 5)),
        .init(
            "method that is no token", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", .malformedRequestLine),
        .init("lower-case version", "GET / http/1.1\r\nHost: a\r\n\r\n", .malformedRequestLine),
        .init("version with sign", "GET / HTTP/+1.1\r\nHost: a\r\n\r\n", .malformedRequestLine),
        .init("other protocol", "GET / ICE/1.0\r\nHost: a\r\n\r\n", .malformedRequestLine),
        .init("HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", .version, 505),
        .init("h2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .version, 505),
        .init("HTTP/3.1", "GET / HTTP/3.1\r\nHost: a\r\n\r\n", .version, 505),
        .init("HTTP/0.9 named", "GET / HTTP/0.9\r\nHost: a\r\n\r\n", .version, 505),
        .init(
            "LF ends the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n",
            .line(.bareLineFeed, at: 14)),
        .init(
            "CR in the request line", "GET / HTTP/1.1\rX\r\n\r\n",
            .line(.bareCarriageReturn, at: 14)),
        .init("CR in the target", "GET /\r HTTP/1.1\r\n\r\n", .line(.bareCarriageReturn, at: 5)),
        .init(
            "NUL in the target", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
            .line(.controlByte(0), at: 5)),
        .init(
            "DEL in the target", "GET /\u{7F} HTTP/1.1\r\nHost: a\r\n\r\n",
            .line(.controlByte(0x7F), at: 5)),
        .init(
            "obs-text in the target", "GET /\u{E9} HTTP/1.1\r\nHost: a\r\n\r\n",
            .targetByte(0xE9, at: 5)),
        .init(
            "fragment in the target", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
            .targetByte(0x23, at: 6)),
        .init("two empty lines first", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", .blankLines),
        .init("LF first", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", .blankLines),
        .init("CR first", "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", .line(.bareCarriageReturn, at: 0)),
        .init("path without slash", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", .targetForm),
        .init("asterisk with GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", .targetForm),
        .init("authority with GET", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", .targetForm),
        .init("path with CONNECT", "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", .targetForm),
        .init("URL with CONNECT", "CONNECT http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", .targetForm),
        .init("asterisk and more", "OPTIONS *x HTTP/1.1\r\nHost: a\r\n\r\n", .targetForm),
        .init("other scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", .targetForm),
        .init("URL without host", "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", .invalidHost),
        .init("URL with user", "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", .invalidHost),
    ]

    static let fields: [RequestCase] = [
        .init("folded line", get("A: b\r\n c"), .line(.leadingSpace, at: 31)),
        .init("line folded with tab", get("A: b\r\n\tc"), .line(.leadingSpace, at: 31)),
        .init(
            "space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
            .line(.leadingSpace, at: 16)),
        .init("line of white space", get(" "), .line(.leadingSpace, at: 25)),
        .init("space before colon", get("A : b"), .line(.spaceBeforeColon, at: 26)),
        .init("tab before colon", get("A\t: b"), .line(.spaceBeforeColon, at: 26)),
        .init("space in name", get("A B: b"), .line(.invalidNameToken, at: 26)),
        .init("empty name", get(": b"), .line(.emptyName, at: 25)),
        .init("no colon", get("Abc"), .line(.invalidNameToken, at: 28)),
        .init("name with parenthesis", get("A(: b"), .line(.invalidNameToken, at: 26)),
        .init("name with obs-text", get("A\u{E9}: b"), .line(.invalidNameToken, at: 26)),
        .init("NUL in name", get("A\0: b"), .line(.controlByte(0), at: 26)),
        .init("NUL in value", get("A: b\0c"), .line(.controlByte(0), at: 29)),
        .init("escape in value", get("A: \u{1B}"), .line(.controlByte(0x1B), at: 28)),
        .init("DEL in value", get("A: \u{7F}"), .line(.controlByte(0x7F), at: 28)),
        .init("CR in value", get("A: b\rc"), .line(.bareCarriageReturn, at: 29)),
        .init("CR CR LF", get("A: b\r"), .line(.bareCarriageReturn, at: 29)),
        .init("LF ends a field", get("A: b\nC: d"), .line(.bareLineFeed, at: 29)),
        .init("LF ends the head", "GET / HTTP/1.1\r\nHost: a\r\n\n", .line(.bareLineFeed, at: 25)),
        .init("no Host", "GET / HTTP/1.1\r\nA: b\r\n\r\n", .missingHost),
        .init("no Host beside a URL", "GET http://a/ HTTP/1.1\r\nA: b\r\n\r\n", .missingHost),
        .init("two Hosts", get("Host: a"), .repeatedHost),
        .init(
            "two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", .repeatedHost),
        .init("empty Host", host(""), .invalidHost),
        .init("Host with space", host("a b"), .invalidHost),
        .init("Host list", host("a, b"), .invalidHost),
        .init("Host with user", host("u@a"), .invalidHost),
        .init("Host with path", host("a/b"), .invalidHost),
        .init("Host with bad port", host("a:8x"), .invalidHost),
        .init("Host with large port", host("a:65536"), .invalidHost),
        .init("Host that is a port", host(":80"), .invalidHost),
        .init("Host with bad escape", host("a%4"), .invalidHost),
        .init("Host with open bracket", host("[::1"), .invalidHost),
        .init("Host with zone", host("[fe80::1%25eth0]"), .invalidHost),
        .init("Host with obs-text", host("\u{E9}"), .invalidHost),
        .init("other expectation", get("Expect: 200-ok"), .unknownExpectation, 417),
        .init("empty expectation", get("Expect:"), .unknownExpectation, 417),
    ]

    static let framing: [RequestCase] = [
        .init(
            "length and coding", get("Content-Length: 5\r\nTransfer-Encoding: chunked"),
            .lengthAndCoding),
        .init(
            "coding and length", get("Transfer-Encoding: chunked\r\nContent-Length: 5"),
            .lengthAndCoding),
        .init(
            "coding in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            .codingInHTTP10),
        .init("two lengths", get("Content-Length: 5\r\nContent-Length: 6"), .repeatedContentLength),
        .init(
            "same length twice", get("Content-Length: 5\r\nContent-Length: 5"),
            .repeatedContentLength),
        .init("list of lengths", get("Content-Length: 5, 5"), .invalidContentLength),
        .init("length with plus", get("Content-Length: +5"), .invalidContentLength),
        .init("length with minus", get("Content-Length: -5"), .invalidContentLength),
        .init("empty length", get("Content-Length:"), .invalidContentLength),
        .init("hexadecimal length", get("Content-Length: 0x5"), .invalidContentLength),
        .init("length with space", get("Content-Length: 5 5"), .invalidContentLength),
        .init("length of 2^64", get("Content-Length: 18446744073709551616"), .invalidContentLength),
        .init("unknown coding", get("Transfer-Encoding: gzip"), .unknownTransferCoding, 501),
        .init(
            "unknown, then chunked", get("Transfer-Encoding: gzip, chunked"),
            .unknownTransferCoding, 501),
        .init(
            "unknown, then chunked, in two lines",
            get("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked"),
            .unknownTransferCoding, 501),
        .init("identity", get("Transfer-Encoding: identity"), .unknownTransferCoding, 501),
        .init(
            "chunked twice", get("Transfer-Encoding: chunked, chunked"),
            .malformedTransferEncoding),
        .init(
            "chunked in two lines",
            get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            .malformedTransferEncoding),
        .init(
            "chunked is not final", get("Transfer-Encoding: chunked, gzip"),
            .malformedTransferEncoding),
        .init("empty coding", get("Transfer-Encoding:"), .malformedTransferEncoding),
        .init("empty element", get("Transfer-Encoding: , chunked"), .malformedTransferEncoding),
        .init("comma at the end", get("Transfer-Encoding: chunked,"), .malformedTransferEncoding),
        .init(
            "chunked with parameter", get("Transfer-Encoding: chunked;q=1"),
            .malformedTransferEncoding),
        .init("two words", get("Transfer-Encoding: x chunked"), .malformedTransferEncoding),
        .init(
            "vertical tab before chunked", get("Transfer-Encoding: \u{B}chunked"),
            .line(.controlByte(0x0B), at: 44)),
    ]

    static let all = lines + fields + framing

    /// A request with 25 bytes before `fields`.
    static func get(_ fields: String) -> String {
        "GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n"
    }

    static func host(_ value: String) -> String {
        "GET / HTTP/1.1\r\nHost: \(value)\r\n\r\n"
    }
}
