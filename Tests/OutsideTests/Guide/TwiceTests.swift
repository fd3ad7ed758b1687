import Harness
import Testing

extension Outside {
    @Suite("Images that are requested twice")
    struct TwiceTests {
        @Test("The second request is a hit")
        func second() throws {
            let stage = try Stage.shared()
            stage.origin.on("/it", OriginResponse(TestImage.png(width: 4, height: 4)))
            #expect(try stage.get("/it").status == 200)
            #expect(try stage.get("/it").isHit)
        }
    }
}
