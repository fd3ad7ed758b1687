import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Live settings apply to what comes next and to what waits")
    struct LiveSettingTests {
        private let image = TestImage.generated(.jpeg, byteCount: 20_000, seed: 191)

        private func stage(_ more: String = "", _ origin: [String] = [lasting]) throws
            -> (SettingsStage, path: String)
        {
            let stage = try SettingsStage(opened + more)
            return (stage, stage.origin.serve(image, fields: origin))
        }

        @Test("What is stored: object-limit, default-ttl, memory-entries, memory-limit")
        func kept() throws {
            let (stage, path) = try stage("object-limit: 1KiB\n", [])
            for _ in 0..<2 { #expect(try stage.get(path).isHit == false) }
            try stage.change(opened + "default-ttl: 10m\n")
            #expect(try stage.get(path).isHit == false)
            let hit = try stage.get(path)
            #expect(hit.isHit && (590...600).contains(Int(hit.cacheStatus["ttl"] ?? "") ?? 0))
            for seed: UInt64 in 0..<9 {
                let other = TestImage.generated(.png, byteCount: 9_000, seed: 300 + seed)
                #expect(try stage.get(stage.origin.serve(other)).matches(other))
            }
            #expect(stage.node.metric("nuthatch_memory_entries") == 10)
            try stage.change(opened + "memory-entries: 4\nmemory-limit: 16MiB\n")
            #expect(stage.node.metric("nuthatch_memory_entries") == 4)
            #expect(stage.node.metric("nuthatch_memory_limit_bytes") == 16_777_216)
        }

        @Test("What may be fetched: allow-origin, allow-private-origin")
        func fetched() throws {
            let (stage, path) = try stage("allow-origin: a.example\n")
            expectProblem(try stage.get(path), 403)
            try stage.change("allow-origin: '*'\n")
            expectProblem(try stage.get(path), 403)
            try stage.change(opened)
            #expect(try stage.get(path).matches(image))
            // An idle connection to the origin is not reused under new rules.
            try stage.change("")
            expectProblem(try stage.get(stage.origin.serve(image, fields: ["A: b"]) + "?2"), 403)
        }

        @Test("How many and how long: fills-limit, waiters-limit, origin-first-byte-timeout")
        func waited() throws {
            let (stage, path) = try stage("fills-limit: 1\n")
            let (held, gate) = try Stage(origin: stage.origin, node: stage.node).begin("/held") {
                OriginResponse(image).delayingHead(.gate($0))
            }
            defer { gate.open() }
            expectProblem(try stage.get(path), 503)
            try stage.change(opened + "fills-limit: 2\nwaiters-limit: 1\n")
            expectProblem(try stage.get(path), 503)
            try stage.change(opened + "origin-first-byte-timeout: 100ms\n")
            #expect(try stage.get(path).matches(image))
            stage.origin.on("/late", OriginResponse(image).delayingHead(.gate(gate)))
            expectProblem(try stage.get("/late"), 504)
            // A fetch in progress keeps the timeout it started with.
            #expect(held.isIdle(seconds: 0.3))
        }

        @Test("New limits apply to the next head, also on a busy connection")
        func heads() throws {
            let (stage, path) = try stage()
            let connection = try stage.node.connect()
            let fields = (0..<30).map { "X-\($0): y" }
            let target = stage.target(path)
            #expect(try connection.get(target, fields: fields).matches(image))
            let request = HTTPConnection.request(target, fields: fields)
            try connection.socket.send(Array(request.prefix(request.count / 2)))
            expectSoon(20) { connection.socket.isReadByPeer }
            try stage.change(opened + "request-fields-limit: 10\n")
            try connection.socket.send(Array(request.suffix(from: request.count / 2)))
            #expect(connection.readResponse().matches(image), "what was begun is read to its end")
            #expect(try connection.get(target, fields: fields).status == 431)
            let other = try stage.node.connect()
            #expect(try other.get(target).matches(image))
            #expect(try other.get(target, fields: fields).status == 431)
        }

        @Test("A request whose body is in progress gets its response under a smaller head limit")
        func bodies() throws {
            let (stage, path) = try stage()
            let connection = try stage.node.connect()
            let fields = (0..<30).map { "X-\($0): y" } + ["Content-Length: 4"]
            let request = HTTPConnection.request(stage.target(path), fields: fields)
            try connection.socket.send(request + Array("ab".utf8))
            expectSoon(20) { connection.socket.isReadByPeer }
            try stage.change(opened + "request-fields-limit: 10\nrequest-body-limit: 3B\n")
            try connection.socket.send(Array("cd".utf8))
            // The body limit applies to new bytes; the head limit applied when the head arrived.
            #expect(connection.readResponse().status == 413)
            let another = try stage.node.connect()
            try another.socket.send(
                HTTPConnection.request(stage.target(path), fields: ["Content-Length: 3"])
                    + Array("a".utf8))
            expectSoon(20) { another.socket.isReadByPeer }
            try stage.change(opened + "request-head-limit: 1KiB\nurl-limit: 1KiB\n")
            try another.socket.send(Array("bc".utf8))
            #expect(another.readResponse().matches(image))
        }

        @Test(
            "A request whose host became a site during its body is not handled under the old rules"
        )
        func siteBeforeBody() throws {
            let (stage, path) = try stage()
            let connection = try stage.node.connect()
            let head = HTTPConnection.request(
                stage.target(path), host: "late.example", fields: ["Content-Length: 4"])
            try connection.socket.send(head)
            expectSoon(20) { connection.socket.isReadByPeer }
            try stage.change(opened + "site: late.example=\(stage.origin.url(""))\n")
            try connection.socket.send(Array("body".utf8))
            #expect(connection.readResponse().status == 0)
            #expect(connection.waitForEnd() != .timedOut)
            #expect(stage.origin.log.isEmpty)
            let again = try stage.node.connect()
            #expect(try again.get(path, host: "late.example").matches(image))
        }

        @Test("Time limits apply to connections that are already open")
        func times() throws {
            let (stage, _) = try stage()
            let (idle, half) = (try stage.node.connect(), try stage.node.connect())
            #expect(try idle.get("/healthz").status == 200)
            try half.socket.send("GET /healthz HTTP/1.1\r\n")
            expectSoon(20) { half.socket.isReadByPeer }
            try stage.change(opened + "idle-timeout: 100ms\nhead-timeout: 100ms\n")
            #expect(idle.waitForEnd(seconds: 20) == .truncated)
            #expect(half.readResponse(seconds: 20).status == 408)
        }

        @Test("The current drain-timeout applies at the stop")
        func drain() throws {
            let (stage, _) = try stage("drain-timeout: 1h\n")
            let (held, gate) = try Stage(origin: stage.origin, node: stage.node).begin {
                OriginResponse(image).stalling(at: 10_000, .gate($0))
            }
            defer { withExtendedLifetime(held) { gate.open() } }
            try stage.change(opened + "drain-timeout: 100ms\n")
            #expect(stage.node.stop(seconds: 30) == 1)
        }

        @Test("The access log changes its format between two lines")
        func accessLog() throws {
            let stage = try SettingsStage(opened + "access-log: combined\n", "--loops", "2")
            let path = stage.origin.serve(image, fields: [lasting])
            let target = stage.target(path)
            #expect(try stage.node.get(target).matches(image))
            let load = ImageLoad(
                port: stage.node.port, connections: 8, seed: 2, [(target, image)])
            for format in ["json", "combined", "off", "json", "combined", "json"] {
                #expect(load.waitForAnswers(200))
                try stage.change(opened + "access-log: \(format)\n")
                #expect(try stage.node.get("/under-\(format)").status == 404)
            }
            #expect(load.stop().wrong.isEmpty)
            #expect(stage.node.stop() == 0)
            let lines = stage.node.standardOutput.split(separator: "\n")
            #expect(lines.count > 500)
            let probes = lines.filter { $0.contains("/under-") }
            #expect(probes.count == 5 && probes.allSatisfy { !$0.contains("/under-off") })
            #expect(probes.count { $0.hasPrefix("{") && $0.contains("/under-json") } == 3)
            let combined = try Regex(
                #"^127\.0\.0\.1 [0-9a-f]{32} - \[[^\]]*\] "GET [^"]*" \d+ \d+ "-" "-"$"#)
            for line in lines {
                if line.hasPrefix("{") {
                    let object = try? JSONSerialization.jsonObject(with: Data(line.utf8))
                    #expect((object as? [String: Any])?["remote"] as? String == "127.0.0.1")
                } else {
                    #expect(try combined.wholeMatch(in: line) != nil, "\(line)")
                }
            }
        }

        @Test("The log changes its level, and its format with the line that reports it")
        func log() throws {
            let (stage, _) = try stage("log-level: error\n")
            let refused = "/v1/image?url=http://10.0.0.1/a"
            _ = try stage.node.get(refused)
            let first = try stage.reload(opened + "log-level: info\nlog-format: json\n")
            #expect(first.hasPrefix("{"))
            #expect(stage.node.lineCount(containing: "origin fetch failed") == 0)
            _ = try stage.node.get(refused)
            expectSoon(20) { stage.node.lineCount(containing: "origin fetch failed") == 1 }
            #expect(try stage.reload(opened + "log-level: critical\n").hasPrefix("{") == false)
            _ = try stage.node.get(refused)
            #expect(stage.node.stop() == 0)
            #expect(stage.node.lineCount(containing: "origin fetch failed") == 1)
            #expect(stage.node.lineCount(containing: "stopped") == 0)
        }
    }
}
