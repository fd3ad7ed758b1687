import Wire

/// The rules of fields and pseudo-header fields, and of Content-Length (RFC 9113 §8.1.1, §8.2,
/// §8.3).
enum ConformanceFields {
    static let all = names + values + connection + pseudo + hosts + lengths + trailers

    private static func good(
        _ section: String, _ name: String, _ fields: [(String, String)]
    ) -> ConformanceCase {
        .init(section, name, [.headers(1, RawHPACK.fields(fields))], .answered([1]))
    }

    private static func malformed(
        _ section: String, _ name: String, _ fields: [(String, String)]
    ) -> ConformanceCase {
        .init(
            section, name, [.headers(1, RawHPACK.fields(fields)), .get(3)],
            .streamError(1, .protocolError))
    }

    private static let method = (":method", "GET")
    private static let scheme = (":scheme", "http")
    private static let authority = (":authority", "a.example")
    private static let path = (":path", "/")
    private static let usual = [method, scheme, authority, path]

    private static let names = [
        malformed("RFC 9113 §8.2", "a name in upper case", usual + [("X-A", "b")]),
        malformed("RFC 9113 §8.2.1", "a name with a space", usual + [("a b", "c")]),
        malformed("RFC 9113 §8.2.1", "a name with a control byte", usual + [("a\u{1}", "c")]),
        malformed("RFC 9113 §8.2.1", "a name with DEL", usual + [("a\u{7F}", "c")]),
        malformed("RFC 9113 §8.2.1", "a name with obs-text", usual + [("a\u{E9}", "c")]),
        malformed("RFC 9113 §8.2.1", "a name with a colon", usual + [("a:b", "c")]),
        malformed("RFC 9113 §8.2.1", "a name with CR LF", usual + [("a\r\nb", "c")]),
        malformed("RFC 9113 §8.2.1", "an empty name", usual + [("", "c")]),
        good(
            "RFC 9113 §8.2.1", "a name of every other byte of a token",
            usual + [("!#$%&'*+-.^_`|~09az", "b")]),
    ]

    private static let values = [
        malformed("RFC 9113 §8.2.1", "a value with CR LF", usual + [("a", "b\r\nc: d")]),
        malformed("RFC 9113 §8.2.1", "a value with LF", usual + [("a", "b\nc")]),
        malformed("RFC 9113 §8.2.1", "a value with CR", usual + [("a", "b\rc")]),
        malformed("RFC 9113 §8.2.1", "a value with NUL", usual + [("a", "b\0c")]),
        malformed("RFC 9113 §8.2.1", "a value that begins with a space", usual + [("a", " b")]),
        malformed("RFC 9113 §8.2.1", "a value that ends with a tab", usual + [("a", "b\t")]),
        good("RFC 9113 §8.2.1", "an empty value", usual + [("a", "")]),
        good("RFC 9113 §8.2.1", "a value with obs-text", usual + [("a", "\u{E9}")]),
        good("RFC 9113 §8.2.1", "a value with a tab within", usual + [("a", "b\tc")]),
    ]

    private static let connection = [
        malformed("RFC 9113 §8.2.2", "Connection", usual + [("connection", "keep-alive")]),
        malformed("RFC 9113 §8.2.2", "Keep-Alive", usual + [("keep-alive", "1")]),
        malformed("RFC 9113 §8.2.2", "Proxy-Connection", usual + [("proxy-connection", "x")]),
        malformed(
            "RFC 9113 §8.2.2", "Transfer-Encoding", usual + [("transfer-encoding", "chunked")]),
        malformed("RFC 9113 §8.2.2", "Upgrade", usual + [("upgrade", "h2c")]),
        malformed("RFC 9113 §8.2.2", "TE of more", usual + [("te", "trailers, deflate")]),
        malformed("RFC 9113 §8.2.2", "TE of other", usual + [("te", "gzip")]),
        good("RFC 9113 §8.2.2", "TE of trailers", usual + [("te", "trailers")]),
        good(
            "RFC 9113 §8.2.3", "Cookie in crumbs", usual + [("cookie", "a=b"), ("cookie", "c=d")]),
    ]

    private static let pseudo = [
        malformed("RFC 9113 §8.3", "an unknown pseudo-header field", usual + [(":test", "x")]),
        malformed(
            "RFC 9113 §8.3", "a pseudo-header field of answers", usual + [(":status", "200")]),
        malformed(
            "RFC 9113 §8.3", "a pseudo-header field after another",
            [method, scheme, authority, ("a", "b"), path]),
        malformed("RFC 9113 §8.3.1", "an empty :path", [method, scheme, authority, (":path", "")]),
        malformed("RFC 9113 §8.3.1", "no :method", [scheme, authority, path]),
        malformed("RFC 9113 §8.3.1", "no :scheme", [method, authority, path]),
        malformed("RFC 9113 §8.3.1", "no :path", [method, scheme, authority]),
        malformed("RFC 9113 §8.3.1", "two of :method", [method] + usual),
        malformed("RFC 9113 §8.3.1", "two of :scheme", [scheme] + usual),
        malformed("RFC 9113 §8.3.1", "two of :authority", [authority] + usual),
        malformed("RFC 9113 §8.3.1", "two of :path", [path] + usual),
        malformed("RFC 9113 §8.3.1", "no field at all", []),
        malformed(
            "RFC 9113 §8.3.1", "a :path without a slash",
            [method, scheme, authority, (":path", "a")]),
        malformed(
            "RFC 9113 §8.3.1", "a :path with a space",
            [method, scheme, authority, (":path", "/a b")]),
        malformed(
            "RFC 9113 §8.3.1", "a :method that is no token",
            [(":method", "G T"), scheme, authority, path]),
        malformed(
            "RFC 9113 §8.3.1", "an empty :method", [(":method", ""), scheme, authority, path]),
        malformed(
            "RFC 9113 §8.3.1", "a :scheme that is none",
            [method, (":scheme", "h:p"), authority, path]),
        malformed(
            "RFC 9113 §8.3.1", "a :scheme of another protocol",
            [method, (":scheme", "ftp"), authority, path]),
        malformed(
            "RFC 9113 §8.3.1", "an asterisk with GET", [method, scheme, authority, (":path", "*")]),
        good(
            "RFC 9113 §8.3.1", "an asterisk with OPTIONS",
            [(":method", "OPTIONS"), scheme, authority, (":path", "*")]),
        good("RFC 9113 §8.5", "CONNECT", [(":method", "CONNECT"), authority]),
        malformed(
            "RFC 9113 §8.5", "CONNECT with :path", [(":method", "CONNECT"), authority, path]),
        malformed(
            "RFC 9113 §8.5", "CONNECT with :scheme", [(":method", "CONNECT"), authority, scheme]),
        malformed("RFC 9113 §8.5", "CONNECT without :authority", [(":method", "CONNECT")]),
        malformed(
            "RFC 8441 §4", ":protocol that was not allowed",
            [(":method", "CONNECT"), scheme, authority, path, (":protocol", "websocket")]),
    ]

    private static let hosts = [
        good("RFC 9113 §8.3.1", "Host that repeats :authority", usual + [("host", "A.example")]),
        malformed("RFC 9113 §8.3.1", "Host that differs from :authority", usual + [("host", "b")]),
        good("RFC 9113 §8.3.1", "Host without :authority", [method, scheme, path, ("host", "a")]),
        malformed("RFC 9113 §8.3.1", "neither Host nor :authority", [method, scheme, path]),
        malformed(
            "RFC 9113 §8.3.1", "two of Host", [method, scheme, path, ("host", "a"), ("host", "a")]),
        malformed(
            "RFC 9113 §8.3.1", "an :authority with a space",
            [method, scheme, path, (":authority", "a b")]),
        malformed(
            "RFC 9113 §8.3.1", "an empty :authority", [method, scheme, path, (":authority", "")]),
    ]

    private static func body(
        _ name: String, length: String, _ frames: [RawFrame],
        _ expectation: ConformanceCase.Expectation
    ) -> ConformanceCase {
        .init(
            "RFC 9113 §8.1.1", name, [.post(1, [("content-length", length)])] + frames,
            expectation, answerBytes: 0)
    }

    private static let end = RawFrame.endStream

    private static let lengths = [
        body("Content-Length that is right", length: "1", [.data(1, [0], end)], .answered([1])),
        body(
            "Content-Length above the body", length: "2", [.data(1, [0], end)],
            .streamError(1, .protocolError)),
        body(
            "Content-Length below the body", length: "1", [.data(1, [0, 0], end)],
            .streamError(1, .protocolError)),
        body(
            "Content-Length below a body in two frames", length: "1",
            [.data(1, [0]), .data(1, [0], end)], .streamError(1, .protocolError)),
        body(
            "Content-Length above a body that ends with trailers", length: "2",
            [.data(1, [0]), .headers(1, RawHPACK.literal("x", "y"))],
            .streamError(1, .protocolError)),
        body("Content-Length that is no number", length: "1x", [], .streamError(1, .protocolError)),
        body("Content-Length that is negative", length: "-1", [], .streamError(1, .protocolError)),
        body(
            "Content-Length of 2^64", length: "18446744073709551616", [],
            .streamError(1, .protocolError)),
        body(
            "Content-Length of 0 and an empty frame", length: "0", [.data(1, [], end)],
            .answered([1])),
        malformed(
            "RFC 9113 §8.1.1", "two of Content-Length",
            usual + [("content-length", "0"), ("content-length", "0")]),
        malformed(
            "RFC 9113 §8.1.1", "Content-Length without a body", usual + [("content-length", "1")]),
    ]

    private static func trailer(_ name: String, _ field: (String, String)) -> ConformanceCase {
        .init(
            "RFC 9113 §8.1", name,
            [.post(1), .data(1, [0]), .headers(1, RawHPACK.fields([field]))],
            .streamError(1, .protocolError), answerBytes: 0)
    }

    private static let trailers = [
        trailer("a pseudo-header field in trailers", (":path", "/")),
        trailer("a name in upper case in trailers", ("A", "b")),
        trailer("a connection's field in trailers", ("connection", "close")),
        trailer("a value with LF in trailers", ("a", "b\nc")),
    ]
}
