import Harness
import Testing

extension Outside {
    /// Request bodies that are refused, abandoned, or truncated.
    @Suite("Request bodies that do not reach the origin completely")
    struct UploadTests {
        private func post(_ length: Int, method: String = "POST") -> [UInt8] {
            HTTPConnection.request(
                "/it", method: method, host: SiteStage.host, fields: ["Content-Length: \(length)"])
        }

        @Test(
            "The body of a refused request is not read as a request",
            arguments: ["PURGE", "CONNECT"])
        func refused(method: String) throws {
            let stage = try SiteStage()
            let connection = try stage.node.connect()
            let hidden = HTTPConnection.request("/hidden", host: SiteStage.host)
            let head =
                method == "CONNECT"
                ? Array(
                    ("CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n"
                        + "Content-Length: \(hidden.count)\r\n\r\n").utf8)
                : post(hidden.count, method: method)
            try connection.socket.send(head + hidden)
            let response = connection.readResponse()
            #expect([403, 404, 405].contains(response.status), "\(response)")
            #expect(connection.waitForEnd() != .timedOut)
            #expect(stage.fetches("/hidden") == 0)
        }

        @Test("A request with an invalid Host matches no site, and its body is dropped")
        func noKey() throws {
            let origin = try ScriptedOrigin()
            let node = try NodeProcess(["--site", "*=\(origin.url(""))"])
            let hidden = HTTPConnection.request("/hidden")
            let connection = try node.connect()
            let head = HTTPConnection.request(
                "/it", host: "a!b", fields: ["Content-Length: \(hidden.count)"])
            try connection.socket.send(head + hidden)
            expectProblem(connection.readResponse(), 400)
            #expect(connection.waitForEnd() != .timedOut)
            #expect(try node.get("/healthz").status == 200)
            #expect(origin.log.isEmpty)
        }

        @Test("A client that leaves in the middle of its body leaks no resource")
        func left() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", .text("ok"))
            do {
                let connection = try stage.node.connect()
                try connection.socket.send(post(1_000_000) + [1])
                expectSoon { stage.node.metric("nuthatch_fills_in_flight") == 1 }
                connection.socket.close()
            }
            expectSoon {
                stage.node.metric("nuthatch_fills_in_flight") == 0
                    && stage.node.metric("nuthatch_waiters") == 0
                    && stage.node.metric("nuthatch_origin_connections") == 0
            }
            #expect(try stage.send("POST", "/it", body: "x").text == "ok")
        }

        @Test("A client that shuts down its sending side after a complete body gets its response")
        func halfClosed() throws {
            let stage = try SiteStage()
            stage.origin.on("/it", .text("ok"))
            let connection = try stage.node.connect()
            try connection.socket.send(post(5) + Array("hello".utf8))
            connection.socket.finishSending()
            #expect(connection.readResponse(method: "POST").text == "ok")
        }
    }
}
