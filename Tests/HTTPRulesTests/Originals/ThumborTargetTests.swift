import HTTPRules
import Testing

/// URLs from thumbor's "Usage", "Security" and "Image loader".
@Suite struct ThumborTargetTests {
    private static let image = "s.glbimg.com/et/bb/f/original/2011/03/24/VN0JiwzmOw0b0lg.jpg"

    @Test(
        "The image is everything after the known options",
        arguments: [
            "", "300x200/", "300x200/smart/", "debug/300x200/", "meta/300x200/", "debug/meta/",
            "trim/", "trim:50/", "trim:top-left/", "trim:bottom-right:15/", "10x11:12x13/",
            "fit-in/300x200/", "adaptive-fit-in/300x200/", "full-fit-in/300x200/",
            "adaptive-full-fit-in/300x200/", "-300x-200/", "300x/", "x200/", "0x0/", "x/", "-x-/",
            "origx100/", "100xorig/", "-300x-200/left/top/smart/", "left/", "middle/", "bottom/",
            "filters:format(webp)/", "filters:brightness(10):contrast(-30):rgb(1,2,3)/",
            "filters:grayscale()/",
            "filters:watermark(http://my.site.com/img.png,-10,-10,50)/",
            "meta/trim:top-left:10/10x11:12x13/fit-in/-300x-200/left/top/smart/filters:blur(7)/",
        ])
    func image(parts: String) throws {
        for signature in ["/unsafe/", "/K97LekICOXT9MbO3X1u8BBkrjbu5/"] {
            let target = signature + parts
            let plain = try original("thumbor", of: target + Self.image)
            #expect(plain == "http://" + Self.image)
            let secure = try original("thumbor https://", of: target + Self.image)
            #expect(secure == "https://" + Self.image)
            let absolute = try original("thumbor", of: target + "https://" + Self.image)
            #expect(absolute == "https://" + Self.image)
            let escaped = try original("thumbor", of: target + "https%3A%2F%2F\(Self.image)")
            #expect(escaped == "https://" + Self.image)
        }
    }

    @Test(
        "An option out of order is part of the image",
        arguments: [
            ("smart/300x200/a.jpg", "http://300x200/a.jpg"),
            ("300x200/meta/a.jpg", "http://meta/a.jpg"),
            ("top/left/a.jpg", "http://left/a.jpg"), ("smart/smart/a.jpg", "http://smart/a.jpg"),
            ("filters:x/a.jpg", nil), ("filters:)/a.jpg", nil),
            ("1x2x3/a.jpg", "http://1x2x3/a.jpg"),
            ("trim:up/a.jpg", nil), ("1x2:3/a.jpg", "http://1x2:3/a.jpg"),
            ("300x200/host.example", "http://host.example/"),
        ])
    func order(path: String, expected: String?) throws {
        #expect(try original("thumbor", of: "/unsafe/" + path) == expected)
    }

    @Test(
        "The image's escapes are decoded once, and the query is not part of it",
        arguments: [
            ("http%3A%2F%2Fa.example%2Fb.jpg%3Fc%3Dd%26e", "http://a.example/b.jpg?c=d&e"),
            ("http://a.example/b%20c.jpg", "http://a.example/b%20c.jpg"),
            ("http://a.example/b.jpg?v=1", "http://a.example/b.jpg"),
            ("http:/a.example/b.jpg", "http://a.example/b.jpg"),
            ("a.example:8080/b.jpg", "http://a.example:8080/b.jpg"),
            ("httpbin.org/image", "http://httpbin.org/image"),
            ("http://a.example/300x200/b.jpg", "http://a.example/300x200/b.jpg"),
        ])
    func escapes(image: String, expected: String) throws {
        #expect(try original("thumbor", of: "/unsafe/300x200/" + image) == expected)
    }

    @Test("Names for a loader are appended to the rule's base URL")
    func base() throws {
        let found = try original(
            "thumbor /t https://bucket.example/photos", of: "/t/unsafe/300x200/cats/a.jpg")
        #expect(found == "https://bucket.example/photos/cats/a.jpg")
    }

    @Test(
        "A URL that is not thumbor's or cannot be decoded has no original",
        arguments: [
            "", "/", "/unsafe", "/unsafe/", "/unsafe/300x200/", "/healthcheck", "/image",
            "/safe/300x200/a.example/b.jpg", "/unsafe2/a.example/b.jpg", "/300x200/a.example/b.jpg",
            "/K97LekICOXT9MbO3X1u8BBkrjb/a.example/b.jpg", "unsafe/a.example/b.jpg",
            "/unsafe/a.example/%", "/unsafe/a.example/%zz", "/unsafe/s3://bucket/a.jpg",
            "/unsafe/http://u:p@a.example/b.jpg", "/unsafe/a..example/b.jpg", "/unsafe/a%00b/c",
        ])
    func refused(target: String) throws {
        #expect(try original("thumbor", of: target) == nil)
    }
}
