import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The scheme is part of the cache key")
    struct SchemeTests {
        @Test("A site's responses in clear text and over TLS are stored separately")
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
            // An unsafe request invalidates both.
            #expect(
                try stage.node.get("/page", method: "DELETE", host: SecureStage.site).status == 200)
            #expect(try stage.curl(stage.url("/page")).status == 200)
            #expect(stage.origin.requests("/page").count == 4)
        }
    }
}
