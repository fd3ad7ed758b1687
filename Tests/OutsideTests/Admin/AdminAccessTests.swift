import Foundation
import Harness
import Testing

extension Outside {
    @Suite("Access control on the admin port")
    struct AdminAccessTests {
        private func bearer(_ token: String) -> String { "Authorization: Bearer \(token)" }

        private func problem(_ response: Response) throws -> String {
            #expect(response["Content-Type"] == "application/problem+json", "\(response)")
            let fields = try #require(response.document)
            #expect(fields["status"] as? Int == response.status)
            return (fields["type"] as? String ?? "").replacing("urn:nuthatch:problem:", with: "")
        }

        @Test("With tokens configured, each operation requires a token of a sufficient role")
        func roles() throws {
            let stage = try GuardedNode()
            let admin = try stage.node.connectAdmin()
            let steps: [(method: String, path: String, body: String, least: Int, status: Int)] = [
                ("GET", "/admin/v1/status", "", 0, 200), ("GET", "/metrics", "", 0, 200),
                ("GET", "/admin/v1/configuration", "", 0, 200),
                (
                    "POST", "/admin/v1/purges?wait=all", "{\"targets\":[{\"tag\":\"a\"}]}", 1, 200
                ),
                ("PUT", "/admin/v1/log-level", "{\"level\":\"info\"}", 2, 200),
                ("POST", "/admin/v1/undrain", "", 2, 202),
            ]
            for step in steps {
                let none = try admin.post(step.body, to: step.path, method: step.method)
                #expect(none.status == 401 && none["WWW-Authenticate"] == "Bearer realm=\"admin\"")
                #expect(try problem(none) == "admin-token")
                for (rank, word) in GuardedNode.words.enumerated() {
                    let response = try admin.post(
                        step.body, to: step.path, method: step.method,
                        fields: [bearer(word.token)])
                    guard rank < step.least else {
                        #expect(
                            response.status == step.status, "\(step) as \(word.role): \(response)")
                        continue
                    }
                    #expect(try response.status == 403 && problem(response) == "admin-role")
                    #expect(response["WWW-Authenticate"]?.contains("insufficient_scope") == true)
                }
            }
            for path in ["/healthz", "/readyz", "/admin/v1/openapi.json"] {
                #expect(try admin.get(path).status == 200)
            }
        }

        @Test(
            "After ten wrong tokens an address gets delayed refusals, but valid tokens work at once"
        )
        func guesses() throws {
            let stage = try GuardedNode()
            let admin = try stage.node.connectAdmin()
            for number in 0..<10 {
                let response = try admin.get(
                    "/admin/v1/status", fields: [bearer("guess-guess-guess-\(number)")])
                #expect(try response.status == 401 && problem(response) == "admin-token")
                #expect(response["WWW-Authenticate"]?.contains("invalid_token") == true)
            }
            // One refusal is delayed; meanwhile a valid token gets its response at once.
            let wrong = bearer("guess-guess-guess-10")
            try admin.socket.send(HTTPConnection.request("/admin/v1/status", fields: [wrong]))
            let right = try stage.node.connectAdmin()
            for word in GuardedNode.words {
                let response = try right.get("/admin/v1/status", fields: [bearer(word.token)])
                #expect(response.status == 200)
            }
            #expect(try right.get("/healthz").status == 200)
            let late = admin.readResponse()
            #expect(try late.status == 429 && problem(late) == "admin-attempts")
            let seconds = try #require(late["Retry-After"].flatMap { Int($0) })
            #expect((1...7).contains(seconds))
            // The connection is closed once the delayed refusal is sent.
            #expect(late["Connection"] == "close" && admin.waitForEnd() == .truncated)
            // Delayed refusals do not fill the log.
            expectSoon {
                stage.node.lineCount(containing: "token rejected", "client=127.0.0.1") == 10
            }
        }

        @Test(
            "Wrong guesses on every available connection do not lock out holders of a valid token"
        )
        func crowdOfGuessers() throws {
            let stage = try GuardedNode()
            var guessers: [HTTPConnection] = []
            for number in 0..<200 {
                let guesser = try stage.node.connectAdmin()
                let wrong = bearer("guess-guess-guess-\(number)")
                // The connection may already have been closed to make room for a later one.
                try? guesser.socket.send(
                    HTTPConnection.request("/admin/v1/status", fields: [wrong]))
                guessers.append(guesser)
            }
            for word in GuardedNode.words {
                let admin = try stage.node.connectAdmin()
                let response = try admin.get("/admin/v1/status", fields: [bearer(word.token)])
                #expect(response.status == 200, "\(response)")
            }
            withExtendedLifetime(guessers) {}
        }

        @Test("A read-only token gets a limited number of reports, and then 429")
        func reports() throws {
            let stage = try GuardedNode()
            let admin = try stage.node.connectAdmin()
            let reader = [bearer(GuardedNode.words[0].token)]
            let target = "/admin/v1/entry/body?url=http://origin.example/a.jpg"
            var refused: Response?
            let isLimited = try Deadline.seconds(30).waitUntil {
                let response = try admin.get(target, fields: reader)
                if response.status == 429 { refused = response }
                return response.status != 404
            }
            let response = try #require(refused)
            #expect(try isLimited && problem(response) == "admin-reports")
            #expect(response["Retry-After"] == "1")
            // Other tokens and public resources are not delayed by it.
            for word in GuardedNode.words.dropFirst() {
                #expect(try admin.get("/metrics", fields: [bearer(word.token)]).status == 200)
            }
            #expect(try admin.get("/healthz", fields: reader).status == 200)
            try expectSoon { try admin.get("/admin/v1/status", fields: reader).status == 200 }
        }

        @Test("An authorization field of another scheme is rate-limited like a wrong token")
        func otherSchemes() throws {
            let stage = try GuardedNode()
            let admin = try stage.node.connectAdmin()
            for _ in 0..<10 {
                let response = try admin.get(
                    "/admin/v1/status", fields: ["Authorization: Basic b3BlbjpzZXNhbWU="])
                #expect(try response.status == 401 && problem(response) == "admin-token")
            }
            let late = try admin.get(
                "/admin/v1/status", fields: ["Authorization: Basic b3BlbjpzZXNhbWU="])
            #expect(try late.status == 429 && problem(late) == "admin-attempts")
        }

        @Test("SIGHUP reloads the tokens")
        func reload() throws {
            let folder = try TemporaryFolder()
            let (old, new) = ("old-token-old-token", "new-token-new-token")
            let file = try folder.write("\(old)\n", to: "tokens")
            let node = try NodeProcess(["--admin-token-file", file.path])
            func status(_ token: String) throws -> Int {
                try node.connectAdmin().get("/admin/v1/status", fields: [bearer(token)]).status
            }
            #expect(try status(old) == 200 && status(new) == 401)
            try folder.write("read \(new)\n", to: "tokens")
            node.hangUp()
            expectSoon { node.lineCount(containing: "settings reloaded") == 1 }
            #expect(try status(new) == 200 && status(old) == 401)
            try folder.write("root \(new)\n", to: "tokens")
            node.hangUp()
            expectSoon {
                node.lineCount(
                    containing: "settings not reloaded", "line 1 does not begin with a role") == 1
            }
            #expect(try status(new) == 200)
        }

        @Test("Without tokens, access depends on the address, and cross-site requests are refused")
        func rebinding() throws {
            let node = try NodeProcess()
            let admin = try node.connectAdmin()
            for host in ["127.0.0.1:\(node.adminPort)", "localhost", "[::1]:9"] {
                #expect(try admin.get("/admin/v1/status", host: host).status == 200)
            }
            for host in [
                "evil.example", "evil.example:\(node.adminPort)", "127.0.0.1.evil.example",
            ] {
                let response = try admin.get("/admin/v1/status", host: host)
                #expect(try response.status == 421 && problem(response) == "admin-host")
            }
            let body = "{\"targets\":[{\"everything\":true}]}"
            for field in ["Origin: https://evil.example", "Sec-Fetch-Site: cross-site"] {
                let response = try admin.post(body, to: "/admin/v1/purges", fields: [field])
                #expect(try response.status == 403 && problem(response) == "admin-cross-site")
            }
            #expect(node.metric("nuthatch_purges_issued_total{mode=\"hard\"}") == 0)
            let same = try admin.post(
                body, to: "/admin/v1/purges?wait=all",
                fields: ["Origin: http://localhost", "Sec-Fetch-Site: same-origin"])
            #expect(same.status == 200)
        }

        @Test("Path traversal and unexpected bodies are refused")
        func nonsense() throws {
            let node = try NodeProcess()
            for path in [
                "/admin/v1/../../etc/passwd", "/..%2f..%2fetc/passwd", "/admin/v1/%2e%2e/status",
                "/admin//v1/status", "/admin/v2/status",
            ] {
                let response = try node.connectAdmin().get(path)
                #expect(try response.status == 404 && problem(response) == "not-found", "\(path)")
            }
            let deep = String(repeating: "[", count: 30_000)
            for (body, status) in [
                (deep, 400), ("{\"targets\":\(deep)", 400), ("{\"level\":", 400), ("[]", 422),
                ("{\"level\":\"info\",\"more\":1}", 422), ("{\"level\":7}", 422), ("", 400),
            ] {
                let response = try node.connectAdmin().post(
                    body, to: "/admin/v1/log-level", method: "PUT")
                let wanted = body.utf8.count > 1_024 ? 413 : status
                #expect(response.status == wanted, "\(body.prefix(40)): \(response)")
                _ = try problem(response)
                let purge = try node.connectAdmin().post(body, to: "/admin/v1/purges")
                #expect((400...422).contains(purge.status), "\(body.prefix(40)): \(purge)")
                _ = try problem(purge)
            }
            // A body of ten megabytes is refused without waiting for it.
            let large = try node.connectAdmin().get(
                "/admin/v1/purges", method: "POST", fields: ["Content-Length: 10485760"])
            #expect(try large.status == 413 && problem(large) == "body-too-large")
            let detail = try #require(large.document?["detail"] as? String)
            #expect(detail.hasPrefix("The body of a request may have at most "), "\(detail)")
            #expect(try node.connectAdmin().get("/readyz").status == 200)
        }

        @Test("Beyond loopback the admin port opens only if every client must authenticate")
        func open() throws {
            let port = try ReservedPort.forProcess()
            let flags = ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "0.0.0.0:\(port)"]
            let refused = try NodeProcess.run(flags, seconds: 5)
            #expect(refused.status == 78 && refused.errors.contains("admin-token-file"))
            let stage = try GuardedNode("--admin-listen", "0.0.0.0:\(port)")
            let admin = try HTTPConnection(port: port)
            #expect(try admin.get("/admin/v1/status").status == 401)
            let response = try admin.get(
                "/admin/v1/status", host: "node.example",
                fields: [bearer(GuardedNode.words[0].token)])
            #expect(response.status == 200)
            withExtendedLifetime(stage) {}
        }
    }
}
