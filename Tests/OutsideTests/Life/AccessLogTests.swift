import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The access log has one line per request when enabled")
    struct AccessLogTests {
        private let image = TestImage.generated(.jpeg, byteCount: 12_345, seed: 170)

        /// Sends a miss, a hit, a HEAD, a 404 and a malformed request, and returns their log lines.
        private func lines(_ format: String) throws -> [String] {
            let stage = try Stage("--access-log", format, "--loops", "1")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            let fields = ["User-Agent: te\"st/1", "Referer: http://r/"]
            for method in ["GET", "GET", "HEAD"] {
                _ = try stage.get(path, method: method, fields: fields)
            }
            _ = try stage.node.get("/missing", fields: fields)
            var lines: [String] = []
            let isThere = Deadline.seconds(20).waitUntil {
                lines = stage.node.output.split(separator: "\n").map(String.init).filter {
                    $0.contains("/v1/image?url=") || $0.contains("/missing")
                }
                return lines.count >= 4
            }
            #expect(isThere == (format != "off"))
            return lines
        }

        @Test("The combined format is what its readers expect")
        func combined() throws {
            let lines = try lines("combined")
            #expect(lines.count == 4)
            let time = #"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\]"#
            let request = #""([A-Z]+ [^ "]+ HTTP/1\.1)""#
            let id = "[0-9a-f]{32}"
            let pattern = try Regex<(Substring, Substring, Substring, Substring, Substring)>(
                #"^127\.0\.0\.1 \#(id) - \#(time) \#(request) (\d{3}) (\d+|-) "http://r/" "(.*)"$"#)
            let matches = try lines.map { try #require($0.firstMatch(of: pattern), "\($0)") }
            #expect(matches.map(\.2) == ["200", "200", "200", "404"])
            #expect(matches.prefix(2).allSatisfy { $0.3 == "12345" })
            #expect(matches[2].3 == "0" || matches[2].3 == "-")
            #expect(matches[2].1.hasPrefix("HEAD /v1/image?url=http%3A%2F%2F127.0.0.1"))
            #expect(matches.allSatisfy { !$0.4.replacing("\\\"", with: "").contains("\"") })
        }

        @Test("The JSON format has one object per line with the request and its result")
        func json() throws {
            let lines = try lines("json")
            #expect(lines.count == 4)
            for (index, (line, status)) in zip(lines, [200, 200, 200, 404]).enumerated() {
                let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
                let members = try #require(object as? [String: Any])
                let texts = members.values.compactMap { $0 as? String }
                let numbers = members.values.compactMap { $0 as? Int }
                #expect(numbers.contains(status), "\(line)")
                let outcomes = ["miss", "hit", "hit", "-"]
                #expect(texts.contains(outcomes[index]), "\(line)")
                #expect(texts.contains("GET") || texts.contains("HEAD"), "\(line)")
                #expect(texts.contains { $0.hasPrefix("/") }, "\(line)")
                #expect(texts.contains("te\"st/1"), "\(line)")
                #expect(texts.contains { $0.hasPrefix("127.0.0.1") }, "\(line)")
            }
            #expect(lines.prefix(2).allSatisfy { $0.contains("12345") })
        }

        @Test("Off writes no line")
        func off() throws {
            let stage = try Stage("--access-log", "off")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            #expect(try stage.get(path).matches(image))
            #expect(stage.node.stop() == 0)
            #expect(!stage.node.output.contains("/v1/image"))
        }

        @Test("After a graceful stop every one of ten thousand pipelined hits has a line")
        func everyLine() throws {
            let stage = try Stage("--access-log", "combined")
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(image, fields: [lasting])
            let connection = try stage.node.connect()
            let batch = (0..<100).flatMap { _ in HTTPConnection.request(stage.target(path)) }
            for _ in 0..<100 {
                try connection.socket.send(batch)
                for _ in 0..<100 {
                    #expect(connection.readResponse(expecting: image).matches(image))
                }
            }
            #expect(stage.node.stop() == 0)
            let count = stage.node.output.split(separator: "\n").count {
                $0.contains("/v1/image?url=")
            }
            #expect(count == 10_000)
        }
    }
}
