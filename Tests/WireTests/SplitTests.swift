import Ground
import HTTPRules
import Testing
import Wire

@Suite struct SplitTests {
    static let requests: [String] =
        RequestCases.all.map(\.text) + [
            "GET /v1/image?url=http%3A%2F%2Fa%2Fb.jpg HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
            "\r\nGET / HTTP/1.0\r\nX-1: \t\u{E9}\t\r\nConnection: keep-alive\r\n\r\n"
                + "GET / HTTP/1.0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                + "GET / HTTP/1.1\r\nHost: b\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "a;x=\"y\\\"\";z\r\n0123456789\r\n1\r\n!\r\n0\r\nT: u\r\n\r\n"
                + "GET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nrest",
        ]

    static let responses: [String] =
        ResponseCases.all.map(\.text) + [
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 304 N\r\nETag: \"x\"\r\n\r\n",
            "HTTP/1.1 103 Early\r\nLink: <a>\r\n\r\n"
                + "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "2\r\nab\r\n0\r\n\r\n",
            "HTTP/1.0 200 OK\r\nX: \u{E9}\r\n\r\nto the end",
        ]

    @Test("A request split anywhere is read like the whole", arguments: requests)
    func cutRequest(_ text: String) {
        let bytes = latin1(text)
        let whole = Reading.requests(bytes, stops: [bytes.count])
        for cut in 0...bytes.count {
            #expect(Reading.requests(bytes, stops: [cut, bytes.count]) == whole, "cut at \(cut)")
        }
    }

    @Test("A response split anywhere is read like the whole", arguments: responses)
    func cutResponse(_ text: String) {
        let bytes = latin1(text)
        let whole = Reading.responses(bytes, stops: [bytes.count])
        for cut in 0...bytes.count {
            #expect(Reading.responses(bytes, stops: [cut, bytes.count]) == whole, "cut at \(cut)")
        }
    }

    @Test(
        "A request that arrives byte by byte is read like its prefixes",
        arguments: requests)
    func dripRequest(_ text: String) {
        let bytes = latin1(text)
        for count in 0...bytes.count {
            let dripped = Reading.requests(bytes, stops: Array(0...count))
            #expect(dripped == Reading.requests(bytes, stops: [count]), "\(count) bytes")
        }
    }

    @Test(
        "A response that arrives byte by byte is read like its prefixes",
        arguments: responses)
    func dripResponse(_ text: String) {
        let bytes = latin1(text)
        for count in 0...bytes.count {
            let dripped = Reading.responses(bytes, stops: Array(0...count))
            #expect(dripped == Reading.responses(bytes, stops: [count]), "\(count) bytes")
        }
    }

    @Test("Limits hold however a head is split")
    func limits() {
        let limits = HeadLimits(headBytesMax: 90, targetBytesMax: 20, fieldsMax: 4)
        let samples = [
            "GET /aaaaaaaaaaaaaaaaaaa HTTP/1.1\r\nHost: a\r\nA: b\r\nC: d\r\n\r\n",
            "GET /aaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /\(String(repeating: "a", count: 200)) HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nA: \(String(repeating: "a", count: 100))\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nA: \(String(repeating: "a", count: 60)) \0\r\n\r\n",
        ]
        for bytes in samples.map(latin1) {
            for count in 0...bytes.count {
                let dripped = Reading.requests(bytes, stops: Array(0...count), limits: limits)
                let fresh = Reading.requests(bytes, stops: [count], limits: limits)
                #expect(dripped == fresh, "\(count) bytes")
            }
        }
    }

    @Test(
        "A request line that is too long is refused however it is split",
        arguments: [
            String(repeating: "A", count: 100) + " / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1" + String(repeating: " ", count: 100) + "\r\nHost: a\r\n\r\n",
        ])
    func longRequestLine(_ text: String) {
        let limits = HeadLimits(headBytesMax: 400, targetBytesMax: 20)
        let bytes = latin1(text)
        for count in 0...bytes.count {
            let dripped = Reading.requests(bytes, stops: Array(0...count), limits: limits)
            let fresh = Reading.requests(bytes, stops: [count], limits: limits)
            #expect(dripped == fresh, "\(count) bytes")
        }
        let reading = Reading.requests(bytes, stops: [bytes.count], limits: limits)
        let refusal: RequestParseError =
            text.hasPrefix("A") ? .methodTooLong(bytesMax: 84) : .targetTooLong(bytesMax: 20)
        #expect(reading.ending == .requestRefused(refusal))
    }

    @Test("A caller may move the bytes of an incomplete head")
    func moved() {
        let request = latin1("GET /a HTTP/1.1\r\nHost: h\r\nAccept: b\r\n\r\n")
        for cut in 0..<request.count {
            var parser = RequestParser()
            let before = latin1("12345") + request[..<cut]
            let first = parser.parse(before.span, from: 5)
            #expect(first == .incomplete)
            let second = parser.parse(request.span, from: 0)
            #expect(second == .head(end: request.count))
            #expect(request.span.copy(parser.target.range) == latin1("/a"))
            #expect(request.span.copy(parser.host.range) == latin1("h"))
            #expect(parser.fields.count == 2)
        }
    }

    @Test("An abandoned head leaves nothing behind")
    func reset() {
        var parser = RequestParser()
        let half = latin1("GET /a HTTP/1.1\r\nHost: other\r\nA")
        _ = parser.parse(half.span, from: 0)
        parser.reset()
        let request = latin1("GET /b HTTP/1.1\r\nHost: h\r\n\r\nGET /c HTTP/1.1\r\nHost: i\r\n\r\n")
        let result = parser.parse(request.span, from: 0)
        #expect(result == .head(end: 28))
        #expect(request.span.copy(parser.host.range) == latin1("h"))
    }

    @Test("A head of the maximum size may arrive byte by byte")
    func largeDrip() {
        var parser = RequestParser()
        let start = latin1("GET / HTTP/1.1\r\nHost: a\r\nA: ")
        let bytes =
            start + [UInt8](repeating: 0x61, count: 32 * 1024 - start.count - 4)
            + latin1("\r\n\r\n")
        for count in 0..<bytes.count {
            guard parser.parse(bytes.span.extracting(0..<count), from: 0) == .incomplete else {
                Issue.record("decided after \(count) bytes")
                return
            }
        }
        let result = parser.parse(bytes.span, from: 0)
        #expect(result == .head(end: 32 * 1024))
    }
}
