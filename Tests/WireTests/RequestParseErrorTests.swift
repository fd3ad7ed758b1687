import Testing
import Wire

@Suite struct RequestParseErrorTests {
    @Test("A malformed request gets its error and status", arguments: RequestCases.all)
    func refuses(_ sample: RequestCase) {
        let bytes = latin1(sample.text)
        let reading = Reading.requests(bytes, stops: [bytes.count])
        #expect(reading.ending == .requestRefused(sample.refusal))
        #expect(reading.messages.isEmpty)
        #expect(sample.refusal.status == sample.status)
        #expect(sample.refusal.message.hasSuffix("."))
    }

    @Test("The error for a fragment in the target explains how to escape it")
    func fragment() {
        let text = "GET /v1/image?url=http://a/#top HTTP/1.1\r\nHost: a\r\n\r\n"
        let refusal = RequestParseError.targetByte(UInt8(ascii: "#"), at: 27)
        #expect(Reading.requests(text).ending == .requestRefused(refusal))
        #expect(refusal.message.contains("%23"))
        #expect(!RequestParseError.targetByte(7, at: 27).message.contains("%23"))
    }

    @Test("Bytes after a refused request are not read", arguments: RequestCases.all)
    func stops(_ sample: RequestCase) {
        let next = latin1("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        let bytes = latin1(sample.text) + next
        #expect(Reading.requests(bytes, stops: [bytes.count]).messages.isEmpty)
    }

    @Test("A head at the limit is accepted, one byte more is refused with 431")
    func headLimit() {
        let text = RequestCases.get("A: " + String(repeating: "x", count: 100))
        let exact = HeadLimits(headBytesMax: text.utf8.count)
        #expect(Reading.requests(text, limits: exact).whole == 1)
        let less = HeadLimits(headBytesMax: text.utf8.count - 1)
        let refusal = RequestParseError.headTooLarge(bytesMax: less.headBytesMax)
        #expect(Reading.requests(text, limits: less).ending == .requestRefused(refusal))
        #expect(refusal.status == 431)
    }

    @Test("A target at the limit is accepted, one byte more is refused with 414")
    func targetLimit() {
        let limits = HeadLimits(targetBytesMax: 20)
        let refusal = RequestParseError.targetTooLong(bytesMax: 20)
        func request(_ count: Int) -> String {
            "GET /" + String(repeating: "x", count: count - 1) + " HTTP/1.1\r\nHost: a\r\n\r\n"
        }
        #expect(Reading.requests(request(20), limits: limits).whole == 1)
        for count in [21, 60, 84, 85, 1000] {
            let reading = Reading.requests(request(count), limits: limits)
            #expect(reading.ending == .requestRefused(refusal))
        }
        #expect(refusal.status == 414)
    }

    @Test("An endless target is refused with 414 before the limit on the head")
    func endlessTarget() {
        let limits = HeadLimits(headBytesMax: 10_000, targetBytesMax: 100)
        let text = "GET /" + String(repeating: "x", count: 500)
        let refusal = RequestParseError.targetTooLong(bytesMax: 100)
        #expect(Reading.requests(text, limits: limits).ending == .requestRefused(refusal))
    }

    @Test("RFC 9112 §3: an endless method is refused with 501, whatever follows")
    func endlessMethod() {
        let limits = HeadLimits(headBytesMax: 10_000, targetBytesMax: 100)
        let refusal = RequestParseError.methodTooLong(bytesMax: 164)
        let method = String(repeating: "M", count: 164)
        for text in [method, method + " / HTTP/1.1\r\nHost: a\r\n\r\n", method + method] {
            #expect(Reading.requests(text, limits: limits).ending == .requestRefused(refusal))
        }
        #expect(refusal.status == 501)
    }

    @Test("Fields up to the limit are accepted, one more is refused with 431")
    func fieldLimit() {
        let limits = HeadLimits(fieldsMax: 3)
        #expect(Reading.requests(RequestCases.get("A: b\r\nC: d"), limits: limits).whole == 1)
        let refusal = RequestParseError.tooManyFields(fieldsMax: 3)
        let reading = Reading.requests(RequestCases.get("A: b\r\nC: d\r\nE: f"), limits: limits)
        #expect(reading.ending == .requestRefused(refusal))
        #expect(refusal.status == 431)
    }
}
