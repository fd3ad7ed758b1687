import Ground
import HTTPRules
import Testing
import Trials

@Suite struct ImageTargetTests {
    private func parse(_ target: String) -> ImageTargetParse {
        let bytes = ("GET " + target + " HTTP/1.1").bytes
        return ImageTarget.parse(bytes.span, at: 4..<4 + target.utf8.count)
    }

    @Test(
        "The url parameter is found in place",
        arguments: [
            ("/v1/image?url=http://a/b", "http://a/b"),
            ("/v1/image?url=http%3A%2F%2Fa%2Fb%3Fc%3Dd", "http%3A%2F%2Fa%2Fb%3Fc%3Dd"),
            ("/v1/image?url=http://a/b?c=d", "http://a/b?c=d"),
            ("/v1/image?url=url=", "url="),
        ])
    func found(target: String, url: String) throws {
        guard case .image(let extent) = parse(target) else {
            Issue.record("\(parse(target))")
            return
        }
        #expect(("GET " + target).bytes.text(extent) == url)
    }

    @Test(
        "Other paths are no image targets",
        arguments: [
            "/", "*", "", "/healthz", "/v1", "/v1/imag", "/v1/image/", "/v1/images?url=x",
            "/V1/image?url=x", "/v1/imag%65?url=x", "//v1/image?url=x", "example.org:443",
            "?/v1/image?url=x", "http://cache.example/v1/image?url=x", "/v1/image;url=x",
            "/x/v1/image?url=x",
        ])
    func notImage(target: String) {
        #expect(parse(target) == .notImage)
    }

    @Test(
        "A query without exactly one url parameter is refused with the reason",
        arguments: [
            ("/v1/image", ImageTargetRefusal.urlMissing),
            ("/v1/image?", .urlMissing),
            ("/v1/image?url=", .urlEmpty(offset: 18)),
            ("/v1/image?url", .urlEmpty(offset: 17)),
            ("/v1/image?url=&x=1", .urlEmpty(offset: 18)),
            ("/v1/image?url=a&url=b", .urlDuplicated(offset: 20)),
            (
                "/v1/image?url=http://a/?b=c&d=e",
                .parameterUnknown(name: Extent(start: 32, count: 1))
            ),
            ("/v1/image?url=http://a/?b=c&d", .parameterUnknown(name: Extent(start: 32, count: 1))),
            ("/v1/image?width=3&url=a", .parameterUnknown(name: Extent(start: 14, count: 5))),
            ("/v1/image?URL=a", .parameterUnknown(name: Extent(start: 14, count: 3))),
            ("/v1/image?url=a&", .parameterUnknown(name: Extent(start: 20, count: 0))),
            ("/v1/image?&url=a", .parameterUnknown(name: Extent(start: 14, count: 0))),
            ("/v1/image?urls=a", .parameterUnknown(name: Extent(start: 14, count: 4))),
        ])
    func refused(target: String, reason: ImageTargetRefusal) {
        #expect(parse(target) == .refused(reason))
    }

    @Test("No input makes the parser leave its range")
    func anyBytes() {
        var dice = SplitMix64(seed: 1)
        for _ in 0..<Trials.count(5000) {
            let target = dice.text(of: "/v1image?url=&:http%2F", upTo: 40)
            let prefixed = Bool.random(using: &dice) ? "/v1/image?" + target : target
            if case .image(let url) = parse(prefixed) {
                let text = ("GET " + prefixed).bytes.text(url)
                #expect(!text.isEmpty && !text.contains("&"))
            }
        }
    }
}
