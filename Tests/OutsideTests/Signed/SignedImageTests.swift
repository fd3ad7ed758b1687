import Foundation
import Harness
import Testing

extension Outside {
    @Suite("With keys, only signed image URLs are served")
    struct SignedImageTests {
        private static let image = TestImage.generated(.jpeg, byteCount: 20_000, seed: 720)
        private var image: TestImage { Self.image }

        @Test("All signatures of one image, and all spellings of its URL, share one entry")
        func oneEntry() throws {
            let stage = try SignedStage()
            let path = stage.origin.serve(image, fields: [lasting])
            let url = stage.origin.url(path)
            let lasting = try stage.sign(url)
            let limited = try stage.sign("--expires-in", "1h", url)
            #expect(try stage.node.get(lasting, expecting: image).matches(image))
            let second = try stage.node.get(limited, expecting: image)
            #expect(second.matches(image))
            #expect(second["Cache-Status"]?.contains("detail=memory") == true, "\(second)")
            let parameters = try #require(lasting.split(separator: "&").last)
            let spelt = ImageRequestTarget.forURL(url.replacing("http://", with: "HTTP://") + "#x")
            #expect(
                try stage.node.get("\(spelt)&\(parameters)", expecting: image).matches(image))
            #expect(stage.origin.requests(path).count == 1)
        }

        @Test("Unsigned, forged, expired or malformed URLs are refused with distinct problems")
        func refused() throws {
            let stage = try SignedStage()
            let path = stage.origin.serve(image, fields: [lasting])
            let url = stage.origin.url(path)
            let good = try stage.sign("--expires-at", "4102444800", url)
            let get = { (target: String) in try stage.node.get(target) }
            try expectProblem(get(ImageRequestTarget.forURL(url)), 403, named: "url-unsigned")
            try expectProblem(get("/v1/image"), 403, named: "url-unsigned")
            try expectProblem(
                get(good.replacing("=4102444800", with: "=4102444801")), 403,
                named: "url-signature")
            try expectProblem(
                get(good.replacing("&expires", with: "x&expires")), 403,
                named: "url-signature")
            let other = try stage.sign(url, by: SignedStage.new)
            try expectProblem(get(other), 403, named: "url-signature")
            let late = try get(stage.sign("--expires-at", "1000000000", url))
            expectProblem(late, 410, named: "url-expired")
            #expect(late["Cache-Control"] == "no-store")
            #expect(late.text.contains("1000000000"), "\(late)")
            try expectProblem(get(good + "&a=b"), 400, named: "url-signature-malformed")
            try expectProblem(get(good + "x"), 400, named: "url-signature-malformed")
            #expect(stage.origin.requests(path).isEmpty)
            #expect(try get(good).matches(image))
            #expect(stage.refused("unsigned") == 2 && stage.refused("forged") == 3)
            #expect(stage.refused("expired") == 1 && stage.refused("malformed") == 2)
        }

        @Test("Signed requests are refused for other faults; health needs no key")
        func otherRefusals() throws {
            let stage = try SignedStage()
            #expect(try stage.node.get("/readyz").status == 200)
            #expect(try stage.node.get("/healthz?signature=x").status == 200)
            expectProblem(try stage.node.get("/else?signature=x"), 404)
            let signed = try stage.sign(stage.origin.url("/a"))
            let parameters = try #require(signed.split(separator: "&").last)
            expectProblem(
                try stage.node.get("/v1/image?\(parameters)"), 400, named: "url-missing")
            expectProblem(
                try stage.node.get("/v1/image?url=a&b=c&\(parameters)"), 400,
                named: "parameter-unknown")
            expectProblem(
                try stage.node.get("/v1/image?url=a&\(parameters)"), 400, named: "url-scheme")
            expectProblem(try stage.node.get(signed, method: "POST"), 405)
        }

        @Test("A node without keys ignores signatures, so that they can be made in advance")
        func beforehand() throws {
            let stage = try SignedStage(keys: nil)
            let path = stage.origin.serve(image, fields: [lasting])
            let signed = try stage.sign("--expires-at", "5", stage.origin.url(path))
            #expect(try stage.node.get(signed, expecting: image).matches(image))
            expectProblem(
                try stage.node.get(signed + "&a"), 400, named: "url-signature-malformed")
            #expect(stage.refused("malformed") == 0)
        }

        @Test("SIGHUP rotates keys: a new one is added, signs, and the old one is removed")
        func rotation() throws {
            let stage = try SignedStage()
            let path = stage.origin.serve(image, fields: [lasting])
            let url = stage.origin.url(path)
            let old = try stage.sign(url)
            let new = try stage.sign(url, by: SignedStage.new)
            #expect(try stage.node.get(old).status == 200)
            expectProblem(try stage.node.get(new), 403, named: "url-signature")
            try stage.change(keys: "a:\(SignedStage.old)\nb:\(SignedStage.new)\n")
            #expect(try stage.node.get(old).status == 200)
            #expect(try stage.node.get(new).status == 200)
            try stage.change(keys: SignedStage.new)
            expectProblem(try stage.node.get(old), 403, named: "url-signature")
            #expect(try stage.node.get(new).status == 200)
        }
    }
}
