import Harness
import Testing

extension Outside {
    @Suite("Conditional requests")
    struct ConditionalTests {
        static let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
        static let earlier = "Sat, 05 Nov 1994 08:49:37 GMT"
        static let later = "Mon, 07 Nov 1994 08:49:37 GMT"

        static let cases: [(fields: [String], status: Int)] = [
            (["If-None-Match: \"v1\""], 304),
            (["If-None-Match: W/\"v1\""], 304),
            (["If-None-Match: \"v0\", \"v1\""], 304),
            (["If-None-Match: \"v0\"", "If-None-Match: \"v1\""], 304),
            (["If-None-Match: \"a,b\",W/\"x\" ,\t\"v1\""], 304),
            (["If-None-Match: *"], 304),
            (["If-None-Match: \"v0\""], 200),
            (["If-None-Match: \"V1\""], 200),
            (["If-None-Match: \"v0\", \"v2\""], 200),
            (["If-None-Match: v1"], 200),
            (["If-Modified-Since: \(modified)"], 304),
            (["If-Modified-Since: \(later)"], 304),
            (["If-Modified-Since: \(earlier)"], 200),
            (["If-Modified-Since: yesterday"], 200),
            (["If-None-Match: \"v0\"", "If-Modified-Since: \(later)"], 200),
            (["If-None-Match: \"v1\"", "If-Modified-Since: \(earlier)"], 304),
        ]

        @Test("A stored image is evaluated by its validators, without an origin request")
        func table() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.jpeg, byteCount: 20_000, seed: 70)
            let path = stage.origin.serve(
                image, fields: [lasting], etag: "\"v1\"", lastModified: Self.modified)
            #expect(try stage.get(path).matches(image))
            let connection = try stage.node.connect()
            for (fields, status) in Self.cases {
                let response = try connection.get(stage.target(path), fields: fields)
                #expect(response.status == status && response.isWhole, "\(fields): \(response)")
                #expect(response["ETag"] == "\"v1\"", "\(fields)")
                #expect(response["Cache-Control"] != nil, "\(fields)")
                #expect(response.bodyByteCount == (status == 200 ? image.byteCount : 0))
            }
            #expect(stage.fetches(path) == 1)
        }

        @Test("HEAD is conditional like GET")
        func head() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.jpeg, byteCount: 20_000, seed: 71)
            let path = stage.origin.serve(image, fields: [lasting], etag: "\"v1\"")
            _ = try stage.get(path)
            let match = try stage.get(path, method: "HEAD", fields: ["If-None-Match: \"v1\""])
            #expect(match.status == 304)
            let other = try stage.get(path, method: "HEAD", fields: ["If-None-Match: \"v2\""])
            #expect(other.status == 200)
        }

        @Test("A weak validator of the origin serves If-None-Match")
        func weakStored() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.jpeg, byteCount: 20_000, seed: 72)
            let path = stage.origin.serve(image, fields: [lasting], etag: "W/\"v1\"")
            _ = try stage.get(path)
            for tag in ["W/\"v1\"", "\"v1\""] {
                #expect(try stage.get(path, fields: ["If-None-Match: \(tag)"]).status == 304)
            }
        }

        @Test("A conditional request for a cold image gets the right response and stores the image")
        func cold() throws {
            let stage = try Stage.shared()
            defer { withExtendedLifetime(stage) {} }
            let image = TestImage.generated(.jpeg, byteCount: 20_000, seed: 73)
            let path = stage.origin.serve(image, fields: [lasting], etag: "\"v1\"")
            let response = try stage.get(path, fields: ["If-None-Match: \"v1\""])
            #expect(response.status == 304 || response.matches(image), "\(response)")
            #expect(try stage.get(path).matches(image))
            #expect(stage.fetches(path) == 1)
        }
    }
}
