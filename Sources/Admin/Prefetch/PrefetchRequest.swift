/// A request to prefetch images: the body of `POST /admin/v1/prefetches`, either `{"urls": […]}` or
/// `{"sitemap": "…"}`.
package struct PrefetchRequest: Hashable, Sendable {
    /// The source of the URLs.
    package enum Source: Hashable, Sendable {
        /// The URLs in the given order, without duplicates; at least one.
        case urls([String])
        /// The URL of a sitemap.
        case sitemap(String)
    }

    /// The source of the URLs.
    package var source: Source
    /// The value of Accept for all requests; it decides which variant is stored.
    package var accept: String

    /// Creates a request from its parts, which are not checked.
    package init(_ source: Source, accept: String = PrefetchRequest.acceptDefault) {
        self.source = source
        self.accept = accept
    }

    /// The maximum size of the request body in bytes.
    package static let bodyBytesMax = 1 << 20
    /// The maximum number of URLs of one prefetch, including those of its sitemaps.
    package static let urlsMax = 10_000
    /// The maximum length of a URL in bytes.
    package static let urlBytesMax = 8_192
    /// The maximum length of Accept in bytes.
    package static let acceptBytesMax = 256
    /// The value of Accept if the request has none.
    package static let acceptDefault = "*/*"
    /// The name of the problem document for a request beyond the limit of running jobs.
    package static let tooManyProblem = "prefetches-too-many"

    static let schema = JSONSchema.anyOf(
        .object(
            .required(
                "urls",
                .list(of: .text(length: 1...urlBytesMax), count: 1...urlsMax)),
            acceptProperty),
        .object(
            .required("sitemap", .text(length: 1...urlBytesMax), "The URL of a sitemap"),
            acceptProperty))

    private static let acceptProperty = JSONSchema.Property.optional(
        "accept", .text(length: 1...acceptBytesMax),
        "The Accept field of the requests, which selects the variants; */* by default")
}

extension PrefetchRequest: Decodable {
    private static let keys = ["urls", "sitemap", "accept"]

    /// Decodes and checks the body of a request.
    ///
    /// - Throws: ``RequestBodyError``, or the decoder's own errors if the text is not JSON.
    package init(from decoder: any Decoder) throws {
        let object = try StrictKeyedContainer(decoder, allowedKeys: Self.keys)
        accept = try object.string("accept") ?? Self.acceptDefault
        guard Self.isFieldValue(accept) else {
            throw RequestBodyError.invalidValue(
                "accept", allowed: "1 to \(Self.acceptBytesMax) visible characters of ASCII")
        }
        switch (object.keys.contains("urls"), object.keys.contains("sitemap")) {
        case (true, false): source = .urls(try Self.urls(object))
        case (false, true):
            source = .sitemap(try Self.checked(object.string("sitemap") ?? "", "sitemap"))
        default:
            throw RequestBodyError.invalidValue(
                object.path, allowed: "exactly one of urls, sitemap")
        }
    }

    /// Returns the URLs of a body, each once.
    private static func urls(_ object: StrictKeyedContainer) throws -> [String] {
        guard var list = try object.list("urls") else { return [] }
        var urls: [String] = []
        var known: Set<String> = []
        while !list.isAtEnd {
            let place = "urls[\(list.currentIndex)]"
            guard list.currentIndex < urlsMax else {
                throw RequestBodyError.invalidValue("urls", allowed: "at most \(urlsMax) URLs")
            }
            let url: String
            do {
                url = try list.decode(String.self)
            } catch DecodingError.typeMismatch, DecodingError.valueNotFound {
                throw RequestBodyError.typeMismatch(place, expected: "a string")
            }
            if known.insert(try checked(url, place)).inserted { urls.append(url) }
        }
        guard !urls.isEmpty else {
            throw RequestBodyError.invalidValue("urls", allowed: "at least one URL")
        }
        return urls
    }

    /// Returns `url` if it is absolute and not too long; `place` is its path for the error.
    private static func checked(_ url: String, _ place: String) throws(RequestBodyError) -> String {
        guard isAbsolute(url), url.utf8.count <= urlBytesMax else {
            throw RequestBodyError.invalidValue(
                place, allowed: "a URL with http:// or https://, of at most \(urlBytesMax) bytes")
        }
        return url
    }

    /// Returns true for a URL that begins with `http://` or `https://`, and has no white space or
    /// control characters.
    static func isAbsolute(_ url: String) -> Bool {
        let lowered = url.prefix(8).lowercased()
        guard lowered.hasPrefix("http://") || lowered.hasPrefix("https://") else { return false }
        return url.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }

    /// Returns true for a valid value of Accept: visible ASCII and blanks, the first not blank.
    private static func isFieldValue(_ text: String) -> Bool {
        1...acceptBytesMax ~= text.utf8.count
            && text.utf8.allSatisfy { 0x20...0x7E ~= $0 } && text.utf8.first != 0x20
    }
}
