import Foundation
import Front
import Ground
import HTTPRules
import NIOCore
import Testing

@Suite("Lines of the access log")
struct AccessLineTests {
    /// A response at 2026-11-21T01:02:03.004Z.
    private func line(
        target: String = "/v1/image?url=http%3A%2F%2Fa", referer: [UInt8] = [],
        userAgent: [UInt8] = [], isRequest: Bool = true, trace: TraceContext? = nil,
        on port: LoggedRequest.Port = .data
    ) -> AccessLine {
        let request = LoggedRequest(
            on: port, as: RequestID(process: 1, number: 2), trace: trace,
            method: isRequest ? Array("GET".utf8) : [],
            target: isRequest ? Array(target.utf8) : [], version: isRequest ? "HTTP/1.1" : "-",
            referer: referer, userAgent: userAgent, startedAt: .zero)
        return AccessLine(
            request, remote: "192.0.2.1", milliseconds: 1_795_222_923_004,
            status: isRequest ? 200 : 400, bodyBytes: 12, outcome: "hit", isComplete: true,
            duration: .milliseconds(7))
    }

    private func text(_ line: AccessLine, _ format: AccessLine.Format) -> String {
        var buffer = ByteBuffer()
        #expect(line.append(to: &buffer, format))
        return String(buffer: buffer)
    }

    private static let id = "00000000000000010000000000000002"

    @Test("Combined: Apache httpd's format, with the request id as the identity")
    func combined() {
        let line = line(referer: Array("http://r/".utf8), userAgent: Array("curl/8 (x)".utf8))
        #expect(
            text(line, .combined)
                == "192.0.2.1 \(Self.id) - [21/Nov/2026:01:02:03 +0000] "
                + "\"GET /v1/image?url=http%3A%2F%2Fa HTTP/1.1\" 200 12 \"http://r/\" "
                + "\"curl/8 (x)\"\n")
    }

    @Test("Combined: missing values and an invalid request are hyphens")
    func nothing() {
        #expect(text(line(), .combined).hasSuffix(" 200 12 \"-\" \"-\"\n"))
        #expect(
            text(line(isRequest: false), .combined)
                == "192.0.2.1 \(Self.id) - [21/Nov/2026:01:02:03 +0000] \"-\" 400 12 \"-\" \"-\"\n")
    }

    @Test(
        "Combined: no byte of a client ends a quotation or the line",
        arguments: [
            ([0x22], #"\""#), ([0x5C], #"\\"#), ([0x5C, 0x22], #"\\\""#), ([0x0A], #"\n"#),
            ([0x0D], #"\r"#), ([0x09], #"\t"#), ([0x0B], #"\v"#), ([0x08], #"\b"#),
            ([0x00], #"\x00"#), ([0x1B], #"\x1b"#), ([0x7F], #"\x7f"#),
            ([0xC3, 0xA9], #"\xc3\xa9"#),
            ([0xFF], #"\xff"#), ([0x20], " "), ([0x5B], "["),
        ] as [([UInt8], String)])
    func hostile(bytes: [UInt8], escaped: String) {
        let line = text(line(referer: bytes, userAgent: bytes), .combined)
        #expect(line.hasSuffix(" 12 \"\(escaped)\" \"\(escaped)\"\n"), "\(line)")
    }

    @Test("JSON: one object with the request and its outcome")
    func json() throws {
        let trace = TraceContext(
            parent: Array("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".utf8))
        let text = text(line(userAgent: Array(0...255), trace: trace), .json)
        #expect(text.hasSuffix("}\n") && text.count { $0 == "\n" } == 1)
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8))
        let members = try #require(object as? [String: Any])
        let texts = members.compactMapValues { $0 as? String }
        #expect(texts["time"] == "2026-11-21T01:02:03.004Z" && texts["request_id"] == Self.id)
        #expect(texts["trace_id"] == "0af7651916cd43dd8448eb211c80319c")
        #expect(texts["port"] == "data" && texts["remote"] == "192.0.2.1")
        #expect(texts["method"] == "GET" && texts["outcome"] == "hit")
        #expect(texts["user_agent"]?.unicodeScalars.map(\.value) == Array(0...255))
        #expect(members["status"] as? Int == 200 && members["body_bytes"] as? Int == 12)
        #expect(members["duration_us"] as? Int == 7_000 && members["complete"] as? Bool == true)
    }

    @Test("JSON: without a trace there is no member for it")
    func untraced() {
        #expect(!text(line(), .json).contains("trace"))
    }

    @Test("Queries from other nodes are logged in JSON only")
    func peers() {
        #expect(text(line(on: .peer), .json).contains("\"port\":\"peer\""))
        var buffer = ByteBuffer()
        #expect(!line(on: .peer).append(to: &buffer, .combined))
        #expect(buffer.readableBytes == 0)
    }
}
