import Harness
import Testing

extension Outside {
    /// What one client, or one URL, can take from the others of a node.
    @Suite("Nobody crowds out the others")
    struct CrowdingTests {
        @Test("A URL on which the origin hangs up does not shut the others of its site")
        func hangingUp() throws {
            let stage = try SiteStage()
            let bad = TestImage.generated(.gif, byteCount: 3_000, seed: 90)
            stage.origin.on("/bad", OriginAnswer(bad).cutInHead(.reset))
            stage.origin.onAnythingElse { _ in .text("ok") }
            for number in 1...200 {
                expectProblem(try stage.get("/bad?\(number)"), 502)
                let response = try stage.get("/\(number)")
                #expect(response.status == 200 && response.text == "ok", "\(response)")
            }
            #expect(stage.node.figure("nuthatch_origin_circuit_openings_total") == 0)
            // The circuit is there: without the origin nobody is asked after a while.
            stage.origin.stop()
            for number in 1...20 { expectProblem(try stage.get("/off/\(number)"), 502) }
            expectProblem(try stage.get("/off/21"), 503)
        }
    }
}
