import Testing
import Wire

/// A malformed response and the expected error.
typealias ResponseCase = (name: String, text: String, refusal: ResponseParseError)

/// All malformed responses; texts are Latin-1.
enum ResponseCases {
    static let all: [ResponseCase] = [
        ("no version", "200 OK\r\n\r\n", .malformedStatusLine),
        ("other protocol", "ICY 200 OK\r\n\r\n", .malformedStatusLine),
        ("lower case", "http/1.1 200 OK\r\n\r\n", .malformedStatusLine),
        ("two spaces", "HTTP/1.1  200 OK\r\n\r\n", .malformedStatusLine),
        ("two digits", "HTTP/1.1 20 OK\r\n\r\n", .malformedStatusLine),
        ("four digits", "HTTP/1.1 2000 OK\r\n\r\n", .malformedStatusLine),
        ("status with sign", "HTTP/1.1 +20 OK\r\n\r\n", .malformedStatusLine),
        ("status 099", "HTTP/1.1 099 OK\r\n\r\n", .malformedStatusLine),
        ("empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n", .malformedStatusLine),
        ("version 2.0", "HTTP/2.0 200 OK\r\n\r\n", .version),
        ("version 0.9", "HTTP/0.9 200 OK\r\n\r\n", .version),
        ("NUL in reason", "HTTP/1.1 200 O\0K\r\n\r\n", .line(.controlByte(0), at: 14)),
        ("LF ends the status line", "HTTP/1.1 200 OK\n\r\n", .line(.bareLineFeed, at: 15)),
        ("CR in reason", "HTTP/1.1 200 O\rK\r\n\r\n", .line(.bareCarriageReturn, at: 14)),
        ("switch of protocols", "HTTP/1.1 101 S\r\nUpgrade: h2c\r\n\r\n", .unexpectedSwitch),
        ("folded line", ok("A: b\r\n c: d"), .line(.leadingSpace, at: 23)),
        ("space before colon", ok("A : b"), .line(.spaceBeforeColon, at: 18)),
        ("space before the first field", ok(" A: b"), .line(.leadingSpace, at: 17)),
        ("no colon", ok("A"), .line(.invalidNameToken, at: 18)),
        ("LF ends a field", ok("A: b\nC: d"), .line(.bareLineFeed, at: 21)),
        ("NUL in value", ok("A: \0"), .line(.controlByte(0), at: 20)),
        ("two lengths", ok("Content-Length: 1\r\nContent-Length: 2"), .repeatedContentLength),
        ("same length twice", ok("Content-Length: 1\r\nContent-Length: 1"), .repeatedContentLength),
        ("list of lengths", ok("Content-Length: 5, 5"), .invalidContentLength),
        ("negative length", ok("Content-Length: -1"), .invalidContentLength),
        ("length of 2^64", ok("Content-Length: 18446744073709551616"), .invalidContentLength),
        (
            "bad length of no body", "HTTP/1.1 304 N\r\nContent-Length: x\r\n\r\n",
            .invalidContentLength
        ),
        (
            "length and coding", ok("Content-Length: 1\r\nTransfer-Encoding: chunked"),
            .lengthAndCoding
        ),
        (
            "coding in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            .codingNotAllowed
        ),
        (
            "coding in 103", "HTTP/1.1 103 E\r\nTransfer-Encoding: chunked\r\n\r\n",
            .codingNotAllowed
        ),
        ("other coding", ok("Transfer-Encoding: gzip"), .transferEncoding),
        ("other coding, then chunked", ok("Transfer-Encoding: gzip, chunked"), .transferEncoding),
        ("chunked twice", ok("Transfer-Encoding: chunked, chunked"), .transferEncoding),
        ("empty coding", ok("Transfer-Encoding:"), .transferEncoding),
    ]

    /// A response with 17 bytes before `fields`.
    static func ok(_ fields: String) -> String {
        "HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n"
    }
}
