import Ground
import HTTPRules
import Testing

@Suite struct ProblemDocumentTests {
    private func json(_ problem: ProblemDocument) -> String {
        var bytes: [UInt8] = []
        problem.append(to: &bytes)
        return bytes.text
    }

    @Test("RFC 9457 §3.1: type, title, status and detail")
    func members() {
        let problem = ProblemDocument(status: 404, name: "gone", title: "Gone", detail: "For good.")
        let expected = """
            {"type":"urn:nuthatch:problem:gone","title":"Gone","status":404,"detail":"For good."}

            """
        #expect(json(problem) == expected)
        let short = ProblemDocument(status: 503, name: "busy", title: "Busy")
        #expect(
            json(short)
                == "{\"type\":\"urn:nuthatch:problem:busy\",\"title\":\"Busy\",\"status\":503}\n")
        #expect(ProblemDocument.contentType.description == "application/problem+json")
    }

    @Test(
        "RFC 8259 §7: the document is valid JSON, whatever its texts contain",
        arguments: [
            ("a\"b", "a\\\"b"), ("a\\b", "a\\\\b"),
            ("\n\r\t\u{0}\u{1F}\u{7F}", "\\u000a\\u000d\\u0009\\u0000\\u001f\\u007f"),
            ("</script>", "</script>"), ("", ""),
        ])
    func escaped(text: String, expected: String) {
        let problem = ProblemDocument(status: 400, name: "x", title: text)
        let tail = ",\"status\":400}\n"
        #expect(json(problem).hasSuffix("\"title\":\"\(expected)\"" + tail))
        var bytes: [UInt8] = []
        ProblemDocument(status: 400, name: "x", title: "é🐦").append(to: &bytes)
        #expect(String(decoding: bytes, as: UTF8.self).contains("\"é🐦\""))
    }

    private static let refusals: [(URLRefusal, String, String)] = [
        (.empty, "url-missing", "empty"), (.tooLong(bytesMax: 77), "url-too-long", "77 bytes"),
        (.valueEscape(offset: 3), "url-escape", "byte 3"),
        (.escape(offset: 4), "url-escape", "byte 4"),
        (.control(offset: 5, byte: 10), "url-control-byte", "control byte 10 at byte 5"),
        (.scheme, "url-scheme", "http:// or https://"),
        (.userInfo(offset: 7), "url-user-info", "byte 7"),
        (.hostEmpty(offset: 7), "url-host", "no host at byte 7"),
        (.hostNotASCII(offset: 8), "url-host", "punycode"),
        (.hostByte(offset: 9, byte: 32), "url-host", "byte 32 at byte 9"),
        (.hostLabel(offset: 9), "url-host", "63"), (.hostTooLong(offset: 9), "url-host", "253"),
        (.hostNumber(offset: 9), "url-host", "four decimal numbers"),
        (.ipv6(offset: 7), "url-host", "IPv6"),
        (.ipv6Zone(offset: 12), "url-host", "zone at byte 12"),
        (.port(offset: 12), "url-port", "1 to 65535"),
    ]

    @Test(
        "A URL error says what was wrong, where, and what is allowed", arguments: refusals
    )
    func urls(refusal: URLRefusal, name: String, part: String) {
        let problem = ProblemDocument(refusal)
        #expect(problem.status == (name == "url-too-long" ? 414 : 400) && problem.name == name)
        #expect(problem.detail.contains(part) && problem.detail.hasSuffix("."))
    }

    @Test("A target error says so too, and names percent-encoding for an unescaped URL")
    func targets() {
        let bytes = "/v1/image?url=http://a/?b&c\u{1}\"=d".bytes
        func problem(_ refusal: ImageTargetRefusal) -> ProblemDocument {
            ProblemDocument(refusal, in: bytes.span)
        }
        #expect(problem(.urlMissing).name == "url-missing")
        #expect(problem(.urlEmpty(offset: 3)).detail.contains("percent-encoded"))
        #expect(problem(.urlDuplicated(offset: 3)).name == "url-doubled")
        let unknown = problem(.parameterUnknown(name: Extent(start: 26, count: 3)))
        #expect(unknown.name == "parameter-unknown")
        #expect(unknown.detail.contains("\"c?\"\"") && unknown.detail.contains("%26"))
        #expect(unknown.status == 400)
        let long = [UInt8](repeating: UInt8(ascii: "a"), count: 100)
        let short = ProblemDocument(
            .parameterUnknown(name: Extent(start: 0, count: 100)), in: long.span)
        #expect(short.detail.contains(String(repeating: "a", count: 40) + "…"))
        #expect(!short.detail.contains(String(repeating: "a", count: 41)))
    }
}
