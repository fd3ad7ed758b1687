import Ground
import HTTPRules
import Testing
import Wire

@Suite struct RequestParserTests {
    @Test("A plain GET is parsed in place")
    func plain() {
        let bytes = latin1(
            "GET /v1/image?url=a HTTP/1.1\r\nHost: h:80\r\nX:\t a \u{FF}b\t \r\n\r\nrest")
        var parser = RequestParser()
        let result = parser.parse(bytes.span, from: 0)
        #expect(result == .head(end: bytes.count - 4))
        #expect(parser.method == .get)
        #expect(bytes.span.copy(parser.methodName.range) == latin1("GET"))
        #expect(bytes.span.copy(parser.target.range) == latin1("/v1/image?url=a"))
        #expect(parser.path == parser.target)
        #expect(parser.form == .origin)
        #expect(bytes.span.copy(parser.host.range) == latin1("h:80"))
        #expect(parser.isHTTP10 == false)
        #expect(parser.framing == BodyFraming.none)
        #expect(parser.isPersistent == true)
        #expect(parser.expectsContinue == false)
        #expect(parser.fields.count == 2)
        #expect(parser.fields[0].id == .host)
        #expect(parser.fields[1].id == .other)
        #expect(bytes.span.copy(parser.fields[1].value.range) == latin1("a \u{FF}b"))
        #expect(parser.fields.present.contains(.host))
        #expect(!parser.fields.present.contains(.connection))
        #expect(parser.fields.first(.host) == parser.host)
        #expect(parser.fields.first(.accept) == nil)
    }

    @Test("Offsets are relative to the span, wherever the head begins")
    func offset() {
        let request = latin1("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
        let bytes = latin1("12345") + request
        var parser = RequestParser()
        let result = parser.parse(bytes.span, from: 5)
        #expect(result == .head(end: bytes.count))
        #expect(bytes.span.copy(parser.target.range) == latin1("/a"))
        #expect(bytes.span.copy(parser.host.range) == latin1("h"))
    }

    @Test("One empty line before a request is skipped")
    func leadingLine() {
        let reading = Reading.requests("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(reading.whole == 1)
        #expect(reading.ending == .waiting)
    }

    @Test("Pipelined requests with bodies are separated")
    func pipelined() {
        let reading = Reading.requests(
            """
            POST /1 HTTP/1.1\r
            Host: a\r
            Content-Length: 5\r
            \r
            hello\
            POST /2 HTTP/1.1\r
            Host: a\r
            Transfer-Encoding: Chunked\r
            \r
            3;x=y\r
            abc\r
            0\r
            T: u\r
            \r
            GET /3 HTTP/1.1\r
            Host: a\r
            \r\n
            """)
        #expect(reading.ending == .waiting)
        #expect(
            reading.messages.map { String(decoding: $0.start, as: UTF8.self) }
                == ["POST /1", "POST /2", "GET /3"])
        #expect(
            reading.messages.map { String(decoding: $0.body, as: UTF8.self) }
                == ["hello", "abc", ""])
    }

    @Test(
        "Each known method is recognised, others are tokens",
        arguments: RequestMethod.allCases)
    func methods(_ method: RequestMethod) {
        let name = method == .other ? "get" : method.text.description
        let target = method == .connect ? "a:80" : "/"
        let bytes = latin1("\(name) \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
        var parser = RequestParser()
        let result = parser.parse(bytes.span, from: 0)
        #expect(result == .head(end: bytes.count))
        #expect(parser.method == method)
        #expect(bytes.span.copy(parser.methodName.range) == latin1(name))
    }

    @Test(
        "A token that begins like a method is another method",
        arguments: ["GETT", "GE", "HEADX", "PURGES", "OPTIONSX", "CONNECTED", "get", "M-SEARCH"])
    func otherMethods(_ name: String) {
        let bytes = latin1("\(name) / HTTP/1.1\r\nHost: a\r\n\r\n")
        var parser = RequestParser()
        let result = parser.parse(bytes.span, from: 0)
        #expect(result == .head(end: bytes.count))
        #expect(parser.method == .other)
    }

    @Test(
        "The authority of an absolute URL overrides Host, and its rest is the path",
        arguments: [
            ("http://b.example:81/x?y", "b.example:81", "/x?y"),
            ("HTTPS://B.example", "B.example", ""),
            ("http://b?q", "b", "?q"),
        ])
    func absoluteForm(_ target: String, _ host: String, _ path: String) {
        let bytes = latin1("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
        var parser = RequestParser()
        let result = parser.parse(bytes.span, from: 0)
        #expect(result == .head(end: bytes.count))
        #expect(parser.form == .absolute)
        #expect(bytes.span.copy(parser.host.range) == latin1(host))
        #expect(bytes.span.copy(parser.path.range) == latin1(path))
    }

    @Test("The asterisk and authority forms are accepted with their methods")
    func otherForms() {
        var parser = RequestParser()
        let options = latin1("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
        let first = parser.parse(options.span, from: 0)
        #expect(first == .head(end: options.count))
        #expect(parser.form == .asterisk)
        #expect(parser.path.isEmpty)
        let connect = latin1("CONNECT b:443 HTTP/1.1\r\nHost: a\r\n\r\n")
        let second = parser.parse(connect.span, from: 0)
        #expect(second == .head(end: connect.count))
        #expect(parser.form == .authority)
        #expect(connect.span.copy(parser.host.range) == latin1("b:443"))
    }

    @Test(
        "Valid hosts are kept as they are",
        arguments: ["a", "a:", "127.0.0.1:8080", "[::1]", "[2001:db8::1]:443", "a_b~c", "%41b"])
    func hosts(_ host: String) {
        let reading = Reading.requests(RequestCases.host(host))
        #expect(reading.messages.first?.host == latin1(host))
    }

    @Test(
        "Version and Connection determine whether the connection persists",
        arguments: [
            ("1.1", "", true), ("1.1", "Connection: close\r\n", false),
            ("1.1", "Connection: Close\r\n", false), ("1.1", "Connection: x, close\r\n", false),
            ("1.1", "Connection: x\r\nConnection: close\r\n", false),
            ("1.1", "Connection: closed\r\n", true), ("1.1", "Connection: ,,\r\n", true),
            ("1.0", "", false), ("1.0", "Connection: keep-alive\r\n", true),
            ("1.0", "Connection: x , Keep-Alive\r\n", true),
            ("1.0", "Connection: keep-alive, close\r\n", false),
        ])
    func persistence(_ version: String, _ field: String, _ persists: Bool) {
        let reading = Reading.requests("GET / HTTP/\(version)\r\nHost: a\r\n\(field)\r\n")
        #expect(reading.messages.map(\.isPersistent) == [persists])
    }

    @Test("Only HTTP/1.1 has 100-continue (RFC 9110 §10.1.1)")
    func expectation() {
        for (version, expects) in [("1.1", true), ("1.0", false)] {
            let reading = Reading.requests(
                "PUT / HTTP/\(version)\r\nHost: a\r\nExpect: 100-Continue\r\n"
                    + "Content-Length: 1\r\n\r\n"
            )
            #expect(reading.messages.map(\.expectsContinue) == [expects])
        }
    }

    @Test("Nothing of a head is left in the next one")
    func reuse() {
        let first = latin1(
            "PUT http://b/ HTTP/1.0\r\nHost: a\r\nConnection: keep-alive, close\r\n"
                + "Expect: 100-continue\r\nContent-Length: 7\r\n\r\n")
        let second = latin1("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        var parser = RequestParser()
        _ = parser.parse(first.span, from: 0)
        _ = parser.parse(second.span, from: 0)
        #expect(parser.method == .get)
        #expect(parser.framing == BodyFraming.none)
        #expect(parser.isPersistent == true)
        #expect(parser.fields.count == 1)
        #expect(!parser.fields.present.contains(.expect))
        #expect(second.span.copy(parser.host.range) == latin1("a"))
    }

    @Test("Lengths up to 2^64 - 1 are accepted")
    func lengths() {
        for (text, length) in [("0", 0), ("007", 7), ("18446744073709551615", UInt64.max)] {
            let reading = Reading.requests(RequestCases.get("Content-Length: \(text)"))
            #expect(reading.messages.map(\.framing) == [.length(length)])
        }
    }
}
