import Ground
import HTTPRules
import Testing
import Trials

@Suite struct CacheControlTests {
    private func parse(_ values: String...) -> CacheControl {
        var control = CacheControl()
        for value in values {
            let bytes = ("x: " + value + "\r\n").bytes
            control.add(bytes.span, at: 3..<3 + value.utf8.count)
        }
        return control
    }

    private static let flagTable: [(String, CacheControl.Flags)] = [
        ("no-store", CacheControl.Flags.noStore), ("no-cache", .noCache),
        ("private", .isPrivate), ("public", .isPublic), ("must-revalidate", .mustRevalidate),
        ("proxy-revalidate", .proxyRevalidate), ("must-understand", .mustUnderstand),
        ("immutable", .immutable), ("no-transform", .noTransform),
        ("only-if-cached", .onlyIfCached), ("No-Store", .noStore), ("PRIVATE", .isPrivate),
        (" no-store ", .noStore), (",,no-store,,", .noStore), ("\tno-store\t", .noStore),
        ("no-cache=\"set-cookie\"", []), ("no-cache=\"a, b\"", []),
        ("private=\"a,b\"", []), ("private=a", []), ("no-cache=", .noCache),
        ("no-store=1", .noStore), ("no-store;x", .noStore), ("no-store =x", .noStore),
        ("no-cache, no-store", [.noCache, .noStore]),
        ("no-cache=\"no-store\"", []), ("x=\"no-store, private\", public", .isPublic),
        ("x=\"a\\\", no-store\", public", .isPublic), ("x=\"no-store", []),
        ("", []), (",", []), ("no-stor", []), ("no-store2", []), ("xno-store", []),
        ("no_store", []), ("no store", []), ("=no-store", []), ("\"no-store\"", []),
    ]

    @Test(
        "RFC 9111 §5.2.2: each directive without an argument sets its own flag and no other",
        arguments: flagTable)
    func flags(value: String, flags: CacheControl.Flags) {
        #expect(parse(value).flags == flags)
    }

    @Test(
        "RFC 9111 §1.2.2 and §4.2.1: the argument of max-age",
        arguments: [
            ("max-age=60", 60), ("max-age=0", 0), ("MAX-AGE=60", 60), ("max-age=\"60\"", 60),
            ("max-age=0060", 60), ("max-age=2147483647", 2_147_483_647),
            ("max-age=2147483648", 2_147_483_648), ("max-age=2147483649", 2_147_483_648),
            ("max-age=99999999999999999999999999", 2_147_483_648), ("max-age", 0), ("max-age=", 0),
            ("max-age=-1", 0), ("max-age=+1", 0), ("max-age=1.5", 0), ("max-age=60s", 0),
            ("max-age=abc", 0), ("max-age='60'", 0), ("max-age= 60", 0), ("max-age =60", 0),
            ("max-age=\"60", 0), ("max-age=60\"", 0), ("max-age=\"\"", 0), ("max-age=\"-1\"", 0),
            ("max-age:60", 0), ("max-age=60;x", 0), ("max-age=6 0", 0),
            ("max-age=60, max-age=10", 60), ("max-age=10, max-age=60", 10),
            ("max-age=x, max-age=60", 0), ("a=\"max-age=5\", max-age=60", 60),
        ] as [(String, Int64)])
    func maxAge(value: String, seconds: Int64) {
        #expect(parse(value).maxAge == .seconds(seconds))
    }

    @Test("A directive that only resembles another is ignored (RFC 9111 §5.2.3)")
    func unknown() {
        let control = parse(
            "max-ages=60", "xmax-age=60, s-maxage2=1", "maxage=60", "community=\"UCI\"")
        #expect(control == CacheControl())
    }

    @Test("RFC 9110 §5.3: several lines are one list")
    func lines() {
        let control = parse("max-age=60", "s-maxage=5, public", "stale-if-error=7")
        #expect(control.maxAge == .seconds(60))
        #expect(control.sMaxAge == .seconds(5))
        #expect(control.staleIfError == .seconds(7))
        #expect(control.flags == .isPublic)
        #expect(parse("max-age=1", "max-age=2").maxAge == .seconds(1))
    }

    @Test("RFC 5861 §3 and §4, RFC 9111 §5.2.1: each directive with a number has its own value")
    func numbers() {
        let control = parse(
            "stale-while-revalidate=1, stale-if-error=2, s-maxage=3, max-age=4, min-fresh=5",
            "max-stale=6"
        )
        #expect(control.staleWhileRevalidate == .seconds(1))
        #expect(control.staleIfError == .seconds(2))
        #expect(control.sMaxAge == .seconds(3))
        #expect(control.maxAge == .seconds(4))
        #expect(control.minFresh == .seconds(5))
        #expect(control.maxStale == .seconds(6))
    }

    @Test("RFC 9111 §5.2.1.2: max-stale without a number has no limit")
    func maxStale() {
        #expect(parse("max-stale").maxStale == .seconds(DeltaSeconds.max))
        #expect(parse("max-stale=x").maxStale == .zero)
        #expect(parse("max-age=1").maxStale == nil)
    }

    @Test("Only the Cache-Control lines of a head count")
    func head() {
        let head = ResponseHead(
            200, "Cache-Control: max-age=5", "Pragma: no-cache", "cache-control: private")
        let control = CacheControl(head)
        #expect(control.maxAge == .seconds(5))
        #expect(control.flags == .isPrivate)
    }

    @Test("No value makes the parser fail, and white space around commas is ignored")
    func anyBytes() {
        var dice = SplitMix64(seed: 5)
        for _ in 0..<Trials.count(5000) {
            let value = dice.text(of: "max-age=no-store, \"\\ 19x;\t", upTo: 40)
            let spaced =
                value.contains("\"") || value.contains("\\")
                ? value
                : value.split(
                    separator: ",", omittingEmptySubsequences: false
                ).joined(separator: " ,\t")
            #expect(parse(value) == parse(spaced), "\(value)")
        }
    }
}
