/// What is to be fetched before clients ask for it: the body of `POST /admin/v1/prefetches`, either
/// `{"urls": […]}` or `{"sitemap": "…"}`.
package struct PrefetchRequest: Hashable, Sendable {
    package enum Source: Hashable, Sendable {
        /// In the order given, without repeats; at least one.
        case urls([String])
        /// The URL of one.
        case sitemap(String)
    }

    package var source: Source
    /// The value of Accept with which sites and images are asked; it decides which variant is kept.
    package var accept: String

    package init(_ source: Source, accept: String = PrefetchRequest.acceptDefault) {
        self.source = source
        self.accept = accept
    }

    /// Bytes of a body at most.
    package static let bodyBytesMax = 1 << 20
    /// URLs of one prefetch at most, those of a sitemap included.
    package static let urlsMax = 10_000
    /// Bytes of a URL at most.
    package static let urlBytesMax = 8_192
    /// Bytes of Accept at most.
    package static let acceptBytesMax = 256
    package static let acceptDefault = "*/*"
    /// The name of the problem that answers while as many prefetches run as may.
    package static let tooManyProblem = "prefetches-too-many"

    static let schema = JSONSchema.anyOf(
        JSONSchema.object(
            .required(
                "urls",
                JSONSchema.list(of: JSONSchema.text(length: 1...urlBytesMax), count: 1...urlsMax)),
            .optional("accept", acceptSchema, "Decides which variants are kept; */* if not said")),
        JSONSchema.object(
            .required("sitemap", JSONSchema.text(length: 1...urlBytesMax), "The URL of a sitemap"),
            .optional("accept", acceptSchema, "Decides which variants are kept; */* if not said")))

    private static let acceptSchema = JSONSchema.text(length: 1...acceptBytesMax)
}

extension PrefetchRequest: Decodable {
    private static let keys = ["urls", "sitemap", "accept"]

    /// - Throws: ``RequestBodyError``, or the decoder's own errors where the text is no JSON.
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

    private static func checked(_ url: String, _ place: String) throws(RequestBodyError) -> String {
        guard isAbsolute(url), url.utf8.count <= urlBytesMax else {
            throw RequestBodyError.invalidValue(
                place, allowed: "a URL with http:// or https://, of at most \(urlBytesMax) bytes")
        }
        return url
    }

    /// True for what begins as the URL of an image does, and has no white space or control
    /// characters.
    static func isAbsolute(_ url: String) -> Bool {
        let lowered = url.prefix(8).lowercased()
        guard lowered.hasPrefix("http://") || lowered.hasPrefix("https://") else { return false }
        return url.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }

    private static func isFieldValue(_ text: String) -> Bool {
        1...acceptBytesMax ~= text.utf8.count
            && text.utf8.allSatisfy { 0x20...0x7E ~= $0 } && text.utf8.first != 0x20
    }
}
