import Harness

extension Misbehaviour {
    // MARK: The body

    static let bodies: [Misbehaviour] = [
        .init(
            "closes before its length is reached",
            [.awaitRequestHead, .send("\(ok)\(length)\r\n"), firstHalf, .close], seen: .broken,
            logged: "after 20 of 35 bytes"),
        .init(
            "resets before its length is reached",
            [.awaitRequestHead, .send("\(ok)\(length)\r\n"), firstHalf, .reset], seen: .broken,
            logged: "of 35 bytes"),
        .init(
            "stops in mid-body",
            [.awaitRequestHead, .send("\(ok)\(length)\r\n"), firstHalf, .awaitGate],
            seen: .broken, logged: "sent nothing of the body for"),
        .init(
            "gives its body a byte now and then, for ever",
            [
                .awaitRequestHead, .send("\(ok)Content-Length: 1000\r\n\r\n"),
                .trickle(String(repeating: "x", count: 1000), milliseconds: 50),
            ], seen: .broken, logged: "the complete response did not arrive within"),
        .init(
            "sends more than its length",
            [.awaitRequestHead, .send("\(ok)\(length)\r\n")]
                + [.sendBytes(image + image), .close], seen: .image(isStored: true),
            logged: "more bytes than Content-Length"),
        .init(
            "sends a line end behind its last chunk",
            [
                .awaitRequestHead, .send("\(ok)Transfer-Encoding: chunked\r\n\r\n23\r\n"),
                .sendBytes(image),
                .send("\r\n0\r\n\r\n\r\n"), .close,
            ], seen: .image(isStored: true), logged: "more bytes than Content-Length"),
        .init(
            "sends a body above the limit, chunked",
            [
                .awaitRequestHead, .send("\(ok)Transfer-Encoding: chunked\r\n\r\n"),
                .sendRepeatedly("400\r\n\(String(repeating: "x", count: 1024))\r\n"),
            ], seen: .broken, logged: "is larger than"),
        .init(
            "sends a body without end, delimited by close",
            [.awaitRequestHead, .send("\(ok)\r\n"), .sendRepeatedly("x")], seen: .broken,
            logged: "is larger than"),
        .init(
            "ends a whole image by closing",
            [.awaitRequestHead, .send("\(ok)\r\n")]
                + [.sendBytes(image), .close], seen: .image(isStored: true), logged: nil),
        .init(
            "ends half an image by closing",
            [.awaitRequestHead, .send("\(ok)\r\n"), firstHalf, .close],
            seen: .broken, logged: nil),
        .init(
            "ends a whole image by a reset",
            [.awaitRequestHead, .send("\(ok)\r\n")]
                + [.sendBytes(image), .reset], seen: .broken, logged: "broke after"),
    ]

    private static func chunked(
        _ name: String, _ steps: ByteOrigin.Step..., seen: Seen = .broken,
        logged: String? = "not valid HTTP/1.1"
    ) -> Misbehaviour {
        let head = ByteOrigin.Step.send("\(ok)Transfer-Encoding: chunked\r\n\r\n")
        return .init(name, [.awaitRequestHead, head] + steps, seen: seen, logged: logged)
    }

    static let chunks: [Misbehaviour] = [
        chunked("has a chunk size of letters", .send("zz\r\n"), .awaitGate),
        chunked("has an empty chunk size", .send("\r\n"), .awaitGate),
        chunked("has a negative chunk size", .send("-1\r\n"), .awaitGate),
        chunked("has a chunk size past 64 bits", .send("10000000000000023\r\n"), .awaitGate),
        chunked(
            "has a chunk of 16 EiB", .send("ffffffffffffffff\r\n"), .sendBytes(image), .awaitGate,
            logged: "sent nothing of the body for"),
        chunked(
            "has a chunk that is longer than its size", .send("5\r\n"), .sendBytes(image),
            .awaitGate),
        chunked("never ends a chunk's size", .sendRepeatedly("0")),
        chunked("never ends a chunk's extensions", .send("23;"), .sendRepeatedly("a=b;")),
        chunked(
            "closes before the last chunk", .send("23\r\n"), .sendBytes(image), .send("\r\n"),
            .close,
            logged: "unfinished body"),
        chunked(
            "resets in a chunk", .send("23\r\n"), firstHalf, .reset, logged: "unfinished body"),
        chunked(
            "never ends its trailers", .send("23\r\n"), .sendBytes(image), .send("\r\n0\r\n"),
            .sendRepeatedly("X: y\r\n")),
        chunked(
            "has trailers and extensions", .send("23;a=\"b\"\r\n"), .sendBytes(image),
            .send("\r\n0;c\r\nX-Checksum: 1\r\n\r\n"), seen: .image(isStored: true), logged: nil),
    ]

    // MARK: Semantics

    static let meanings: [Misbehaviour] = [
        .init(
            "answers 304 unasked", [.awaitRequestHead, .send("HTTP/1.1 304 Not Modified\r\n\r\n")],
            seen: .problem(502, "origin-status"), logged: "status 304"),
        .init(
            "answers a part unasked",
            [
                .awaitRequestHead,
                .send("HTTP/1.1 206 P\r\n\(type)\(length)Content-Range: bytes 0-34/99\r\n\r\n"),
                .sendBytes(image),
            ], seen: .problem(502, "origin-status"), logged: "status 206"),
        .init(
            "answers 204", [.awaitRequestHead, .send("HTTP/1.1 204 No Content\r\n\r\n")],
            seen: .problem(502, "origin-status"), logged: "status 204"),
        .init(
            "answers 403",
            [.awaitRequestHead, .send("HTTP/1.1 403 N\r\nContent-Length: 0\r\n\r\n")],
            seen: .problem(403, "origin-status"), logged: nil),
        .init(
            "answers 500 with a body above the limit",
            [
                .awaitRequestHead, .send("HTTP/1.1 500 I\r\nContent-Length: 99999999\r\n\r\n"),
                .awaitGate,
            ],
            seen: .problem(502, "origin-answer-too-large"), logged: "larger than"),
        .init(
            "answers 503",
            [.awaitRequestHead, .send("HTTP/1.1 503 S\r\nContent-Length: 0\r\n\r\n")],
            seen: .problem(502, "origin-status"), logged: "status 503"),
        .init(
            "answers with a page",
            [
                .awaitRequestHead,
                .send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\(length)\r\n"),
            ]
                + [.sendBytes(image)], seen: .problem(502, "not-an-image"), logged: "text/html"),
        .init(
            "does not say what it sends",
            [.awaitRequestHead, .send("HTTP/1.1 200 OK\r\n\(length)\r\n"), .sendBytes(image)],
            seen: .problem(502, "not-an-image"), logged: "no Content-Type"),
        .init(
            "sends text for an image",
            [.awaitRequestHead, .send("\(ok)Content-Length: 5\r\n\r\nhello")],
            seen: .image(isStored: false), logged: nil),
    ]

    // MARK: Redirects

    private static func redirect(
        _ name: String, to location: String, seen: Seen, logged: String?
    ) -> Misbehaviour {
        let response = "HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n"
        let steps = [ByteOrigin.Step.awaitRequestHead, .send(response)]
        return .init(name, steps + steps + steps, seen: seen, logged: logged)
    }

    static let redirects: [Misbehaviour] = [
        redirect(
            "redirects to itself", to: "/it", seen: .problem(502, "origin-redirects"),
            logged: "redirects in a loop"),
        .init(
            "redirects to more and more places",
            (1...6).flatMap { number -> [ByteOrigin.Step] in
                let location = "Location: /\(number)\r\n"
                return [
                    .awaitRequestHead,
                    .send("HTTP/1.1 301 M\r\n\(location)Content-Length: 0\r\n\r\n"),
                ]
            }, seen: .problem(502, "origin-redirects"), logged: "more than 3 times"),
        redirect(
            "redirects to a private address", to: "http://10.0.0.1/secret",
            seen: .problem(502, "origin-redirect-refused"), logged: "10.0.0.1"),
        redirect(
            "redirects to the metadata service", to: "http://169.254.169.254/latest",
            seen: .problem(502, "origin-redirect-refused"), logged: "169.254.169.254"),
        redirect(
            "redirects to a name of loopback", to: "http://localhost.localdomain.invalid/",
            seen: .problem(502, "origin-unreachable"), logged: "has no address"),
        redirect(
            "redirects to another scheme", to: "gopher://a.example/",
            seen: .problem(502, "origin-redirect-refused"), logged: "http:// or https://"),
        redirect(
            "redirects to https where nobody listens", to: "https://127.0.0.99:1/",
            seen: .problem(502, "origin-unreachable"), logged: "after a redirect to 127.0.0.99:1"),
        redirect(
            "redirects with a password", to: "http://user:pass@a.example/",
            seen: .problem(502, "origin-redirect-refused"), logged: "user name or password"),
        redirect(
            "redirects to where nobody listens", to: "http://127.0.0.99:1/",
            seen: .problem(502, "origin-unreachable"), logged: "after a redirect to 127.0.0.99:1"),
        .init(
            "redirects nowhere",
            [.awaitRequestHead, .send("HTTP/1.1 302 F\r\nContent-Length: 0\r\n\r\n")],
            seen: .problem(502, "origin-status"), logged: "status 302"),
        .init(
            "redirects to the image",
            [
                .awaitRequestHead,
                .send("HTTP/1.1 302 F\r\nLocation: else/where\r\nContent-Length: 0\r\n\r\n"),
                .awaitRequestHead,
            ] + whole, seen: .image(isStored: true), logged: nil),
    ]

    // MARK: Reused connections

    /// The steps of a first exchange that leaves the connection reusable.
    private static let first: [ByteOrigin.Step] = [
        .awaitRequestHead, .send("HTTP/1.1 403 N\r\nContent-Length: 0\r\n\r\n"),
    ]

    /// Cases with two requests; the expectations are those of the second.
    static let reuse: [Misbehaviour] = [
        .init(
            "closes a connection just as it is used again", first + [.awaitRequestHead, .close],
            [.awaitRequestHead] + whole, seen: .image(isStored: true), logged: nil),
        .init(
            "resets a connection just as it is used again", first + [.awaitRequestHead, .reset],
            [.awaitRequestHead] + whole, seen: .image(isStored: true), logged: nil),
        .init(
            "closes the connection used again, and the one after it",
            first + [.awaitRequestHead, .close], [.awaitRequestHead, .close],
            seen: .problem(502, "origin-answer-truncated"), logged: "without a response"),
        .init(
            "answers what nobody asked, on an idle connection", first + whole,
            [.awaitRequestHead] + whole, seen: .image(isStored: true), logged: nil),
        .init(
            "begins to answer on a connection used again, then closes it",
            first + [.awaitRequestHead, .send("HTTP/1.1 2"), .close], [.awaitRequestHead] + whole,
            seen: .problem(502, "origin-answer-truncated"), logged: "into the head"),
    ]
}
