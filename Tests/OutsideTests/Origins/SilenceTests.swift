import Foundation
import Harness
import Testing

extension Outside {
    /// Who may ask for any URL could have the node try out names and ports.
    @Suite("Errors tell clients nothing of names and ports")
    struct SilenceTests {
        @Test("A closed port, one that is silent, and names there are not or must not be, are one")
        func unreachable() throws {
            let deaf = try DeafListener()
            let closed = try HeldPort()
            let node = try NodeProcess(
                ["--origin-connect-timeout", "300ms", "--origin-circuit-failures", "0"])
            let inner = try NodeProcess(allowsLoopback: false)
            let redirecting = try ScriptedOrigin()
            redirecting.on(
                "/it",
                OriginAnswer(nil, status: "302 Found", fields: ["Location: http://localhost:5432/"])
            )
            let asked: [(NodeProcess, String, String)] = [
                (node, "http://127.0.0.1:\(closed.number)/a.png", "127.0.0.1:\(closed.number)"),
                (node, "http://127.0.0.1:\(deaf.port)/a.png", "within 300 ms"),
                (node, "http://db.invalid:5432/a.png", "db.invalid"),
                (inner, "http://localhost:5432/a.png", "localhost"),
            ]
            var answers: Set<String> = []
            for (number, (node, url, why)) in asked.enumerated() {
                let id = "silence-\(number)"
                let answer = try node.get(
                    ImageTarget.of(url), fields: ["X-Request-Id: \(id)"])
                expectProblem(answer, 502, named: "origin-unreachable")
                answers.insert(answer.text)
                expectSoon(20, "\(node.lines)") {
                    node.said("origin fetch failed", "request_id=\(id)", why) == 1
                }
            }
            #expect(answers.count == 1, "\(answers)")
            for word in ["127.0.0.1", "localhost", "db.invalid", "5432", "\(closed.number)"] {
                #expect(answers.allSatisfy { !$0.contains(word) }, "\(word): \(answers)")
            }
            // Nor does a page that sends the node there learn it.
            let led = try node.get(ImageTarget.of(redirecting.url("/it")))
            expectProblem(led, 502)
            #expect(!led.text.contains("localhost") && !led.text.contains("5432"), "\(led)")
            withExtendedLifetime((deaf, redirecting)) {}
        }

        @Test("A site's clients are not told where its origin is")
        func ofSite() throws {
            let closed = try HeldPort()
            let node = try NodeProcess([
                "--site", "a.example=http://127.0.0.1:\(closed.number)",
                "--origin-circuit-failures", "2",
            ])
            // The last is refused because the origin is left alone.
            for _ in 0..<4 {
                let answer = try node.get("/it", host: "a.example")
                expectProblem(answer, 502...503)
                #expect(!answer.text.contains("127.0.0.1"), "\(answer)")
                #expect(!answer.text.contains("\(closed.number)"), "\(answer)")
            }
        }
    }
}
