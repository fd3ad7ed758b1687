import Foundation
import Harness
import Testing

extension Outside {
    @Suite("A site that requires signatures")
    struct SignedSiteTests {
        @Test("The signature is not part of the key and not sent to the origin")
        func stripped() throws {
            let stage = try SignedStage(site: "    ignore-query: [utm_*]")
            stage.origin.on("/it", .text("it", fields: [lasting]))
            for target in ["/it?a=b", "/it?utm_x=y&a=b"] {
                for more in [[], ["--expires-in", "1h"]] {
                    let signed = try stage.sign(["--site", SignedStage.site] + more + [target])
                    #expect(try stage.getSite(signed).text == "it")
                }
            }
            #expect(stage.origin.requests("/it").map(\.target) == ["/it?a=b"])
        }

        @Test("Refusals equal those of images, and count as the site's")
        func refused() throws {
            let stage = try SignedStage()
            stage.origin.on("/it", .text("it"))
            let signed = try stage.sign("--site", SignedStage.site, "/it?a=b")
            let late = try stage.sign(
                "--site", SignedStage.site, "--expires-at", "1000000000", "/it")
            expectProblem(try stage.getSite("/it?a=b"), 403, named: "url-unsigned")
            expectProblem(try stage.getSite("/"), 403, named: "url-unsigned")
            expectProblem(
                try stage.getSite(signed.replacing("a=b", with: "a=c")), 403,
                named: "url-signature")
            expectProblem(try stage.getSite(late), 410, named: "url-expired")
            expectProblem(
                try stage.getSite(signed + "&x"), 400, named: "url-signature-malformed")
            #expect(stage.origin.requests("/it").isEmpty)
            #expect(try stage.getSite(signed).text == "it")
            #expect(
                stage.node.metric(
                    "nuthatch_site_requests_total{site=\"a.example\",cache=\"none\"}") == 5)
        }

        @Test(
            "A signature permits only reads: other methods are refused, and their bodies not read"
        )
        func methods() throws {
            let stage = try SignedStage()
            stage.origin.on("/it", .text("it"))
            let signed = try stage.sign("--site", SignedStage.site, "/it")
            let head = try stage.getSite(signed, method: "HEAD")
            #expect(head.status == 200)
            #expect(try stage.getSite(signed, method: "OPTIONS").status == 200)
            for method in ["DELETE", "PURGE"] {
                let response = try stage.getSite(signed, method: method)
                expectProblem(response, method == "PURGE" ? 403 : 405)
            }
            let connection = try stage.node.connect()
            let request = HTTPConnection.request(
                signed, method: "POST", host: SignedStage.site, fields: ["Content-Length: 5"])
            try connection.socket.send(request + Array("abcde".utf8))
            let post = connection.readResponse(method: "POST")
            expectProblem(post, 405)
            #expect(post["Allow"] == "GET, HEAD, OPTIONS" && post["Connection"] == "close")
            #expect(stage.origin.requests("/it").allSatisfy { $0.method != "POST" })
        }
    }
}
