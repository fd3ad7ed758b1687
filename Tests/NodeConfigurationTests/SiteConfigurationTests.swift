import Ground
import HTTPRules
import NodeConfiguration
import Telemetry
import Testing

@Suite("Sites from flags, environment and file")
struct SiteConfigurationTests {
    private func settings(_ text: String) throws -> SiteSettings {
        let lines = text.split(separator: "\n").map { "    \($0)\n" }.joined()
        let file = "sites:\n  a.example:\n    origin: http://o.example\n" + lines
        return try resolve(file: file).sites[0].settings
    }

    @Test("A node has no sites by default")
    func none() throws {
        #expect(try resolve().sites.isEmpty)
        #expect(try resolve(file: "sites:\n").sites.isEmpty)
        #expect(try resolve(file: "sites: {}\n").sites.isEmpty)
    }

    @Test("A simple site is a flag, a word of the variable, a list item, or a mapping")
    func plainSites() throws {
        let site = "A.example=http://127.0.0.1:9000/"
        let configurations = [
            try resolve(flags: ["site": [site]]),
            try resolve(environment: ["NUTHATCH_SITE": " \(site)\n"]),
            try resolve(file: "site: ['\(site)']"),
            try resolve(file: "site: \(site)"),
            try resolve(file: "sites:\n  A.example: http://127.0.0.1:9000/\n"),
            try resolve(file: "sites:\n  a.example: {origin: 'http://127.0.0.1:9000'}\n"),
        ]
        for configuration in configurations {
            #expect(configuration.sites.count == 1)
            #expect(configuration.sites[0].name == "a.example")
            #expect(configuration.sites[0].origin.description == "http://127.0.0.1:9000")
            #expect(configuration.sites[0].settings == SiteSettings())
        }
    }

    @Test("A flag replaces the list, and mappings of sites are added to either")
    func sourcesAreJoined() throws {
        let file = """
            site: [b.example=http://o.example]
            sites:
              c.example: http://o.example
              "*": {origin: "http://o.example", grace: 1h}
            """
        #expect(try resolve(file: file).sites.sites.map(\.name) == ["b.example", "c.example", "*"])
        let flags = ["site": ["a.example=http://o.example"]]
        let flagged = try resolve(flags: flags, file: file).sites.sites.map(\.name)
        #expect(flagged == ["a.example", "c.example", "*"])
    }

    @Test("A site alone suffices beyond loopback, and then nothing else may be fetched")
    func siteSuffices() throws {
        let flags = ["listen": ["0.0.0.0:80"], "site": ["*=http://o.example"]]
        #expect(try resolve(flags: flags).allowOrigin.isEmpty)
        let file = "listen: 0.0.0.0:80\nsites: {a.example: 'http://o.example'}\n"
        #expect(try resolve(file: file).allowOrigin.isEmpty)
        #expect(try resolve(flags: ["site": ["*=http://o.example"]]).allowOrigin.isEmpty)
    }

    @Test("Every setting of a site can be set in the file")
    func everySetting() throws {
        var wanted = SiteSettings()
        let edge = Array("a: b".utf8)
        wanted.originHostRule = .name("o.example:81")
        wanted.defaultTTL = .seconds(600)
        wanted.ttlMax = .seconds(86_400)
        wanted.negativeTTLs = [
            .init(status: 404, ttl: .seconds(10)), .init(status: 503, ttl: .zero),
        ]
        wanted.types = SiteMediaTypes(["image/*", "text/css"])
        wanted.objectBytesMax = 1 << 20
        wanted.storesSetCookie = true
        wanted.ignoresCredentials = true
        (wanted.memoryShare, wanted.diskShare) = (25, 100)
        wanted.staleWhileRevalidate = .seconds(30)
        wanted.grace = .seconds(3600)
        wanted.honoursRequestControl = true
        wanted.ignoredQuery = ["utm_*", "fbclid"]
        wanted.methods = ["GET", "HEAD"]
        wanted.upgrades = ["websocket"]
        wanted.forwardedFields = FieldNames(["accept", "x-y"])
        (wanted.forwardsOthers, wanted.forwardsTrailers) = (false, true)
        wanted.removedRequestFields = FieldNames(["cookie"])
        wanted.overriddenRequestFields = [.init(name: Array("X-Edge".utf8), value: edge)]
        wanted.normalisations = [.accept, .acceptEncoding]
        wanted.forwardedFor = .replace
        (wanted.addsVia, wanted.rewritesLocation) = (false, false)
        wanted.clientTTL = .seconds(60)
        wanted.removedResponseFields = FieldNames(["x-powered-by", "server"])
        wanted.overriddenResponseFields = [.init(name: Array("X-Empty".utf8), value: [])]
        wanted.tagFields = FieldNames(["x-tags"])
        wanted.exposesTags = true
        wanted.originals = [
            try OriginalRule("imgproxy /img"), try OriginalRule("/resize?src={url}"),
        ]
        let given = try settings(
            """
            host: O.example:81
            default-ttl: 10m
            ttl-limit: 24h
            negative-ttl: {503: 0s, 404: 10s}
            types: [image/*, Text/css]
            object-limit: 1MiB
            stores-set-cookie: on
            ignore-credentials: on
            memory-share: 25%
            disk-share: 100%
            stale-while-revalidate: 30s
            grace: 1h
            honours-request-control: true
            ignore-query: [utm_*, fbclid]
            methods: [GET, HEAD]
            upgrade: [WebSocket]
            forward-fields: [Accept, X-Y]
            request-trailers: on
            remove-request-fields: Cookie
            set-request-fields: {X-Edge: 'a: b'}
            reduce: [accept, accept-encoding]
            forwarded-for: replace
            via: off
            rewrite-location: off
            client-ttl: 60s
            remove-response-fields: [X-Powered-By, Server]
            set-response-fields: {X-Empty: ''}
            tags: [X-Tags]
            keep-tags: true
            originals: [imgproxy  /img, '/resize?src={url}']
            """)
        #expect(given == wanted)
    }

    @Test("Defaults may be written out, and lists in their other forms")
    func otherForms() throws {
        let defaults = """
            host: origin
            stores-set-cookie: off
            ignore-credentials: off
            stale-while-revalidate: 0s
            grace: 0s
            honours-request-control: false
            methods: []
            forward-fields: all
            forwarded-for: append
            via: on
            tags: [surrogate-key, Cache-Tag, xkey]
            keep-tags: off
            signed: off
            """
        #expect(try settings(defaults) == SiteSettings())
        #expect(try settings("host: client").originHostRule == .client)
        let listed = try settings("negative-ttl: ['410=1m', 404=10s]")
        #expect(try listed == settings("negative-ttl: {404: 10s, 410: 60s}"))
    }

    @Test("The listing is read as the same sites")
    func listing() throws {
        let file = """
            site: [b.example=http://o.example]
            sites:
              "*":
                types: [image/*]
                origin: http://127.0.0.1:9000/base/
                negative-ttl: {404: 10s}
                set-response-fields: {Access-Control-Allow-Origin: '*', X-A: "a \\u0026b \\u003Fb"}
                originals: [imgproxy, "/t/{original*}\\u003Fa={w}\\u0026b=c https://p.example/"]
              "a.example:8080": {origin: "http://o.example", grace: 1h}
            """
        let first = try resolve(file: file)
        #expect(try resolve(file: first.listing.joined(separator: "\n")).sites == first.sites)
        #expect(first.listing.contains("    negative-ttl: {404: 10s}"))
        #expect(first.listing.contains("  a.example:8080:  # n.yaml, line 9"))
    }

    @Test("A site changes live, and the change is reported")
    func changes() throws {
        let file = "sites:\n  a.example: {origin: 'http://o.example', grace: 1h}\n"
        let before = try resolve(file: file)
        let (same, none) = try before.changed(to: try resolve(file: file))
        #expect(none.isEmpty && same.sites == before.sites)
        let next = try resolve(file: file.replacing("1h", with: "2h") + "  '*': http://p.example\n")
        let (after, change) = try before.changed(to: next)
        #expect(after.sites == next.sites)
        #expect(
            change.live.map(\.description) == [
                "site a.example=http://o.example, grace: 1h -> "
                    + "a.example=http://o.example, grace: 2h *=http://p.example"
            ])
        #expect(throws: ConfigurationErrors.self) {
            let beyond = try resolve(file: file + "listen: 0.0.0.0:80\n")
            _ = try beyond.changed(to: try resolve())
        }
    }

    @Test("Every error has its line and what is allowed")
    func faultsAreNamed() {
        let file = """
            sites:
              a.example:
                origin: http://o.example
                defalt-ttl: 10m
                grace: 10
                methods: {GET: 1}
              b example: http://o.example
              c.example: {grace: 1s}
              d.example: ftp://o.example
              e.example: {origin: http://o.example, set-response-fields: {Content-Length: 1}}
              f.example: {origin: http://o.example, negative-ttl: [404=1s, 404=2s]}
            """
        #expect(
            faults(file) == [
                "site a.example: \"defalt-ttl\" (from n.yaml, line 4) is not a setting of a site; "
                    + "perhaps default-ttl",
                "site a.example: grace (from n.yaml, line 5): \"10\" is invalid; "
                    + "allowed: a duration of 0s…3650d in ms, s, m, h, d, e.g. 10m",
                "site a.example: methods (from n.yaml, line 6): the value has the wrong "
                    + "type; allowed: a list of methods, case-sensitive, "
                    + "e.g. [GET, HEAD]",
                "\"b example\" (from n.yaml, line 7) is not a site's host; "
                    + "allowed: *, HOST or HOST:PORT, e.g. www.example.com",
                "site c.example (from n.yaml, line 8): no origin is given; "
                    + "allowed: http://ORIGIN[:PORT][/PATH] or https://ORIGIN[:PORT][/PATH], "
                    + "e.g. http://127.0.0.1:9000",
                "site d.example: origin (from n.yaml, line 9): \"ftp://o.example\" is invalid; "
                    + "allowed: http://ORIGIN[:PORT][/PATH] or https://ORIGIN[:PORT][/PATH], "
                    + "e.g. http://127.0.0.1:9000",
                "site e.example: set-response-fields (from n.yaml, line 10): \"Content-Length\" "
                    + "is invalid; allowed: a mapping of field names to values, without framing "
                    + "and hop-by-hop fields, e.g. {Access-Control-Allow-Origin: \"*\"}",
                "site f.example: negative-ttl (from n.yaml, line 11): \"404\" is given twice; "
                    + "allowed: a mapping or a list of STATUS=DURATION, STATUS of 200…599, "
                    + "e.g. {404: 10s}",
            ])
    }

    @Test("Trust settings of TLS require an origin over TLS")
    func trust() throws {
        let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        let lines = "    origin-ca: ca.pem\n    origin-pins: \(pin)\n"
        let file = "sites:\n  a.example:\n    origin: https://o.example\n" + lines
        let settings = try resolve(file: file).sites[0].settings
        #expect(settings.originCAFile == "ca.pem" && settings.originPins == [pin])
        let plain = "sites:\n  a.example:\n    origin: http://o.example\n" + lines
        #expect(
            faults(plain) == [
                "site a.example (from n.yaml, line 2): origin-ca has no effect without TLS; "
                    + "allowed: with an origin that begins with https://"
            ])
    }

    @Test("An invalid rule is reported with its offset and what is allowed there")
    func originals() throws {
        func reasons(_ value: String) -> [String] {
            let file = "sites: {a.example: {origin: 'http://o.example', originals: \(value)}}"
            return faults(file).map {
                $0.replacing("site a.example: originals (from n.yaml, line 1): ", with: "")
            }
        }
        #expect(
            reasons("'/thumbs/{size}'") == [
                "\"/thumbs/{size}\" is invalid at byte 14: no placeholder is the original's; "
                    + "allowed: one of {original}, {original*}, {url}, {url*}"
            ])
        #expect(reasons("[thumbor, ' thumbor']")[0].hasPrefix("\" thumbor\" is given twice; "))
        let many = (0...8).map { "thumbor /\($0)" }.joined(separator: ", ")
        #expect(
            reasons("[\(many)]")[0].hasPrefix("\"thumbor /8\" exceeds the maximum number; "))
        #expect(try settings("originals: nextjs").originals == [OriginalRule("nextjs")])
        #expect(try settings("originals: []").originals.isEmpty)
    }

    @Test(
        "An invalid value is refused",
        arguments: [
            "host: 'a b'", "host: '*'", "default-ttl: 3651d", "default-ttl: -1s", "ttl-limit: []",
            "types: [image]", "types: ['*/*']", "types: [a/*b]", "object-limit: 0",
            "memory-share: 25", "memory-share: 0%", "memory-share: 101%", "disk-share: +1%",
            "via: yes", "ignore-query: ['*']", "ignore-query: [a*b]", "ignore-query: [a=b]",
            "methods: ['GET ']", "forward-fields: [a b]", "reduce: [cookie]", "forwarded-for: on",
            "set-request-fields: [a]", "set-request-fields: {Host: a}",
            "set-request-fields: {a: ' b'}", "set-request-fields: {a: \"b\\nc\"}",
            "negative-ttl: {404: soon}", "negative-ttl: {99: 1s}", "negative-ttl: {0404: 1s}",
            "negative-ttl: {404: [1s]}", "tags: [[a]]", "keep-tags: {}", "object-limit: 65MiB",
            "remove-response-fields: [Date]", "set-response-fields: {Vary: a}", "tags: [ETag]",
            "remove-request-fields: [Range]", "set-request-fields: {Via: a}", "origin-ca: ''",
            "origin-pins: [sha256/AAAA]", "origin-ca: [a]", "upgrade: [a/1]", "upgrade: [h2c]",
        ])
    func refused(line: String) {
        #expect(throws: ConfigurationErrors.self) { try settings(line) }
    }

    @Test("Two sites with one host are refused, whatever their sources")
    func duplicates() {
        let file = "sites:\n  a.example: http://o.example\n  A.example.: http://p.example\n"
        let twice =
            "site a.example (from n.yaml, line 3) is given twice (also from n.yaml, "
            + "line 2); allowed: each Host once"
        #expect(faults(file) == [twice])
        let flags = ["site": ["a.example=http://o.example"]]
        let both = faults("sites: {a.example: http://o.example}\n", flags: flags)
        #expect(
            both == [
                "site a.example (from n.yaml, line 1) is given twice (also from flag --site); "
                    + "allowed: each Host once"
            ])
    }

    @Test("A value for sites that is no mapping stops the start")
    func noMapping() {
        for text in ["sites: [a]", "sites: a", "sites: {a.example: [b]}", "sites: {[a]: b}"] {
            #expect(faults(text).count == 1, "\(text)")
        }
    }

    @Test("An invalid site flag is reported with the reason")
    func flags() {
        func line(_ site: String) -> String? {
            faults("", flags: ["site": [site]]).first
        }
        let allowed =
            "allowed: *, HOST or HOST:PORT, then =http://ORIGIN[:PORT][/PATH] or =https://…, "
            + "e.g. www.example.com=http://127.0.0.1:9000"
        #expect(
            line("a.example") == "setting site (from flag --site): \"a.example\" is not a site; "
                + allowed)
        #expect(
            line("a=ftp://b.example")
                == "setting site (from flag --site): \"a=ftp://b.example\" is not a site; "
                + allowed)
    }

    @Test("Trusted proxies are networks")
    func trustedProxies() throws {
        let flags = ["trusted-proxy": ["10.0.0.0/8", "::1"]]
        #expect(
            try resolve(flags: flags).trustedProxy.map(\.description) == [
                "10.0.0.0/8", "::1/128",
            ])
    }
}
