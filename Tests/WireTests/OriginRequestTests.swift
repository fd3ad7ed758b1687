import Ground
import HTTPRules
import Testing
import Wire

@Suite struct OriginRequestTests {
    private func request(
        _ target: String = "/a?b", _ host: String = "h:81"
    ) throws(OriginRequestError) -> OriginRequest {
        try OriginRequest(method: .get, target: latin1(target).span, host: latin1(host).span)
    }

    @Test("a request is written line by line")
    func writes() throws {
        var request = try request()
        try request.add(.acceptEncoding, text: "br")
        try request.add(.ifNoneMatch, latin1("\"\u{E9}\"").span)
        try request.add(name: latin1("x-Y").span, latin1("").span)
        #expect(
            request.finish()
                == latin1(
                    "GET /a?b HTTP/1.1\r\nHost: h:81\r\nAccept-Encoding: br\r\n"
                        + "If-None-Match: \"\u{E9}\"\r\nx-Y: \r\n\r\n"))
    }

    @Test("what is written is read back the same")
    func readsBack() throws {
        var request = try request()
        try request.add(.userAgent, text: "nuthatch")
        let bytes = request.finish()
        let reading = Reading.requests(bytes, stops: [bytes.count])
        #expect(reading.whole == 1)
        #expect(reading.messages.first?.host == latin1("h:81"))
        #expect(
            reading.messages.first?.fields.last
                == ReadField(name: latin1("User-Agent"), value: latin1("nuthatch")))
    }

    @Test(
        "a target that is no path is refused",
        arguments: ["", "a", "*", "/a b", "/a\r\nX: y", "/\n", "/\0", "/a#b", "/\u{E9}", "/\u{7F}"])
    func target(_ target: String) {
        #expect(throws: OriginRequestError.invalidTarget) { try request(target) }
    }

    @Test(
        "a host that is none is refused", arguments: ["", "a\r\nX: y", "a b", "u@a", "a:b", "a/b"])
    func host(_ host: String) {
        #expect(throws: OriginRequestError.invalidHost) { try request("/", host) }
    }

    @Test(
        "a value cannot end its line",
        arguments: ["a\r\nX: y", "a\nX: y", "a\r", "\0", "\u{7F}", " a", "a ", "\ta"])
    func value(_ value: String) throws {
        var request = try request()
        #expect(throws: OriginRequestError.invalidValue(.range)) {
            try request.add(.range, latin1(value).span)
        }
        #expect(throws: OriginRequestError.invalidValue(.other)) {
            try request.add(name: latin1("X-A").span, latin1(value).span)
        }
        #expect(request.finish() == latin1("GET /a?b HTTP/1.1\r\nHost: h:81\r\n\r\n"))
    }

    @Test("a name that is no token is refused", arguments: ["", "a b", "a:", "a\r\nb", "\u{E9}"])
    func name(_ name: String) throws {
        var request = try request()
        #expect(throws: OriginRequestError.invalidName) {
            try request.add(name: latin1(name).span, latin1("x").span)
        }
    }

    @Test(
        "fields that route or frame the message are not the caller's",
        arguments: [
            FieldName.host, .connection, .contentLength, .transferEncoding, .te, .trailer, .upgrade,
            .keepAlive, .expect,
        ])
    func reserved(_ name: FieldName) throws {
        var request = try request()
        #expect(throws: OriginRequestError.reservedField(name)) {
            try request.add(name, text: "x")
        }
        let spelt = latin1(name.text.description.uppercased())
        #expect(throws: OriginRequestError.reservedField(name)) {
            try request.add(name: spelt.span, latin1("x").span)
        }
    }
}
