import Testing
import Wire

/// A malformed answer and why it is refused.
struct ResponseCase: CustomTestStringConvertible, Sendable {
    var name: String
    var text: String
    var refusal: ResponseRefusal

    init(_ name: String, _ text: String, _ refusal: ResponseRefusal) {
        self.name = name
        self.text = text
        self.refusal = refusal
    }

    var testDescription: String { name }
}

/// Every malformed answer; texts are Latin-1.
enum ResponseCases {
    static let all: [ResponseCase] = [
        .init("no version", "200 OK\r\n\r\n", .malformedStatusLine),
        .init("other protocol", "ICY 200 OK\r\n\r\n", .malformedStatusLine),
        .init("lower case", "http/1.1 200 OK\r\n\r\n", .malformedStatusLine),
        .init("two spaces", "HTTP/1.1  200 OK\r\n\r\n", .malformedStatusLine),
        .init("two digits", "HTTP/1.1 20 OK\r\n\r\n", .malformedStatusLine),
        .init("four digits", "HTTP/1.1 2000 OK\r\n\r\n", .malformedStatusLine),
        .init("status with sign", "HTTP/1.1 +20 OK\r\n\r\n", .malformedStatusLine),
        .init("status 099", "HTTP/1.1 099 OK\r\n\r\n", .malformedStatusLine),
        .init("empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n", .malformedStatusLine),
        .init("version 2.0", "HTTP/2.0 200 OK\r\n\r\n", .version),
        .init("version 0.9", "HTTP/0.9 200 OK\r\n\r\n", .version),
        .init("NUL in reason", "HTTP/1.1 200 O\0K\r\n\r\n", .line(.controlByte(0), at: 14)),
        .init("LF ends the status line", "HTTP/1.1 200 OK\n\r\n", .line(.bareLineFeed, at: 15)),
        .init("CR in reason", "HTTP/1.1 200 O\rK\r\n\r\n", .line(.bareCarriageReturn, at: 14)),
        .init("switch of protocols", "HTTP/1.1 101 S\r\nUpgrade: h2c\r\n\r\n", .unexpectedSwitch),
        .init("folded line", ok("A: b\r\n c: d"), .line(.leadingSpace, at: 23)),
        .init("space before colon", ok("A : b"), .line(.spaceBeforeColon, at: 18)),
        .init("space before the first field", ok(" A: b"), .line(.leadingSpace, at: 17)),
        .init("no colon", ok("A"), .line(.nameNotToken, at: 18)),
        .init("LF ends a field", ok("A: b\nC: d"), .line(.bareLineFeed, at: 21)),
        .init("NUL in value", ok("A: \0"), .line(.controlByte(0), at: 20)),
        .init(
            "two lengths", ok("Content-Length: 1\r\nContent-Length: 2"),
            .repeatedContentLength),
        .init(
            "same length twice", ok("Content-Length: 1\r\nContent-Length: 1"),
            .repeatedContentLength),
        .init("list of lengths", ok("Content-Length: 5, 5"), .invalidContentLength),
        .init("negative length", ok("Content-Length: -1"), .invalidContentLength),
        .init(
            "length of 2^64", ok("Content-Length: 18446744073709551616"),
            .invalidContentLength),
        .init(
            "bad length of no body", "HTTP/1.1 304 N\r\nContent-Length: x\r\n\r\n",
            .invalidContentLength),
        .init(
            "length and coding", ok("Content-Length: 1\r\nTransfer-Encoding: chunked"),
            .lengthAndCoding),
        .init(
            "coding in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            .codingNotAllowed),
        .init(
            "coding in 103", "HTTP/1.1 103 E\r\nTransfer-Encoding: chunked\r\n\r\n",
            .codingNotAllowed),
        .init("other coding", ok("Transfer-Encoding: gzip"), .transferEncoding),
        .init(
            "other coding, then chunked", ok("Transfer-Encoding: gzip, chunked"),
            .transferEncoding),
        .init("chunked twice", ok("Transfer-Encoding: chunked, chunked"), .transferEncoding),
        .init("empty coding", ok("Transfer-Encoding:"), .transferEncoding),
    ]

    /// An answer of 17 bytes before `fields`.
    static func ok(_ fields: String) -> String {
        "HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n"
    }
}
