import Admin
import FoundationEssentials
import Testing

@Suite("The body of a prefetch request")
struct PrefetchRequestTests {
    private func read(_ json: String) -> Result<PrefetchRequest, RequestBodyError> {
        do {
            return .success(try JSONDecoder().decode(PrefetchRequest.self, from: Data(json.utf8)))
        } catch {
            return .failure(RequestBodyError(decodingError: error))
        }
    }

    @Test("URLs keep their order, without duplicates")
    func urls() throws {
        let request = try read(
            """
            {"urls": ["http://a.example/1", "HTTPS://b.example/2", "http://a.example/1"]}
            """
        ).get()
        #expect(request.source == .urls(["http://a.example/1", "HTTPS://b.example/2"]))
        #expect(request.accept == "*/*")
    }

    @Test("A sitemap has its URL, and fields have names and values")
    func sitemap() throws {
        let request = try read(
            "{\"sitemap\": \"http://a.example/map.xml\", \"accept\": \"image/avif, */*\"}"
        ).get()
        #expect(request.source == .sitemap("http://a.example/map.xml"))
        #expect(request.accept == "image/avif, */*")
    }

    @Test(
        "An invalid member is named by its path",
        arguments: [
            ("{}", ""), ("{\"urls\":[\"http://a\"],\"sitemap\":\"http://a\"}", ""),
            ("{\"urls\":[]}", "urls"), ("{\"urls\":\"http://a\"}", "urls"),
            ("{\"urls\":[\"http://a\",7]}", "urls[1]"), ("{\"urls\":[\"/a\"]}", "urls[0]"),
            ("{\"urls\":[\"http://a/\\r\\nX: y\"]}", "urls[0]"),
            ("{\"urls\":[\"ftp://a/\"]}", "urls[0]"), ("{\"sitemap\":\"\"}", "sitemap"),
            ("{\"sitemap\":\"http://a\",\"accept\":\"a\\nb\"}", "accept"),
            ("{\"sitemap\":\"http://a\",\"accept\":\"\"}", "accept"),
            ("{\"sitemaps\":\"http://a\"}", ""), ("[]", ""),
        ])
    func faults(json: String, place: String) throws {
        guard case .failure(let fault) = read(json) else {
            Issue.record("\(json) was accepted")
            return
        }
        switch fault {
        case .invalidValue(let found, _), .typeMismatch(let found, _), .unknownKey(let found, _, _):
            #expect(found == place, "\(fault)")
        case .invalidJSON: Issue.record("\(fault)")
        }
    }

    @Test("The maximum number of URLs is accepted, and one more is refused")
    func limits() throws {
        let whole = body(PrefetchRequest.urlsMax)
        #expect(whole.utf8.count < PrefetchRequest.bodyBytesMax)
        guard case .urls(let urls) = try read(whole).get().source else {
            return #expect(Bool(false))
        }
        #expect(urls.count == PrefetchRequest.urlsMax)
        #expect(throws: RequestBodyError.self) { try read(body(PrefetchRequest.urlsMax + 1)).get() }
        let long = "http://a/" + String(repeating: "b", count: PrefetchRequest.urlBytesMax)
        #expect(throws: RequestBodyError.self) { try read("{\"urls\":[\"\(long)\"]}").get() }
    }

    private func body(_ count: Int) -> String {
        let urls = (0..<count).map { "\"http://a.example/\($0)\"" }
        return "{\"urls\":[\(urls.joined(separator: ","))]}"
    }
}
