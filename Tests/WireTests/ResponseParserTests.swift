import Ground
import HTTPRules
import Testing
import Wire

@Suite struct ResponseParserTests {
    @Test("A malformed response is refused", arguments: ResponseCases.all)
    func refuses(name: String, text: String, refusal: ResponseParseError) {
        let bytes = latin1(text)
        let reading = Reading.responses(bytes, stops: [bytes.count])
        #expect(reading.ending == .responseRefused(refusal))
        #expect(reading.messages.isEmpty)
        #expect(refusal.message.hasSuffix("."))
    }

    @Test("A head is copied, with extents in the copy")
    func copies() {
        let text = "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nX: \u{E9} \r\nContent-Length: 2\r\n\r\n"
        let bytes = latin1("old" + text + "ab")
        var parser = ResponseParser()
        guard
            case .head(let head, let end) = parser.parse(bytes.span, from: 3, requestIsHead: false)
        else {
            Issue.record("no head")
            return
        }
        #expect(end == bytes.count - 2)
        #expect(head.head.status == 200)
        #expect(head.head.bytes == latin1(text))
        #expect(
            head.head.first(.etag).map { head.head.bytes.span.copy($0.range) }
                == latin1("\"x\""))
        #expect(head.head.bytes.span.copy(head.head.lines[1].name.range) == latin1("X"))
        #expect(head.head.bytes.span.copy(head.head.lines[1].value.range) == latin1("\u{E9}"))
        #expect(head.framing == .length(2))
        #expect(head.isPersistent)
    }

    @Test("A requested switch of protocols ends HTTP, only in HTTP/1.1")
    func switched() {
        let response = latin1("HTTP/1.1 101 S\r\nUpgrade: x\r\nContent-Length: 3\r\n\r\nab")
        var parser = ResponseParser()
        parser.acceptsProtocolSwitch = true
        guard
            case .head(let head, let end) = parser.parse(
                response.span, from: 0, requestIsHead: false)
        else {
            Issue.record("no head")
            return
        }
        #expect(head.head.status == 101 && end == response.count - 2)
        #expect(head.framing == .untilClose && !head.isPersistent)
        let old = latin1("HTTP/1.0 101 S\r\nUpgrade: x\r\n\r\n")
        #expect(
            parser.parse(old.span, from: 0, requestIsHead: false) == .refused(.unexpectedSwitch))
    }

    @Test(
        "The framing of the body follows RFC 9112 §6.3",
        arguments: [
            ("HTTP/1.1 200 OK\r\n", false, BodyFraming.untilClose, false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", false, .length(0), true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n", true, .none, true),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n", false, .chunked, true),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", true, .none, true),
            ("HTTP/1.1 204 N\r\nContent-Length: 7\r\n", false, .none, true),
            ("HTTP/1.1 204 N\r\nTransfer-Encoding: chunked\r\n", false, .none, true),
            ("HTTP/1.1 304 N\r\nContent-Length: 7\r\n", false, .none, true),
            ("HTTP/1.1 304 N\r\nTransfer-Encoding: chunked\r\n", false, .none, true),
            ("HTTP/1.1 200\r\nContent-Length: 1\r\n", false, .length(1), true),
            (
                "HTTP/1.1 200 \r\nConnection: close\r\nContent-Length: 1\r\n", false, .length(1),
                false
            ),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n", false, .length(1), false),
            (
                "HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n", false,
                .length(1), true
            ),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", false, .untilClose, false),
        ])
    func framing(_ text: String, _ isHead: Bool, _ framing: BodyFraming, _ persists: Bool) {
        let reading = Reading.responses(text + "\r\n", requestIsHead: isHead)
        #expect(reading.messages.map(\.framing) == [framing])
        #expect(reading.messages.map(\.isPersistent) == [persists])
    }

    @Test("Interim responses come before the final one")
    func interim() {
        let reading = Reading.responses(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nLink: a\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
        #expect(
            reading.messages.map { String(decoding: $0.start, as: UTF8.self) }
                == ["100", "103", "200"])
        #expect(reading.whole == 3)
        #expect(reading.messages.last?.fields.count == 1)
    }

    @Test(
        "An interim response that closes the connection does so after the final one",
        arguments: ["HTTP/1.1 103 E\r\nConnection: close\r\n\r\n", "HTTP/1.0 103 E\r\n\r\n"])
    func interimClose(_ interim: String) {
        let final = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        #expect(
            Reading.responses(final + interim + final).messages.map(\.isPersistent)
                == [true, true, false])
        #expect(Reading.responses(interim + final).ending == .closing)
    }

    @Test("A head beyond the limits is refused")
    func limits() {
        let text = ResponseCases.ok("A: b\r\nC: d")
        let bytes = latin1(text)
        var small = ResponseParser(limits: HeadLimits(headBytesMax: bytes.count - 1))
        let tooLarge = small.parse(bytes.span, from: 0, requestIsHead: false)
        #expect(tooLarge == .refused(.headTooLarge(bytesMax: bytes.count - 1)))
        var narrow = ResponseParser(limits: HeadLimits(fieldsMax: 1))
        let tooMany = narrow.parse(bytes.span, from: 0, requestIsHead: false)
        #expect(tooMany == .refused(.tooManyFields(fieldsMax: 1)))
    }

    @Test(
        "At close a body is complete only if its framing allows that",
        arguments: [
            ("HTTP/1.1 200 OK\r\n\r\n", true), ("HTTP/1.1 200 OK\r\n\r\nabc", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", true),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", false),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", false),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true),
        ])
    func close(_ text: String, _ isWhole: Bool) {
        #expect(Reading.responses(text).whole == (isWhole ? 1 : 0))
    }
}
