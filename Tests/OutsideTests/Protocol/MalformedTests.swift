import Harness
import Testing

extension Outside {
    @Suite("Malformed requests are refused and their connection closed")
    struct MalformedTests {
        struct Row: CustomTestStringConvertible, Sendable {
            let name: String
            let bytes: [UInt8]
            let status: Int
            var testDescription: String { name }

            init(_ name: String, _ text: String, _ status: Int = 400) {
                self.init(name, bytes: Array(text.utf8), status)
            }

            init(_ name: String, bytes: [UInt8], _ status: Int = 400) {
                self.name = name
                self.bytes = bytes
                self.status = status
            }
        }

        /// Returns a health request with further lines, each given with its line ending.
        private static func with(_ lines: String) -> String {
            "GET /healthz HTTP/1.1\r\nHost: a\r\n\(lines)\r\n"
        }

        private static let chunked = "Transfer-Encoding: chunked\r\n"

        static let framing: [Row] = [
            Row("length and coding", with("Content-Length: 5\r\n\(chunked)")),
            Row("coding and length", with("\(chunked)Content-Length: 5\r\n")),
            Row("differing lengths", with("Content-Length: 5\r\nContent-Length: 6\r\n")),
            Row("differing lengths in a list", with("Content-Length: 5, 6\r\n")),
            Row("signed length", with("Content-Length: +5\r\n")),
            Row("negative length", with("Content-Length: -5\r\n")),
            Row("hexadecimal length", with("Content-Length: 0x5\r\n")),
            Row("length with a space", with("Content-Length: 5 5\r\n")),
            Row("empty length", with("Content-Length: \r\n")),
            Row("huge length", with("Content-Length: 99999999999999999999\r\n")),
            Row("unknown coding", with("Transfer-Encoding: gzip\r\n"), 501),
            Row("chunked not last", with("Transfer-Encoding: chunked, chunked\r\n")),
            Row("empty coding", with("Transfer-Encoding: \r\n")),
            Row(
                "coding in HTTP/1.0",
                "GET /healthz HTTP/1.0\r\nHost: a\r\n\(chunked)\r\n0\r\n\r\n"),
        ]

        static let lines: [Row] = [
            Row("folded line", with("X: a\r\n b\r\n")),
            Row("folded first line", "GET /healthz HTTP/1.1\r\n Host: a\r\n\r\n"),
            Row("bare LF at a line's end", "GET /healthz HTTP/1.1\nHost: a\r\n\r\n"),
            Row("bare LF at a field's end", "GET /healthz HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"),
            Row("bare LF at the end", "GET /healthz HTTP/1.1\r\nHost: a\r\n\n"),
            Row("bare CR in a value", with("X: a\rb\r\n")),
            Row("CR before CRLF", with("X: a\r\r\n")),
            Row("space before colon", with("X : a\r\n")),
            Row("tab before colon", with("X\t: a\r\n")),
            Row("no colon", with("X\r\n")),
            Row("no name", with(": a\r\n")),
            Row("NUL in a value", with("X: a\0b\r\n")),
            Row("control byte in a value", with("X: a\u{1}b\r\n")),
            Row("DEL in a value", with("X: a\u{7F}b\r\n")),
            Row("control byte in a name", with("X\u{1}: a\r\n")),
            Row("byte above ASCII in a name", with("Xä: a\r\n")),
            Row("separator in a name", with("X(y): a\r\n")),
        ]

        static let requestLines: [Row] = [
            Row("two spaces", "GET  /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
            Row("no version", "GET /healthz\r\nHost: a\r\n\r\n"),
            Row("space behind the version", "GET /healthz HTTP/1.1 \r\nHost: a\r\n\r\n"),
            Row("space before the method", " GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
            Row("tab for space", "GET\t/healthz\tHTTP/1.1\r\nHost: a\r\n\r\n"),
            Row("separator in the method", "G(T /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
            Row("small letters", "GET /healthz http/1.1\r\nHost: a\r\n\r\n"),
            Row("HTTP/2.0", "GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n", 505),
            Row("HTTP/3.0", "GET /healthz HTTP/3.0\r\nHost: a\r\n\r\n", 505),
            Row("relative target", "GET healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
            Row("asterisk for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
            Row("fragment in the target", "GET /healthz#a HTTP/1.1\r\nHost: a\r\n\r\n"),
            Row("NUL in the target", "GET /he\0lthz HTTP/1.1\r\nHost: a\r\n\r\n"),
            Row("byte above ASCII in the target", "GET /hé HTTP/1.1\r\nHost: a\r\n\r\n"),
            Row("two empty lines before", "\r\n\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
            Row("TLS", bytes: [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x0D, 0x0A, 0x0D, 0x0A]),
        ]

        static let hosts: [Row] = [
            Row("no Host", "GET /healthz HTTP/1.1\r\n\r\n"),
            Row("two Hosts", with("Host: a\r\n")),
            Row("two differing Hosts", with("host: b\r\n")),
            Row("Host that is none", "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n"),
            Row("Host with a path", "GET /healthz HTTP/1.1\r\nHost: a/b\r\n\r\n"),
            Row("Host with user", "GET /healthz HTTP/1.1\r\nHost: u@a\r\n\r\n"),
            Row("unknown expectation", with("Expect: magic\r\n"), 417),
        ]

        static let oversize: [Row] = [
            Row("long line", with("X: \(String(repeating: "a", count: 100_000))\r\n"), 431),
            Row("many lines", with((0..<5_000).map { "X\($0): a\r\n" }.joined()), 431),
            Row(
                "long target",
                "GET /\(String(repeating: "a", count: 30_000)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
            Row("endless method", "\(endless) / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
            Row("endless line", "GET /healthz HTTP/1.1\r\nX: \(endless)", 431),
        ]

        private static let endless = String(repeating: "a", count: 100_000)

        @Test("Each malformed request gets its status and closes the connection")
        func table() throws {
            let node = try NodeProcess()
            let rows = Self.framing + Self.lines + Self.requestLines + Self.hosts + Self.oversize
            for row in rows { try check(row, node) }
            #expect(try node.get("/healthz").status == 200)
        }

        private func check(_ row: Row, _ node: NodeProcess) throws {
            let connection = try node.connect()
            try? connection.socket.send(row.bytes)
            let response = connection.readResponse(seconds: 10)
            #expect(response.status == row.status, "\(row.name): \(response)")
            #expect(response["Connection"]?.lowercased() == "close", "\(row.name): \(response)")
            if response.isWhole { expectProblem(response, row.status, row.name) }
            #expect(connection.waitForEnd(seconds: 10) != .timedOut, "\(row.name)")
        }

        @Test("No bytes after a malformed request are read as another request")
        func nothingBehind() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(TestImage.generated(.png, byteCount: 500, seed: 1))
            let good = String(decoding: HTTPConnection.request(stage.target(path)), as: UTF8.self)
            for row in Self.framing + Self.lines {
                let connection = try stage.node.connect()
                try? connection.socket.send(row.bytes + Array(good.utf8))
                _ = connection.readResponse(seconds: 10)
                #expect(connection.waitForEnd(seconds: 10) != .timedOut, "\(row.name)")
            }
            #expect(stage.origin.log.isEmpty)
        }

        @Test(
            "A malformed chunk ends the connection, and no request is read from it",
            arguments: [
                "x\r\n", "5\r\nabc\r\n", "1\r\nabc\r\n", "-1\r\n\r\n", "1\nab\r\n", "1 \r\n",
            ])
        func chunks(_ body: String) throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let path = stage.origin.serve(TestImage.generated(.png, byteCount: 500, seed: 1))
            let good = String(decoding: HTTPConnection.request(stage.target(path)), as: UTF8.self)
            let connection = try stage.node.connect()
            try connection.socket.send(Self.with(Self.chunked) + body + "\r\n\r\n" + good)
            #expect(connection.waitForEnd(seconds: 10) != .timedOut)
            #expect(stage.origin.log.isEmpty)
        }
    }
}
