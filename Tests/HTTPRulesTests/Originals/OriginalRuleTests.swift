import HTTPRules
import Testing

@Suite struct OriginalRuleTests {
    @Test(
        "A rule is written as it was read",
        arguments: [
            "imgproxy", "thumbor", "weserv", "nextjs", "imgproxy /img", "imgproxy /a/b%20c:d",
            "imgproxy https://images.example/", "imgproxy /img https://images.example/photos",
            "thumbor https://", "thumbor http://", "nextjs /docs https://www.example.com/",
            "/thumbs/{size}/{original*}", "/resize?src={url}", "/{original}", "/{url*}.webp",
            "/a/{original*}?*",
            "/{a}x{b-c_9}/{original*}?op=thumb&w={w}&empty=", "/t?src={url} https://",
            "/%7Bnot%7D/{original}?a%20b=c%26d", "/@!$&'()*+,;=:/{original}?*",
            "/x{original}y?a=/?:@!$'()*+,;=",
        ])
    func printed(text: String) throws {
        #expect(try OriginalRule(text).description == text)
    }

    @Test(
        "Different spellings of a rule are equal",
        arguments: [
            ("  imgproxy   /img ", "imgproxy /img"),
            ("imgproxy https://images.example /img", "imgproxy /img https://images.example/"),
            ("thumbor HTTPS://", "thumbor https://"),
            ("nextjs HTTP://A.Example:80/b/../c", "nextjs http://a.example/c"),
        ])
    func spellings(text: String, canonical: String) throws {
        #expect(try OriginalRule(text).description == canonical)
        #expect(try OriginalRule(text) == OriginalRule(canonical))
    }

    @Test(
        "An invalid rule is refused with the reason and the offset",
        arguments: [
            ("", OriginalRuleFault.Problem.empty, 0), ("   ", .empty, 0),
            ("imagor", .service, 0), (" Thumbor", .service, 1), ("https://a/", .service, 0),
            ("imgproxy img", .unknownArgument, 9), ("imgproxy ftp://a/", .unknownArgument, 9),
            ("imgproxy /a /b", .pathDuplicated, 12), ("/{url} /b", .pathDuplicated, 7),
            ("imgproxy /", .path, 9), ("imgproxy /a/", .path, 9), ("imgproxy /a?b", .path, 9),
            ("imgproxy /a{b}", .path, 9), ("imgproxy /\u{E9}", .path, 9),
            ("imgproxy http://a http://b", .baseDuplicated, 18), ("imgproxy http:", .base, 9),
            ("imgproxy http://a/?b", .base, 9), ("imgproxy http://a/#b", .base, 9),
            ("imgproxy http://u@a/", .base, 9), ("imgproxy https:///a", .base, 9),
            ("/a#b/{url}", .unescapedByte, 2), ("/{url}/\u{E9}", .unescapedByte, 7),
            ("/{url}?a=b[]", .unescapedByte, 10),
            ("/a\tb/{url}", .unescapedByte, 2), ("/{url}/\"", .unescapedByte, 7),
            ("/a/{url", .braceNotClosed, 3), ("/{url}/{", .braceNotClosed, 7),
            ("/a}/{url}", .braceNotOpened, 2), ("/{url}}", .braceNotOpened, 6),
            ("/{}/{url}", .name, 1), ("/{*}", .name, 1), ("/{a b}/{url}", .unknownArgument, 4),
            ("/{a.b}/{url}", .name, 1), ("/{url**}", .name, 1), ("/{{url}}", .name, 1),
            ("/{a}/{a}/{url}", .nameDuplicated, 5), ("/{a}/{url}?b={a}", .nameDuplicated, 13),
            ("/{a}{url}", .adjacentPlaceholders, 4), ("/thumbs/{size}", .originalMissing, 14),
            ("/", .originalMissing, 1), ("/a?b={c}", .originalMissing, 8),
            ("/a?*", .originalMissing, 4), ("/{url}/{url}", .originalDuplicated, 7),
            ("/{url}/{original}", .originalDuplicated, 7),
            ("/{url}?a={url}", .originalDuplicated, 9),
            ("/{size*}/{url}", .wildcardNotOriginal, 1), ("/a?b={url*}", .wildcardInQuery, 5),
            ("/{url*}/{size}", .afterWildcard, 8), ("/{url}?", .parameter, 7),
            ("/{url}?a", .parameter, 7), ("/{url}?=a", .parameter, 7),
            ("/{url}?a=b&", .parameter, 11), ("/{url}?a=b&&c=d", .parameter, 11),
            ("/{url}?{a}=b", .parameter, 7), ("/{url}?a{b}=c", .parameter, 7),
            ("/{url}?a=b&a=c", .parameterDuplicated, 11), ("/a?b={url}x", .value, 5),
            ("/a?b=x{url}", .value, 5), ("/a?b={c}x{url}", .value, 5),
        ])
    func refused(text: String, problem: OriginalRuleFault.Problem, offset: Int) {
        let fault = #expect(throws: OriginalRuleFault.self) { try OriginalRule(text) }
        #expect(fault?.problem == problem)
        #expect(fault?.offset == offset)
        let line = fault?.description ?? ""
        #expect(line.hasPrefix("at byte \(offset): ") && line.contains("; allowed: "))
        #expect(!line.contains("\n"))
    }

    @Test("A rule has limits")
    func limits() throws {
        let long = "/" + String(repeating: "a", count: OriginalRule.bytesMax - 11) + "{original}"
        #expect(throws: Never.self) { try OriginalRule(long) }
        let fault = #expect(throws: OriginalRuleFault.self) { try OriginalRule(long + "a") }
        #expect(fault?.problem == .tooLong)
        let parameters = (0..<17).map { "p\($0)=1" }
        let some = "/{url}?" + parameters.prefix(16).joined(separator: "&")
        #expect(throws: Never.self) { try OriginalRule(some) }
        let many = "/{url}?" + parameters.joined(separator: "&")
        let other = #expect(throws: OriginalRuleFault.self) { try OriginalRule(many) }
        #expect(other?.problem == .tooManyParameters)
    }

    @Test("The error's line says where, what and what is allowed")
    func line() {
        let fault = #expect(throws: OriginalRuleFault.self) { try OriginalRule("/thumbs/{size}") }
        #expect(
            fault?.description
                == "at byte 14: no placeholder is the original's; "
                + "allowed: one of {original}, {original*}, {url}, {url*}")
    }
}
