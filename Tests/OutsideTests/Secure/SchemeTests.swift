import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The scheme is a part of what is asked for")
    struct SchemeTests {
        @Test("A site's answers in clear text and over TLS are kept apart")
        func apart() throws {
            let stage = try SecureStage()
            defer { withExtendedLifetime(stage) {} }
            stage.origin.on("/page") { request in
                .text(request.fields["X-Forwarded-Proto"] ?? "-", fields: [lasting])
            }
            for _ in 0..<2 {
                let plain = try stage.node.get("/page", host: SecureStage.site)
                #expect(plain.text == "http")
                let secure = try stage.curl(stage.url("/page"))
                #expect(secure.text == "https")
            }
            #expect(stage.origin.requests("/page").count == 2)
            // What changes it changes both.
            #expect(
                try stage.node.get("/page", method: "DELETE", host: SecureStage.site).status == 200)
            #expect(try stage.curl(stage.url("/page")).status == 200)
            #expect(stage.origin.requests("/page").count == 4)
        }
    }
}
