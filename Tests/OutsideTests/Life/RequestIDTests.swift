import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Every response and its log lines have the id of their request")
    struct RequestIDTests {
        private let image = TestImage.generated(.jpeg, byteCount: 12_345, seed: 860)

        private func id(
            _ response: Response, _ status: Int, _ note: String,
            at location: SourceLocation = #_sourceLocation
        ) -> String {
            let ids = response.fields.all("X-Request-Id")
            #expect(response.status == status, "\(note) \(response)", sourceLocation: location)
            #expect(ids.count == 1, "\(note) \(response)", sourceLocation: location)
            return ids.first ?? ""
        }

        /// Unreadable requests and the statuses of their responses.
        private static let unreadable = [
            ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
            ("GET /\(String(repeating: "a", count: 40_000)) HTTP/1.1\r\n\r\n", 414),
            ("GET / HTTP/1.1\r\nX: \(String(repeating: "a", count: 40_000))\r\n\r\n", 431),
            ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
            ("GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\nX : a\r\n\r\n", 400),
        ]

        /// Sends requests that produce every kind of response, and returns the ids in order.
        private func everyResponse(_ stage: Stage) throws -> [String] {
            let path = stage.origin.serve(image, fields: [lasting], etag: "\"v\"")
            let target = stage.target(path)
            stage.origin.on("/text", .text("text"))
            let node = stage.node
            let requests: [(String, String, [String], Int)] = [
                ("GET", target, [], 200), ("GET", target, [], 200), ("HEAD", target, [], 200),
                ("GET", target, ["If-None-Match: \"v\""], 304),
                ("GET", target, ["Range: bytes=0-9"], 206),
                ("GET", target, ["Range: bytes=0-9,20-29"], 206),
                ("GET", target, ["Range: bytes=99999-"], 416),
                ("GET", target, ["If-Match: \"w\""], 412),
                ("GET", "/missing", [], 404), ("POST", target, [], 405),
                ("GET", "/v1/image?url=nothing", [], 400), ("GET", "/v1/image", [], 400),
                ("GET", "/v1/image?url=http://10.0.0.1/", [], 403),
                ("GET", stage.target("/text"), [], 502),
                ("GET", "/healthz", [], 200), ("GET", "/readyz", [], 200),
            ]
            var ids = try requests.map { method, target, fields, status in
                let response = try node.get(target, method: method, fields: fields)
                return id(response, status, "\(method) \(target) \(fields)")
            }
            ids += try Self.unreadable.map { text, status in
                let connection = try node.connect()
                try? connection.socket.send(Array(text.utf8))
                return id(connection.readResponse(), status, "\(text.prefix(60))")
            }
            let admin: [(String, String, Int)] = [
                ("GET", "/", 200), ("GET", "/healthz", 200), ("GET", "/metrics", 200),
                ("GET", "/admin/v1/status", 200), ("GET", "/admin/v1/nothing", 404),
                ("DELETE", "/admin/v1/status", 405), ("GET", "/admin/v1/hot?limit=x", 400),
                ("GET", "/admin/v1/purges?id=none", 404),
            ]
            ids += try admin.map { method, target, status in
                id(try node.connectAdmin().get(target, method: method), status, target)
            }
            let events = try node.connectAdmin()
            try events.socket.send(HTTPConnection.request("/admin/v1/events"))
            ids.append(id(events.readResponse(bodyBytesMax: 1), 200, "events"))
            events.socket.close()
            let purge = #"{"targets": [{"everything": true}]}"#
            ids.append(
                id(try node.connectAdmin().post(purge, to: "/admin/v1/purges"), 200, "purge"))
            return ids
        }

        @Test("Every kind of response has one unique id, which its access log line has too")
        func everywhere() throws {
            let stage = try Stage(
                "--access-log", "json", "--loops", "2", "--request-head-limit", "16KiB")
            let ids = try everyResponse(stage)
            #expect(Set(ids).count == ids.count)
            #expect(ids.allSatisfy { $0.wholeMatch(of: /[0-9a-f]{32}/) != nil }, "\(ids)")
            // The id begins with an identifier of this run of the node.
            #expect(Set(ids.map { $0.prefix(16) }).count == 1)
            expectSoon(20, "\(ids) in \(stage.node.standardOutput)") {
                let lines = stage.node.standardOutput.split(separator: "\n")
                return ids.allSatisfy { id in
                    lines.count { $0.contains("\"request_id\":\"\(id)\"") } == 1
                }
            }
        }

        @Test("A request with a refused body keeps its client's id, and its log line describes it")
        func refusedBodies() throws {
            let stage = try Stage(
                "--access-log", "json", "--body-timeout", "1s", "--request-body-limit", "64KiB")
            let chunk = "20000\r\n" + String(repeating: "a", count: 0x20000)
            let tails = [
                ("big", "Content-Length: 99999999999\r\n\r\n", 413),
                ("odd", "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
                ("long", "Transfer-Encoding: chunked\r\n\r\n\(chunk)\r\n", 413),
                ("slow", "Content-Length: 10\r\n\r\n123", 408),
            ]
            for (name, tail, status) in tails {
                let connection = try stage.node.connect()
                let head = "POST /\(name) HTTP/1.1\r\nHost: a\r\nX-Request-Id: \(name)\r\n"
                try connection.socket.send(Array((head + tail).utf8))
                #expect(id(connection.readResponse(), status, name) == name)
            }
            let body = String(repeating: "a", count: 100_000)
            // curl drops the response of a stream that is reset while curl writes. The second
            // request has no declared length.
            for (name, more) in [("two", []), ("three", ["-H", "Content-Length:"])] {
                _ = try? Curl().run(
                    ["--http2-prior-knowledge", "-H", "X-Request-Id: \(name)", "--data", body]
                        + more + ["http://127.0.0.1:\(stage.node.port)/\(name)"])
            }
            expectSoon(20, "\(stage.node.standardOutput)") {
                let lines = stage.node.standardOutput.split(separator: "\n")
                return (tails.map { ($0.0, $0.2) } + [("two", 413), ("three", 413)]).allSatisfy {
                    name, status in
                    let own = lines.filter { $0.contains("\"request_id\":\"\(name)\"") }
                    return own.count == 1
                        && own[0].contains("\"method\":\"POST\",\"target\":\"/\(name)\"")
                        && own[0].contains("\"status\":\(status),")
                }
            }
        }

        @Test("A refused request has its own id, not that of the preceding request")
        func refusedAfter() throws {
            let stage = try Stage.shared()
            for (method, hasBody) in [("POST", true), ("HEAD", false)] {
                let before = method == "HEAD" ? "GET" : "HEAD"
                let connection = try stage.node.connect()
                let first = try connection.get("/none", method: before)
                #expect(first.status == 404)
                let text =
                    "\(method) /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
                try connection.socket.send(Array(text.utf8))
                let refused = connection.readResponse(method: method)
                #expect(refused.status == 400, "\(refused)")
                #expect((refused.bodyByteCount > 0) == hasBody, "\(refused)")
                let rest = connection.readResponse()
                #expect(rest.status == 0 && rest.ending == .truncated, "\(rest)")
            }
        }

        @Test("The same holds over HTTP/2, and from a node without free connections")
        func elsewhere() throws {
            let stage = try Stage("--connections-limit", "5")
            let path = stage.origin.serve(image, fields: [lasting])
            let base = "http://127.0.0.1:\(stage.node.port)"
            var ids: [String] = []
            for target in [stage.target(path), stage.target(path), "/missing", "/v1/image"] {
                let response = try Curl()("--http2-prior-knowledge", base + target)
                #expect(response.version == "2")
                #expect(response.fields.all("X-Request-Id").count == 1, "\(response)")
                ids += response.fields.all("x-request-id")
            }
            let given = try Curl()(
                "--http2-prior-knowledge", "-H", "X-Request-Id: mine", base + stage.target(path))
            #expect(given.fields.all("X-Request-Id") == ["mine"])
            #expect(Set(ids).count == 4)
            let gate = Gate()
            defer { gate.open() }
            let held = try stage.occupy(5, gate)
            defer { withExtendedLifetime(held) {} }
            expectSoon(20) {
                guard let connection = try? stage.node.connect() else { return false }
                let response = try? connection.get("/healthz", seconds: 2)
                guard response?.status == 503, let id = response?["X-Request-Id"] else {
                    return false
                }
                return !ids.contains(id)
            }
        }

        @Test("A hit has the id of its own request, not of the one that stored the response")
        func hits() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", .text("ok", fields: [lasting, "X-Request-Id: of-the-origin"]))
            var ids: Set<String> = []
            for number in 0..<3 {
                let response = try stage.get("/it")
                #expect(response.isHit == (number > 0), "\(response)")
                ids.insert(id(response, 200, "\(number)"))
            }
            let posted = try stage.send("POST", "/it", body: "x")
            ids.insert(id(posted, 200, "passed"))
            #expect(ids.count == 4 && !ids.contains("of-the-origin"), "\(ids)")
        }

        @Test(
            "A valid X-Request-Id of a client is kept and forwarded to the origin",
            arguments: ["mine", "a", "A-Z_0.9~+/=", String(repeating: "x", count: 128)])
        func accepted(given: String) throws {
            let stage = try Stage.shared()
            let path = stage.origin.serve(image, fields: [lasting])
            for _ in 0..<2 {
                let response = try stage.get(path, fields: ["x-request-ID: \(given)"])
                #expect(id(response, 200, given) == given)
            }
            #expect(
                try stage.get("/none", fields: ["X-Request-Id: \(given)"])["X-Request-Id"] == given)
            let sent = stage.origin.requests(path).map { $0.fields.all("X-Request-Id") }
            #expect(sent == [[given]])
            // The next request does not have this id.
            #expect(try stage.get(path)["X-Request-Id"] != given)
        }

        @Test(
            "An X-Request-Id that is not safe everywhere is replaced",
            arguments: [
                ["a b"], ["a,b"], ["a\"b"], ["é"], ["<a>"], ["a;b"], [""], ["a", "b"], ["a", "a"],
                [String(repeating: "x", count: 129)],
            ])
        func refused(given: [String]) throws {
            let stage = try Stage.shared()
            let path = stage.origin.serve(image, fields: [lasting])
            let connection = try stage.node.connect()
            for _ in 0..<2 {
                let fields = given.map { "X-Request-Id: \($0)" }
                let response = try connection.get(stage.target(path), fields: fields)
                let id = id(response, 200, "\(given)")
                #expect(id.wholeMatch(of: /[0-9a-f]{32}/) != nil)
            }
            let sent = stage.origin.requests(path).flatMap { $0.fields.all("X-Request-Id") }
            #expect(sent.count == 1 && sent[0].wholeMatch(of: /[0-9a-f]{32}/) != nil, "\(sent)")
        }

        @Test("A log line caused by a request contains its id, in every format")
        func log() throws {
            for format in ["text", "logfmt", "json"] {
                let stage = try Stage("--log-format", format, "--origin-connect-timeout", "2s")
                stage.origin.on("/text", .text("text"))
                let trace = "0af7651916cd43dd8448eb211c80319c"
                let response = try stage.get(
                    "/text",
                    fields: [
                        "X-Request-Id: mine-\(format)",
                        "traceparent: 00-\(trace)-b7ad6b7169203331-01",
                    ])
                #expect(response.status == 502)
                let words: [String] =
                    format == "json"
                    ? [
                        "\"message\":\"origin response refused\"",
                        "\"request_id\":\"mine-json\"", "\"trace_id\":\"\(trace)\"",
                    ]
                    : [
                        "origin response refused", "request_id=mine-\(format)", "trace_id=\(trace)",
                    ]
                expectSoon(20, "\(stage.node.lines)") {
                    stage.node.lines.contains { line in words.allSatisfy(line.contains) }
                }
                guard format == "text" else { continue }
                let form =
                    /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info  origin response refused \w+=.*/
                #expect(stage.node.lines.contains { $0.wholeMatch(of: form) != nil })
            }
        }
    }
}
