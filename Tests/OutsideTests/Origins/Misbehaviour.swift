import Harness

/// One kind of origin misbehaviour and the expected behaviour of the node.
struct Misbehaviour: Sendable {
    /// The response that the client must receive.
    enum Seen: Sendable {
        /// A problem document with this status and the name at the end of its type.
        case problem(Int, String)
        /// A problem document of status 502 and any type.
        case fetchFailed
        /// A response that no client can accept as complete.
        case broken
        /// The image.
        case image(isStored: Bool)
    }

    let name: String
    /// Scripts of the connections in order; further connections follow the last one.
    let scripts: [[ByteOrigin.Step]]
    let seen: Seen
    /// The expected log line; `nil` if none is written.
    let logged: String?

    init(
        _ name: String, _ scripts: [ByteOrigin.Step]..., seen: Seen, logged: String?
    ) {
        self.name = name
        self.scripts = scripts
        self.seen = seen
        self.logged = logged
    }

    /// The image of every response that has one: a complete 1 by 1 GIF.
    static let image: [UInt8] = [
        0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0xFF, 0xFF, 0xFF, 0, 0, 0,
        0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3B,
    ]
    static let length = "Content-Length: \(image.count)\r\n"
    static let type = "Content-Type: image/gif\r\n"
    static let ok = "HTTP/1.1 200 OK\r\n\(type)"
    static let whole: [ByteOrigin.Step] = [.send("\(ok)\(length)\r\n"), .sendBytes(image)]
    static let firstHalf = ByteOrigin.Step.sendBytes(Array(image[..<20]))

    static let all =
        connecting + heads + interim + bodies + chunks + meanings + redirects + reuse

    // MARK: Before a response

    static let connecting: [Misbehaviour] = [
        .init(
            "closes at once", [.close], seen: .problem(502, "origin-answer-truncated"),
            logged: "without a response"),
        .init(
            // Before or after the node has noticed that the connection is open.
            "resets at once", [.reset], seen: .fetchFailed, logged: "origin fetch failed"),
        .init(
            "closes after the request", [.awaitRequestHead, .close],
            seen: .problem(502, "origin-answer-truncated"), logged: "without a response"),
        .init(
            "resets after the request", [.awaitRequestHead, .reset],
            seen: .problem(502, "origin-answer-truncated"), logged: "without a response"),
        .init(
            "says nothing", [.awaitRequestHead, .awaitGate], seen: .problem(504, "origin-timeout"),
            logged: "no response from the origin within"),
        .init(
            "speaks TLS on a plain port",
            [.awaitRequestHead, .sendBytes([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46]), .close],
            seen: .problem(502, "origin-answer-invalid"), logged: "not valid HTTP/1.1"),
        .init(
            "speaks SSH", [.send("SSH-2.0-OpenSSH_9.2\r\n"), .awaitGate],
            seen: .problem(502, "origin-answer-invalid"), logged: "not valid HTTP/1.1"),
        .init(
            "speaks HTTP/2", [.sendBytes([0, 0, 0, 4, 0, 0, 0, 0, 0]), .awaitGate],
            seen: .problem(502, "origin-answer-invalid"), logged: "not valid HTTP/1.1"),
        .init(
            "speaks HTTP/0.9", [.awaitRequestHead, .send("<html>\n<p>hello\n</html>\n"), .close],
            seen: .problem(502, "origin-answer-invalid"), logged: "not valid HTTP/1.1"),
    ]

    // MARK: The head

    private static func head(
        _ name: String, _ text: String, _ seen: Seen = .problem(502, "origin-answer-invalid"),
        logged: String? = "not valid HTTP/1.1"
    ) -> Misbehaviour {
        .init(
            name, [.awaitRequestHead, .send(text), .sendBytes(image), .close], seen: seen,
            logged: logged)
    }

    static let heads: [Misbehaviour] = [
        .init(
            "resets in the status line", [.awaitRequestHead, .send("HTTP/1.1 20"), .reset],
            seen: .problem(502, "origin-answer-truncated"), logged: "into the head"),
        .init(
            "closes in the head", [.awaitRequestHead, .send(ok), .close],
            seen: .problem(502, "origin-answer-truncated"), logged: "into the head"),
        .init(
            "resets in the head", [.awaitRequestHead, .send(ok), .reset],
            seen: .problem(502, "origin-answer-truncated"), logged: "into the head"),
        .init(
            "gives its head too slowly",
            [.awaitRequestHead, .trickle("\(ok)\(length)\r\n", milliseconds: 100)],
            seen: .problem(504, "origin-timeout"), logged: "no response from the origin within"),
        .init(
            "gives its head byte by byte",
            [.awaitRequestHead, .drip("\(ok)\(length)\r\n"), .sendBytes(image)],
            seen: .image(isStored: true), logged: nil),
        .init(
            "never ends its head",
            [.awaitRequestHead, .send(ok), .sendRepeatedly("X-Again: and again\r\n")],
            seen: .problem(502, "origin-answer-invalid"), logged: "too many field lines"),
        .init(
            "never ends a field", [.awaitRequestHead, .send("\(ok)X: "), .sendRepeatedly("x")],
            seen: .problem(502, "origin-answer-invalid"), logged: "larger than"),
        head(
            "has more fields than allowed",
            ok + (1...40).map { "X-\($0): y\r\n" }.joined() + "\r\n"),
        head("has a status of letters", "HTTP/1.1 abc OK\r\n\(length)\r\n"),
        head("has a status of four digits", "HTTP/1.1 2000 OK\r\n\(length)\r\n"),
        head("has a status below 100", "HTTP/1.1 099 OK\r\n\(length)\r\n"),
        head("speaks HTTP/3.0", "HTTP/3.0 200 OK\r\n\(length)\r\n"),
        head("has a field without colon", "\(ok)\(length)Broken\r\n\r\n"),
        head("has a space before a colon", "\(ok)Content-Length : 35\r\n\r\n"),
        head("folds a line", "\(ok)X: a\r\n b\r\n\(length)\r\n"),
        head("has a NUL in a field", "\(ok)X: a\u{0}b\r\n\(length)\r\n"),
        head("has two lengths", "\(ok)\(length)Content-Length: 36\r\n\r\n"),
        head("has a list of lengths", "\(ok)Content-Length: 35, 36\r\n\r\n"),
        head("has a negative length", "\(ok)Content-Length: -35\r\n\r\n"),
        head("has a length past 64 bits", "\(ok)Content-Length: 18446744073709551617\r\n\r\n"),
        head("has a length and chunks", "\(ok)\(length)Transfer-Encoding: chunked\r\n\r\n"),
        head("has an unknown transfer coding", "\(ok)Transfer-Encoding: gzip, chunked\r\n\r\n"),
        head("has chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        head(
            "has a body of 8 EiB", "\(ok)Content-Length: 9223372036854775807\r\n\r\n",
            .problem(502, "origin-answer-too-large"), logged: "larger than"),
    ]

    static let interim: [Misbehaviour] = [
        .init(
            "gives interim answers without end",
            [.awaitRequestHead, .sendRepeatedly("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")],
            seen: .problem(502, "origin-answer-invalid"), logged: "interim responses"),
        .init(
            "gives an interim answer and closes",
            [.awaitRequestHead, .send("HTTP/1.1 100 Continue\r\n\r\n"), .close],
            seen: .problem(502, "origin-answer-truncated"), logged: "into the head"),
        .init(
            "switches protocols",
            [
                .awaitRequestHead, .send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
                .awaitGate,
            ],
            seen: .problem(502, "origin-answer-invalid"), logged: "not valid HTTP/1.1"),
        .init(
            "gives three interim answers before the image",
            [
                .awaitRequestHead,
                .send(
                    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
                        + "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
            ] + whole, seen: .image(isStored: true), logged: nil),
    ]
}
