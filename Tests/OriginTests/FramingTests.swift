import Harness
import NIOCore
import NIOPosix
import Origin
import Testing

@Suite("Framing of responses over a socket")
struct FramingTests {
    struct Answer: Sendable, CustomTestStringConvertible {
        let name: String
        let steps: [ByteOrigin.Step]
        let body: String
        let end: Outcome.End
        let isKept: Bool
        /// True if the origin closes the connection itself; either side may then close first.
        let closesItself: Bool

        init(
            _ name: String, _ steps: [ByteOrigin.Step], body: String, _ end: Outcome.End,
            isKept: Bool = false, closesItself: Bool = false
        ) {
            self.name = name
            self.steps = [.awaitRequestHead] + steps
            self.body = body
            self.end = end
            self.isKept = isKept
            self.closesItself = closesItself
        }

        var testDescription: String { name }
    }

    static let ok = "HTTP/1.1 200 OK\r\n"
    static let whole = Outcome.End.ended(delimitedByClose: false)

    static let wholeAnswers: [Answer] = [
        Answer(
            "Content-Length", [.send(ok + "Content-Length: 5\r\n\r\nhello")], body: "hello", whole,
            isKept: true),
        Answer(
            "Content-Length, byte by byte", [.drip(ok + "Content-Length: 5\r\n\r\nhello")],
            body: "hello", whole, isKept: true),
        Answer(
            "Content-Length 0", [.send(ok + "Content-Length: 0\r\n\r\n")], body: "", whole,
            isKept: true),
        Answer(
            "Content-Length, then closed", [.send(ok + "Content-Length: 2\r\n\r\nhi"), .close],
            body: "hi", whole, closesItself: true),
        Answer(
            "Connection: close", [.send(ok + "Connection: close\r\nContent-Length: 2\r\n\r\nhi")],
            body: "hi", whole),
        Answer(
            "chunked",
            [.send(ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")],
            body: "hello", whole, isKept: true),
        Answer(
            "chunked, byte by byte",
            [.drip(ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")],
            body: "hello", whole, isKept: true),
        Answer(
            "close-delimited", [.send(ok + "\r\nhello"), .close], body: "hello",
            .ended(delimitedByClose: true)),
        Answer(
            "HTTP/1.0", [.send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi")], body: "hi",
            whole),
        Answer(
            "interim answers first",
            [
                .send(
                    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
                .send(ok + "Content-Length: 2\r\n\r\nhi"),
            ], body: "hi", whole, isKept: true),
        Answer(
            "Content-Length and bytes beyond", [.send(ok + "Content-Length: 2\r\n\r\nhi, more")],
            body: "hi", whole),
        Answer(
            "204 with a body", [.send("HTTP/1.1 204 No Content\r\n\r\nmore")], body: "", whole),
        Answer(
            "204", [.send("HTTP/1.1 204 No Content\r\n\r\n")], body: "", whole, isKept: true),
        Answer(
            "304 with a Content-Length",
            [.send("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n")], body: "", whole,
            isKept: true),
        Answer(
            "404", [.send("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno")], body: "no",
            whole, isKept: true),
    ]

    static let brokenAnswers: [Answer] = [
        Answer(
            "closed without a byte", [.close], body: "",
            .failed(.closedBeforeResponse(bytesReceived: 0))),
        Answer(
            "reset without a byte", [.reset], body: "",
            .failed(.closedBeforeResponse(bytesReceived: 0))),
        Answer(
            "closed in the head", [.send("HTTP/1.1 20"), .close], body: "",
            .failed(.closedBeforeResponse(bytesReceived: 11))),
        Answer(
            "Content-Length, short", [.send(ok + "Content-Length: 6\r\n\r\nhello"), .close],
            body: "hello", .failed(.truncated(expected: 6, received: 5))),
        Answer(
            "Content-Length, no body at all", [.send(ok + "Content-Length: 6\r\n\r\n"), .close],
            body: "", .failed(.truncated(expected: 6, received: 0))),
        Answer(
            "chunked without its terminator",
            [.send(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), .close],
            body: "hello", .failed(.truncated(expected: nil, received: 5))),
        Answer(
            "chunked, without its last line end",
            [.send(ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"), .close],
            body: "hello", .failed(.truncated(expected: nil, received: 5))),
        Answer(
            "chunked with a chunk size that is none",
            [.send(ok + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n")], body: "",
            .failed(.malformed("A chunk's size is not a hexadecimal number alone."))),
        Answer(
            "both framings",
            [.send(ok + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n")],
            body: "",
            .failed(
                .malformed("The response has both Content-Length and Transfer-Encoding."))),
        Answer(
            "no HTTP", [.send("SSH-2.0-OpenSSH_9.2\r\n")], body: "",
            .failed(.malformed("The status line is malformed."))),
        Answer(
            "a head over the limit", [.send(ok + "X: " + String(repeating: "x", count: 5000))],
            body: "", .failed(.headTooLarge(bytesMax: 4096))),
        Answer(
            "interim answers without end",
            [.send(String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 101))], body: "",
            .failed(.tooManyInterimResponses(max: 100))),
        Answer(
            "interim answers larger than a head may be",
            [
                .send(
                    String(
                        repeating: "HTTP/1.1 103 E\r\nX: "
                            + String(repeating: "x", count: 977) + "\r\n\r\n",
                        count: 5))
            ], body: "", .failed(.headTooLarge(bytesMax: 4096))),
    ]

    @Test("A response ends where its framing says", arguments: wholeAnswers + brokenAnswers)
    func answer(_ response: Answer) async throws {
        try await Rig.run(settings: { $0.headBytesMax = 4096 }) { rig in
            let origin = try await rig.origin(response.steps)
            let outcome = try await rig.get(origin.port)
            #expect(outcome.end == response.end)
            #expect(outcome.text == response.body)
            #expect(outcome.lateCalls == 0)
            if !response.closesItself {
                #expect(try await rig.usage().idle == (response.isKept ? 1 : 0))
            }
            if !response.isKept { try await rig.until { $0.connections == 0 } }
        }
    }

    @Test("A response delimited by close is incomplete if it ends in a reset")
    func resetInBody() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [.awaitRequestHead, .send(Self.ok + "\r\nhello"), .awaitGate, .reset])
            let outcome = try await rig.begin(origin.port) { recorder, _ in
                recorder.afterEach = { if $0.bytesSeen > 0 { origin.openGate() } }
            }.get()
            #expect(outcome.text == "hello")
            #expect(outcome.end == .failed(.reset(received: 5)))
            try await rig.until { $0.connections == 0 }
        }
    }

    @Test("The head gives the body's length and the times of request and response")
    func head() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [.awaitRequestHead, .send(Self.ok + "Content-Length: 2\r\n\r\nhi")],
                [.awaitRequestHead, .send(Self.ok + "\r\nhi"), .close])
            let before = bootClock()
            let outcome = try await rig.get(origin.port)
            #expect(outcome.status == 200 && outcome.bodyLength == 2)
            let requestedAt = try #require(outcome.requestedAt)
            let answeredAt = try #require(outcome.answeredAt)
            #expect(before <= requestedAt && requestedAt <= answeredAt)
            #expect(answeredAt <= bootClock())
        }
    }

    @Test("The request has the URL's path, its host, our name, and nothing else of the client")
    func request() async throws {
        try await Rig.run { rig in
            let origin = try await rig.origin(
                [.awaitRequestHead, .send(Self.ok + "Content-Length: 0\r\n\r\n")])
            _ = try await rig.get(origin.port, path: "/a/b%20c.png?x=1&y")
            let lines = try #require(origin.requests.first).split(separator: "\r\n")
            #expect(lines.first == "GET /a/b%20c.png?x=1&y HTTP/1.1")
            #expect(lines.contains("Host: 127.0.0.1:\(origin.port)"))
            #expect(lines.contains("User-Agent: nuthatch/0.1"))
            #expect(lines.count == 3)
        }
    }

    @Test("A large body arrives unchanged, in pieces that hold at most twice their size")
    func large() async throws {
        let count = 20_000_000
        try await Rig.run { rig in
            let head = Self.ok + "Content-Length: \(count)\r\n\r\n"
            let origin = try await rig.origin([.awaitRequestHead, .send(head), .flood(count)])
            let outcome = try await rig.get(origin.port)
            #expect(outcome.end == Self.whole)
            #expect(outcome.body.readableBytes == count)
            #expect(ByteOrigin.isFlood(outcome.body))
            #expect(outcome.wasteMax <= 2)
        }
    }
}
