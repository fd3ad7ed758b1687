import HTTPRules
import Testing

/// URLs from imgproxy's "Processing an image", "Presets" and "Getting an image info".
@Suite struct ImgproxyTargetTests {
    private static let curiosity = "http://example.com/images/curiosity.jpg"
    private static let letters = "aHR0cDovL2V4YW1wbGUuY29tL2ltYWdlcy9jdXJpb3NpdHkuanBn"
    private static let signature = "/AfrOrF3gWeDA6VOlDG4TzxMv39O7MXnF4CXpKUwGqRM"

    @Test(
        "A plain source is everything after the segment plain, up to an extension",
        arguments: [
            "/preset:sharp/resize:fill:300:400:0/gravity:sm/plain/\(curiosity)@png",
            "/pr:sharp/rs:fill:300:400:0/g:sm/plain/http://example.com/images/curiosity.jpg",
            "/plain/http://example.com/images/curiosity.jpg",
            "/plain/http://example.com/images/curiosity.jpg@",
            "/rs:fit:300:300/plain/http%3A%2F%2Fexample.com%2Fimages%2Fcuriosity.jpg@webp",
            "/rs:fit:300:300/plain/http:%2F%2Fexample.com%2Fimages%2Fcuriosity.jpg",
            "/rs:fit:300:300/plain/http:/example.com/images/curiosity.jpg@png",
            "/rs:fit:300:300/plain/HTTP://EXAMPLE.COM:80/images/./curiosity.jpg",
            "/w:100/plain/http://example.com/images/curiosity.jpg?cache=1",
            "/thumbnail:blurry:watermarked/plain/http://example.com/images/curiosity.jpg@png",
            "/thumbnail/plain/http://example.com/images/curiosity.jpg@png",
        ])
    func plain(path: String) throws {
        for signature in [Self.signature, "/unsafe", "/_", "/insecure"] {
            #expect(try original("imgproxy", of: signature + path) == Self.curiosity)
        }
    }

    @Test(
        "Only the required escapes of a plain source are decoded, once",
        arguments: [
            (
                "http://images.dev/lorem.jpg%3Fparam=value",
                "http://images.dev/lorem.jpg?param=value"
            ),
            ("http://images.dev/a%40b.jpg@png", "http://images.dev/a@b.jpg"),
            ("http://images.dev/a%2520b.jpg", "http://images.dev/a%20b.jpg"),
            ("http://images.dev/a%20b.jpg", "http://images.dev/a%20b.jpg"),
            ("http://images.dev/a+b.jpg", "http://images.dev/a+b.jpg"),
            ("https://images.dev/plain/a:b/c.jpg", "https://images.dev/plain/a:b/c.jpg"),
        ])
    func escapes(source: String, expected: String) throws {
        #expect(try original("imgproxy", of: "/_/size:100:100/plain/" + source) == expected)
    }

    @Test(
        "A base64 source may be split by slashes anywhere",
        arguments: [
            "/aHR0cDovL2V4YW1w/bGUuY29tL2ltYWdl/cy9jdXJpb3NpdHku/anBn",
            "/aHR0cDovL2V4YW1w/bGUuY29tL2ltYWdl/cy9jdXJpb3NpdHku/anBn.png",
            "/rs:fit:300:300:no:0/g:no/aHR0cDovL2V4YW1w/bGUuY29tL2ltYWdl/cy9jdXJpb3NpdHku/anBn.png",
            "/\(letters)", "/\(letters).png", "/\(letters).", "/\(letters)=", "/\(letters)==.png",
            "/s:100:100/\(letters).png/puppy.jpg", "/thumbnail/\(letters).png",
            "/fill-300/\(letters)", "/w:100/\(letters)?x=1",
            "/a/\(letters.map(String.init).joined(separator: "/"))",
        ])
    func base64(path: String) throws {
        #expect(try original("imgproxy", of: Self.signature + path) == Self.curiosity)
    }

    @Test("Info responses have the same original")
    func info() throws {
        let path = "/info\(Self.signature)"
        #expect(try original("imgproxy", of: "\(path)/plain/\(Self.curiosity)") == Self.curiosity)
        #expect(try original("imgproxy", of: "\(path)/s:1/\(Self.letters)") == Self.curiosity)
    }

    @Test(
        "A source without a scheme is appended to the rule's base URL",
        arguments: [
            ("/_/size:100:100/plain/lorem/ipsum.jpg@png", "lorem/ipsum.jpg"),
            ("/_/size:100:100/plain/lorem/ipsum.jpg%3Fparam=value", "lorem/ipsum.jpg?param=value"),
            ("/_/size:100:100/bG9yZW0vaXBzdW0uanBn.png", "lorem/ipsum.jpg"),
            ("/_/thumbnail/bG9yZW0vaXBzdW0uanBn.png", "lorem/ipsum.jpg"),
        ])
    func base(target: String, name: String) throws {
        #expect(try original("imgproxy", of: target) == nil)
        for base in ["http://images.dev", "http://images.dev/", "HTTP://IMAGES.dev:80/"] {
            let found = try original("imgproxy \(base)", of: target)
            #expect(found == "http://images.dev/" + name)
        }
        let found = try original("imgproxy https://images.dev/photos/", of: target)
        #expect(found == "https://images.dev/photos/" + name)
        let absolute = try original("imgproxy https://b/", of: "/_/plain/\(Self.curiosity)")
        #expect(absolute == Self.curiosity)
    }

    @Test("The rule applies below its path and nowhere else")
    func mount() throws {
        let target = "\(Self.signature)/rs:fit:300:300/plain/\(Self.curiosity)"
        #expect(try original("imgproxy /img/proxy", of: "/img/proxy" + target) == Self.curiosity)
        #expect(try original("imgproxy /img/proxy", of: "/img/proxyx" + target) == nil)
        #expect(try original("imgproxy /img/proxy", of: "/img" + target) == nil)
        #expect(try original("imgproxy /img/proxy", of: target) == nil)
    }

    @Test(
        "A URL that is not imgproxy's or cannot be decoded has no original",
        arguments: [
            "", "/", "/health", "/favicon.ico", "/_/", "/_/w:100", "/_/w:100/plain",
            "/_/w:100/plain/", "/_/w:100/plain/@png", "//w:100/plain/http://a/b",
            "/_/w:100/plain/http://a/b@png@webp", "/_/w:100/plain/http://a/b%zz",
            "/_/w:100/plain/http://a/b%", "/_/w:100/plain/s3://bucket/a.jpg",
            "/_/w:100/plain/local:///a.jpg", "/_/w:100/plain/ftp://a/b",
            "/_/w:100/plain/http://u@a/b", "/_/w:100/plain/http://", "/_/w:100/plain/http:///b",
            "/_/w:100/plain/http%3A%2F%2Fa%2F%0A", "/_/w:100/enc/VGhpc0lzRW5jcnlwdGVk",
            "/_/w:100/enc/\(letters).jpg", "/_/w:100/\(letters)+", "/_/w:100/\(letters)A",
            "/_/w:100/.png", "/_/w:100/czM6Ly9idWNrZXQvYS5qcGc", "/_/w:100/####",
            "_/w:100/plain/http://a/b", "/assets/app.css", "/a/b/c/d.html",
        ])
    func refused(target: String) throws {
        #expect(try original("imgproxy", of: target) == nil)
    }
}
