import Foundation
import Harness
import Testing

extension Outside {
    @Suite("How an answer came about is told to who knows the token")
    struct DecisionFieldTests {
        private static let token = "a-token-of-enough-bytes"

        private func stage() throws -> SiteStage {
            let file = try Program.temporaryFolder().appendingPathComponent("token")
            try Data((Self.token + "\n").utf8).write(to: file)
            let stage = try SiteStage("--decision-token-file", file.path)
            stage.origin.on("/it", .text("it", fields: ["Cache-Control: max-age=60", "Vary: Foo"]))
            return stage
        }

        @Test("Of a miss, a hit and a refusal, and the origin is not told the token")
        func told() throws {
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

        @Test("Nobody else is told, and what is not for us goes on to the origin without it")
        func notTold() throws {
            let stage = try stage()
            let wrong = try stage.get("/it", fields: ["Nuthatch-Decision: a-token-of-other-bytes"])
            #expect(wrong.status == 200 && wrong["Nuthatch-Decision"] == nil)
            #expect(try stage.get("/it")["Nuthatch-Decision"] == nil)
        }
    }
}
