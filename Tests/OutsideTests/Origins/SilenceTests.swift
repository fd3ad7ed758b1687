import Foundation
import Harness
import Testing

extension Outside {
    /// A client that may request any URL could use the node to probe names and ports.
    @Suite("Errors disclose nothing about names and ports")
    struct SilenceTests {
        @Test("Closed and silent ports, and unknown and forbidden names, give the same error")
        func unreachable() throws {
            let deaf = try FullBacklogListener()
            let closed = try ReservedPort()
            let node = try NodeProcess(
                ["--origin-connect-timeout", "300ms", "--origin-circuit-failures", "0"])
            let inner = try NodeProcess(allowsLoopback: false)
            let redirecting = try ScriptedOrigin()
            redirecting.on(
                "/it",
                OriginResponse(
                    nil, status: "302 Found", fields: ["Location: http://localhost:5432/"])
            )
            let asked: [(NodeProcess, String, String)] = [
                (node, "http://127.0.0.1:\(closed.number)/a.png", "127.0.0.1:\(closed.number)"),
                (node, "http://127.0.0.1:\(deaf.port)/a.png", "within 300 ms"),
                (node, "http://db.invalid:5432/a.png", "db.invalid"),
                (inner, "http://localhost:5432/a.png", "localhost"),
            ]
            var responses: Set<String> = []
            for (number, (node, url, why)) in asked.enumerated() {
                let id = "silence-\(number)"
                let response = try node.get(
                    ImageRequestTarget.forURL(url), fields: ["X-Request-Id: \(id)"])
                expectProblem(response, 502, named: "origin-unreachable")
                responses.insert(response.text)
                expectSoon(20, "\(node.lines)") {
                    node.lineCount(containing: "origin fetch failed", "request_id=\(id)", why) == 1
                }
            }
            #expect(responses.count == 1, "\(responses)")
            for word in ["127.0.0.1", "localhost", "db.invalid", "5432", "\(closed.number)"] {
                #expect(responses.allSatisfy { !$0.contains(word) }, "\(word): \(responses)")
            }
            // A page that redirects the node there does not learn it, either.
            let led = try node.get(ImageRequestTarget.forURL(redirecting.url("/it")))
            expectProblem(led, 502)
            #expect(!led.text.contains("localhost") && !led.text.contains("5432"), "\(led)")
            withExtendedLifetime((deaf, redirecting)) {}
        }

        @Test("A site's clients do not learn its origin's address")
        func ofSite() throws {
            let closed = try ReservedPort()
            let node = try NodeProcess([
                "--site", "a.example=http://127.0.0.1:\(closed.number)",
                "--origin-circuit-failures", "2",
            ])
            // The last is refused by the circuit breaker.
            for _ in 0..<4 {
                let response = try node.get("/it", host: "a.example")
                expectProblem(response, 502...503)
                #expect(!response.text.contains("127.0.0.1"), "\(response)")
                #expect(!response.text.contains("\(closed.number)"), "\(response)")
            }
        }
    }
}
