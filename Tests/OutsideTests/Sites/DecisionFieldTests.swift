import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The decision trace is sent to clients with the token")
    struct DecisionFieldTests {
        private static let token = "a-token-of-enough-bytes"

        private func stage() throws -> SiteStage {
            let file = try Program.temporaryFolder().appendingPathComponent("token")
            try Data((Self.token + "\n").utf8).write(to: file)
            let stage = try SiteStage("--decision-token-file", file.path)
            stage.origin.on("/it", .text("it", fields: ["Cache-Control: max-age=60", "Vary: Foo"]))
            return stage
        }

        @Test("A miss, a hit and a refusal have a trace, and the token is not sent to the origin")
        func traced() throws {
            let stage = try stage()
            let asked = ["Nuthatch-Decision: \(Self.token)", "Foo: 1"]
            let miss = try #require(try stage.get("/it", fields: asked)["Nuthatch-Decision"])
            for part in ["verdict=fetch", "lifetime=60", "source=max-age", "stored"] {
                #expect(miss.contains(part), "\(miss)")
            }
            let hit = try #require(try stage.get("/it", fields: asked)["Nuthatch-Decision"])
            #expect(hit.contains("verdict=hit") && hit.contains("vary=(\"foo\")"), "\(hit)")
            #expect(hit.contains("key=\"//a.example/it\""), "\(hit)")
            let request = try #require(stage.origin.requests("/it").first)
            #expect(request.fields["Nuthatch-Decision"] == nil && request.fields["Foo"] == "1")
        }

        @Test("Without the token, or with a wrong one, there is no trace")
        func notTraced() throws {
            let stage = try stage()
            let wrong = try stage.get("/it", fields: ["Nuthatch-Decision: a-token-of-other-bytes"])
            #expect(wrong.status == 200 && wrong["Nuthatch-Decision"] == nil)
            #expect(try stage.get("/it")["Nuthatch-Decision"] == nil)
        }
    }
}
