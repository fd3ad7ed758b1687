import Ground
import HTTPRules
import Testing
import Trials

@Suite struct EffectiveCacheControlTests {
    /// The fields, the source of the effective directives, and their `max-age`.
    private static let choosing: [([String], EffectiveCacheControl.Source, Int64?)] = [
        ([], .none, nil),
        (["Expires: 0"], .none, nil),
        (["Cache-Control: max-age=1"], .cacheControl, 1),
        (["Cache-Control: "], .cacheControl, nil),
        (["CDN-Cache-Control: max-age=2"], .cdn, 2),
        (["CDN-Cache-Control: max-age=2", "Cache-Control: max-age=1"], .cdn, 2),
        (["Cache-Control: no-store", "cdn-cache-control: max-age=2"], .cdn, 2),
        (
            ["CDN-Cache-Control: max-age=2", "Nuthatch-Cache-Control: max-age=3"],
            .nuthatch, 3
        ),
        (["Nuthatch-Cache-Control: max-age=3", "Cache-Control: max-age=1"], .nuthatch, 3),
        (["Nuthatch-Cache-Control: foo", "Cache-Control: max-age=1"], .nuthatch, nil),
        // Empty or invalid: ignored.
        (["CDN-Cache-Control: ", "Cache-Control: max-age=1"], .cacheControl, 1),
        (["CDN-Cache-Control: max-age=2, &&&&&", "Cache-Control: max-age=1"], .cacheControl, 1),
        (["CDN-Cache-Control: max-age =2", "Cache-Control: max-age=1"], .cacheControl, 1),
        (["CDN-Cache-Control: max-age= 2", "Cache-Control: max-age=1"], .cacheControl, 1),
        (["CDN-Cache-Control: MaX-aGe=2", "Cache-Control: max-age=1"], .cacheControl, 1),
        (["CDN-Cache-Control: max-age=2,", "Cache-Control: max-age=1"], .cacheControl, 1),
        (["CDN-Cache-Control: max-age=2;", "Cache-Control: max-age=1"], .cacheControl, 1),
        (["CDN-Cache-Control: private=a b", "Cache-Control: max-age=1"], .cacheControl, 1),
        (["Nuthatch-Cache-Control: =", "CDN-Cache-Control: max-age=2"], .cdn, 2),
        (["Nuthatch-Cache-Control: max-age=\"", "CDN-Cache-Control: ("], .none, nil),
        // RFC 9651 §4.2: several lines are one value, and an invalid line invalidates it.
        (["CDN-Cache-Control: public", "CDN-Cache-Control: max-age=2"], .cdn, 2),
        (["CDN-Cache-Control: max-age=9", "CDN-Cache-Control: max-age=2"], .cdn, 2),
        (["CDN-Cache-Control: max-age=9", "CDN-Cache-Control: !"], .none, nil),
        (["CDN-Cache-Control: max-age=9", "CDN-Cache-Control: "], .none, nil),
        // For other caches.
        (["Surrogate-Control: max-age=9", "Cache-Control: max-age=1"], .cacheControl, 1),
        (["Other-CDN-Cache-Control: max-age=9"], .none, nil),
    ]

    @Test(
        "RFC 9213 §2.2: the first valid, non-empty targeted field for this cache counts",
        arguments: choosing)
    func chosen(fields: [String], source: EffectiveCacheControl.Source, maxAge: Int64?) {
        let found = EffectiveCacheControl(ResponseHead(status: 200, fields: fields))
        #expect(found.source == source)
        #expect(found.control.maxAge == maxAge.map(Interval.seconds))
        #expect(found.usesExpires == (source == .none || source == .cacheControl))
    }

    @Test("RFC 9213 §2.2: without a targeted field for this cache Cache-Control counts")
    func plain() {
        let head = ResponseHead(200, "CDN-Cache-Control: max-age=2", "Cache-Control: max-age=1")
        let found = EffectiveCacheControl(cacheControlOf: head)
        #expect(found.source == .cacheControl && found.control.maxAge == .seconds(1))
    }

    private func targeted(_ value: String) -> CacheControl {
        EffectiveCacheControl(ResponseHead(200, "CDN-Cache-Control: " + value)).control
    }

    private static let lifetimeTable: [(String, Int64?)] = [
        ("max-age=5", 5), ("max-age=5;a;b=2", 5), ("max-age=0", 0),
        ("max-age=2147483649", 2_147_483_648),
        ("max-age=999999999999999", 2_147_483_648), ("max-age=1, max-age=5", 5),
        ("max-age=\"5\"", 0), ("max-age=5.0", 0), ("max-age=-5", 0), ("max-age", 0),
        ("max-age=a", 0), ("max-age=?0", 0), ("max-age=(5)", 0), ("max-age=@5", 0), ("public", nil),
        ("x=1", nil),
    ]

    @Test(
        "RFC 9213 §2.1, RFC 9111 §4.2.1: a lifetime that is not an integer makes it stale",
        arguments: lifetimeTable)
    func lifetimes(value: String, seconds: Int64?) {
        #expect(targeted(value).maxAge == seconds.map(Interval.seconds))
        let shared = value.replacing("max-age", with: "s-maxage")
        #expect(targeted(shared).sMaxAge == seconds.map(Interval.seconds))
    }

    private static let flagTable: [(String, CacheControl.Flags)] = [
        ("no-store", .noStore), ("no-store=?1", .noStore), ("no-store=?0", []),
        ("no-store=1", .noStore),
        ("no-cache", .noCache), ("no-cache=?0", []), ("no-cache=\"\"", .noCache),
        ("no-cache=a", .noCache),
        ("no-cache=\"a\"", []), ("private", .isPrivate), ("private=\"a, b\"", []),
        ("private=\"a b\"", .isPrivate), ("private=(a b)", .isPrivate),
        ("must-revalidate", .mustRevalidate), ("must-revalidate=?0", []),
        ("proxy-revalidate", .proxyRevalidate), ("no-transform", .noTransform),
        ("public", .isPublic), ("public=1", []), ("public=?0", []), ("public=\"a\"", []),
        ("immutable", .immutable), ("immutable=1", []), ("must-understand", .mustUnderstand),
        ("must-understand=a", []), ("no-store;a=b", .noStore),
        ("no-store, must-understand", [.noStore, .mustUnderstand]), ("no-store, no-store=?0", []),
    ]

    @Test(
        "RFC 9213 §2.1: with the wrong type, restrictions apply in full and permissions do not",
        arguments: flagTable)
    func flags(value: String, expected: CacheControl.Flags) {
        #expect(targeted(value).flags == expected)
    }

    @Test("RFC 9213 §2.1: lists of fields are strings, and stale windows are integers")
    func others() {
        let control = targeted(
            "private=\"A, b\", no-cache=\"c\", stale-while-revalidate=3, stale-if-error=\"4\", x=y")
        #expect(control.privateFields.names.map(\.text) == ["a", "b"])
        #expect(control.noCacheFields.names.map(\.text) == ["c"])
        #expect(control.staleWhileRevalidate == .seconds(3))
        #expect(control.staleIfError == nil)
    }

    @Test("RFC 9651 §3.2: of more than 1,024 separators no field is read, whatever it says")
    func huge() {
        for (count, maxAge) in [(1024, 5), (1025, nil)] as [(Int, Int64?)] {
            let keys = (0..<count).map { "k\($0)" }.joined(separator: ",")
            #expect(targeted(keys + ",max-age=5").maxAge == maxAge.map(Interval.seconds))
        }
    }

    @Test("Of more than 8,192 bytes no targeted field is read, however few its separators")
    func long() {
        for (count, maxAge) in [(8192, 5), (8193, nil)] as [(Int, Int64?)] {
            let field = "max-age=5, a=("
            let items = String(repeating: "1 ", count: (count - field.count - 1) / 2)
            let end = String(repeating: " ", count: count - field.count - items.count - 1)
            #expect(targeted(field + items + end + ")").maxAge == maxAge.map(Interval.seconds))
        }
    }

    @Test("No bytes of a targeted field make the node fail")
    func anyBytes() {
        var dice = SplitMix64(seed: 9651)
        for _ in 0..<Trials.count(20_000) {
            let control = targeted(dice.text(of: "ab*1-.9;=, \t()\"\\:?@%0f/é~", upTo: 24))
            #expect(control.maxAge == nil && control.privateFields.isEmpty)
        }
    }
}
