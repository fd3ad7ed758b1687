import Ground
import HTTPRules
import Testing

@Suite("PURGE requests")
struct PurgeCommandTests {
    private func command(
        _ target: String, _ fields: String..., isSecure: Bool = false, host: String = "a.test",
        siteKey: String? = nil
    ) throws(PurgeCommandFault) -> PurgeCommand {
        let head = ResponseHead(status: 200, fields: fields)
        return try PurgeCommand(
            isSecure: isSecure, authority: host.bytes, target: target.bytes,
            siteKey: siteKey?.bytes, head.lines, in: head.bytes.span)
    }

    @Test("A URL has the name that a GET would have")
    func url() throws {
        #expect(try command("/x?y").targets == [.url("a.test/x?y".bytes)])
        #expect(
            try command("/x", isSecure: true, host: "A.test:8443").targets
                == [.url("a.test:8443/x".bytes)])
        #expect(try command("/x").isSoft == false)
    }

    @Test("A path that ends in a slash and a star is a prefix")
    func star() throws {
        #expect(
            try command("/img/*").targets == [.prefix(host: "a.test".bytes, path: "/img/".bytes)])
        #expect(try command("/*").targets == [.prefix(host: "a.test".bytes, path: [])])
        for target in ["/img*", "/*/x", "/x?/*", "/img/%2A"] {
            #expect(try command(target).targets == [.url("a.test\(target)".bytes)])
        }
    }

    @Test("The URL of a site is purged as sent, even if it is not a valid URL")
    func sites() throws {
        let sites = SiteTable([
            Site(try #require(SitePattern("a.test")), origin: try BaseURL("http://o.test"))
        ])
        func names(_ target: String, _ fields: String..., key: String?) throws -> [PurgeTarget] {
            let field = fields.first ?? "Accept: */*"
            return try command(target, field, siteKey: key).expanded(sites)
        }
        #expect(try names("/x", key: "//a.test/x") == [.url("a.test/x".bytes)])
        #expect(
            try names("/%7Ex", key: "//a.test/%7Ex#https")
                == [.url("a.test/~x".bytes), .url("a.test/%7Ex".bytes)])
        #expect(try names("/%zz", key: "//a.test/%zz") == [.url("a.test/%zz".bytes)])
        #expect(throws: PurgeCommandFault.target(.url(.escape(offset: 14)))) {
            try names("/%zz", key: nil)
        }
        #expect(throws: PurgeCommandFault.target(.url(.escape(offset: 14)))) {
            try names("/%zz/*", key: "//a.test/%zz/*")
        }
        #expect(
            try names("/x/*", key: "//a.test/x/*")
                == [.prefix(host: "a.test".bytes, path: "/x/".bytes)])
        #expect(try names("/x", "xkey: t", key: "//a.test/x") == [.tag("t".bytes)])
    }

    @Test("Tags replace the URL")
    func tags() throws {
        #expect(
            try command("/x", "Surrogate-Key: a b", "xkey: c,a").targets
                == [.tag("a".bytes), .tag("b".bytes), .tag("c".bytes)])
        #expect(
            try command("/x", "Cache-Tag: a b, c").targets == [.tag("a b".bytes), .tag("c".bytes)])
        #expect(try command("/x", "Cache-Tag: ").targets == [.url("a.test/x".bytes)])
    }

    @Test("A regular expression with .* is a prefix: everything below the last slash before it")
    func expression() throws {
        for (target, path) in [
            ("/.*", ""), ("/blog/.*", "/blog/"), ("/wp-content/themes.*", "/wp-content/"),
            ("/.*news.*", ""), ("/a/.*?b", "/a/"), ("/a/.*/c/*", "/a/"),
        ] {
            #expect(
                try command(target).targets
                    == [.prefix(host: "a.test".bytes, path: path.bytes)], "\(target)")
        }
        for target in ["/a.b*", "/x?.*"] {
            #expect(try command(target).targets == [.url("a.test\(target)".bytes)])
        }
    }

    @Test(
        "The expressions of plug-ins for Varnish are lists of tags",
        arguments: [
            "p-1|site-1|a-2", "p-1 site-1 a-2", "p-1,site-1,a-2", #"\bp-1\b|site-1|\ba-2\b"#,
            #"(^|,)(p\-1|site\-1|a\-2)(,|$)"#, "((^|,)p-1(,|$))|((^|,)site-1(,|$))|(a-2)",
            "^p-1$|site-1|a-2|",
        ])
    func patterns(value: String) throws {
        let expected = ["p-1", "site-1", "a-2"].map { PurgeTarget.tag($0.bytes) }
        for name in [
            "Cache-Tags", "Purge-Cache-Tags", "X-Cache-Tags", "X-Cache-Tags-Pattern",
            "X-Magento-Tags-Pattern",
        ] {
            #expect(try command("/", "\(name): \(value)").targets == expected)
        }
        #expect(try command("/", "xkey-purge: p-1 site-1", "xkey: a-2").targets.count == 3)
    }

    @Test("A dot and a colon in an expression stand for themselves")
    func drupal() throws {
        #expect(
            try command("/tags", "Cache-Tags: node:1|config:system.site").targets
                == [.tag("node:1".bytes), .tag("config:system.site".bytes)])
    }

    @Test(
        "Another expression is refused, and not taken for a tag",
        arguments: [
            "..*", "node:.*", "p-[0-9]", "a(b|c)", "(a)b", #"p\d"#, #"a\"#, "a+", "a{2}", "a?",
            "$a", "a^",
        ])
    func otherPatterns(value: String) {
        #expect(throws: PurgeCommandFault.tagPattern) { try command("/", "Cache-Tags: \(value)") }
    }

    @Test("The expression .* covers everything, and a path in X-Url is refused")
    func everything() throws {
        #expect(try command("/", "X-Magento-Tags-Pattern: .*").targets == [.everything])
        #expect(throws: PurgeCommandFault.tagPattern) { try command("/", "X-Url: /news/.*") }
        // Without a tag the URL would be purged instead.
        for value in ["^", "|", ""] {
            #expect(throws: PurgeCommandFault.tagPattern) {
                try command("/", "X-Cache-Tags-Pattern: \(value)")
            }
        }
        #expect(
            try command("/", "X-Url: .*", "X-Cache-Tags: (^|,)(a)(,|$)").targets
                == [.tag("a".bytes)])
    }

    @Test("xkey-softpurge makes a purge soft, xkey-purge hard")
    func softKeys() throws {
        let soft = try command("/", "xkey-softpurge: a b")
        #expect(soft.isSoft && soft.targets == [.tag("a".bytes), .tag("b".bytes)])
        #expect(try command("/", "xkey-purge: a").isSoft == false)
    }

    @Test("Fastly-Soft-Purge makes a purge soft")
    func soft() throws {
        #expect(try command("/x", "Fastly-Soft-Purge: 1").isSoft)
        #expect(try command("/x", "FASTLY-SOFT-PURGE: 0").isSoft == false)
        for value in ["", "true", "2", "11"] {
            #expect(throws: PurgeCommandFault.softPurgeValue) {
                try command("/x", "Fastly-Soft-Purge: \(value)")
            }
        }
        #expect(throws: PurgeCommandFault.softPurgeValue) {
            try command("/x", "Fastly-Soft-Purge: 1", "Fastly-Soft-Purge: 1")
        }
    }

    @Test("A request that cannot be executed exactly is refused")
    func refusals() throws {
        let tags = (0..<257).map { "t\($0)" }
        #expect(
            try command("/x", "xkey: \(tags.dropLast().joined(separator: " "))").targets.count
                == 256)
        for fields in [
            "xkey: \(tags.joined(separator: " "))",
            "xkey: a \(String(repeating: "x", count: 1025))",
            "xkey-purge: \(tags.joined(separator: " "))",
            "xkey-purge: a \(String(repeating: "x", count: 1025))",
        ] {
            #expect(throws: PurgeCommandFault.tooManyTags) { try command("/x", fields) }
        }
        #expect(throws: PurgeCommandFault.target(.tagControl)) { try command("/x", "xkey: a\0b") }
        #expect(throws: PurgeCommandFault.target(.url(.hostEmpty(offset: 0)))) { try command("*") }
        #expect(throws: PurgeCommandFault.target(.url(.escape(offset: 14)))) { try command("/%zz") }
        for fault in [.softPurgeValue, .tooManyTags, .tagPattern, .target(.tagEmpty)]
            as [PurgeCommandFault]
        {
            let problem = ProblemDocument(fault)
            #expect(problem.status == 400 && problem.detail.hasSuffix("Nothing was purged."))
        }
    }
}
