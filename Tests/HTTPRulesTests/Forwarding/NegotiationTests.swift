import Ground
import HTTPRules
import Testing
import Trials

@Suite struct NegotiationTests {
    private func reduce(accept: [String] = [], encoding: [String] = []) -> Negotiation {
        var rules = NegotiationNormaliser()
        for value in accept {
            let bytes = ("," + value + ",image/avif").bytes
            rules.addAccept(bytes.span, at: 1..<1 + value.utf8.count)
        }
        for value in encoding {
            let bytes = ("," + value + ",br").bytes
            rules.addAcceptEncoding(bytes.span, at: 1..<1 + value.utf8.count)
        }
        return rules.negotiation
    }

    private static let accepts: [(String, Negotiation)] = [
        ("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8", [.avif, .webp, .svg]),
        (
            "image/avif,image/jxl,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
            [.avif, .webp, .jxl, .svg]
        ),
        (
            "image/webp,image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5",
            [.webp, .svg]
        ),
        ("*/*", []), ("image/*", []), ("", []), (",,", []), ("text/html", []),
        ("image/avif", .avif), ("IMAGE/AVIF", .avif), (" image/webp ", .webp), ("image/jxl", .jxl),
        ("image/svg+xml", .svg), ("image/svg", []), ("image/avif2", []), ("ximage/avif", []),
        ("image/avif;q=0", []), ("image/avif; q=0.0", []), ("image/avif;q=0.000", []),
        ("image/avif;Q=0", []), ("image/avif ; q=0", []), ("image/avif;q=0.", []),
        ("image/avif;q=0.001", .avif), ("image/avif;q=1", .avif), ("image/avif;q=0.5", .avif),
        ("image/avif;q=00.1", .avif), ("image/avif;v=1;q=0", []), ("image/avif;q=0;v=1", []),
        ("image/avif;v=\"q=0\"", .avif), ("image/avif;v=\",\";q=0,image/webp", .webp),
        ("image/avif;v=\"a,image/webp\"", .avif), ("image/avif;xq=0", .avif),
        ("image/avif;", .avif),
        ("image/avif;q=x", .avif), ("image/avif;q=", .avif), ("image/avif;q", .avif),
        ("image/avif,image/avif;q=0", []), ("image/avif;q=0,image/avif", []),
        ("image/avif image/webp", []), ("image/avif x,image/webp", .webp),
        ("image/webp\timage", []),
        ("image/ avif", []), ("\"image/avif\"", []), ("image/avif\"", []),
        ("\u{E9},image/jxl", .jxl),
    ]

    @Test("RFC 9110 §12.5.1: Accept is reduced to the types it names", arguments: accepts)
    func accept(value: String, expected: Negotiation) {
        #expect(reduce(accept: [value]) == expected)
    }

    private static let encodings: [(String, Negotiation)] = [
        ("gzip, deflate, br, zstd", .brotli), ("gzip, deflate, br", .brotli),
        ("gzip, deflate", .gzip),
        ("gzip", .gzip), ("x-gzip", .gzip), ("GZIP", .gzip), ("br", .brotli), ("Br", .brotli),
        ("identity", []), ("", []), ("*", []), ("deflate", []), ("zstd", []), ("gzip;q=0", []),
        ("br;q=0, gzip", .gzip), ("br;q=0,gzip;q=0", []), ("br;q=0.1,gzip;q=1.0", .brotli),
        ("*;q=0", []), ("gzip, *;q=0", .gzip), ("brotli", []), ("xgzip", []), ("gzip2", []),
        ("gzip br", []), ("identity;q=0, gzip", .gzip), (",gzip ,", .gzip),
    ]

    @Test("RFC 9110 §12.5.3: Accept-Encoding is reduced to one coding", arguments: encodings)
    func encoding(value: String, expected: Negotiation) {
        #expect(reduce(encoding: [value]) == expected)
    }

    @Test("RFC 9110 §5.3: several lines are one list")
    func lines() {
        #expect(reduce(accept: ["image/avif", "image/webp"]) == [.avif, .webp])
        #expect(reduce(accept: ["image/avif;q=0", "image/avif"]) == [])
        #expect(reduce(accept: ["image/jxl"], encoding: ["gzip", "br"]) == [.jxl, .brotli])
    }

    @Test("A reduced value reduces to itself")
    func rendered() {
        for bits in UInt8(0)..<64 {
            let negotiation = Negotiation(rawValue: bits)
            if negotiation.isSuperset(of: [.brotli, .gzip]) { continue }
            var accept: [UInt8] = []
            NegotiationNormaliser.appendAccept(negotiation, to: &accept)
            var encoding: [UInt8] = []
            NegotiationNormaliser.appendAcceptEncoding(negotiation, to: &encoding)
            #expect(reduce(accept: [accept.text], encoding: [encoding.text]) == negotiation)
            #expect(accept.text.hasSuffix("image/*,*/*;q=0.8"))
        }
        var plain: [UInt8] = []
        NegotiationNormaliser.appendAccept([.avif, .webp, .svg, .jxl], to: &plain)
        #expect(plain.text == "image/avif,image/webp,image/jxl,image/svg+xml,image/*,*/*;q=0.8")
    }

    @Test("No input makes the reader leave its range, and at most one coding is left")
    func anyBytes() {
        var dice = SplitMix64(seed: 4)
        for _ in 0..<Trials.count(5000) {
            let value = dice.text(of: "image/avfgzipbr,;q=0. \"\\*", upTo: 40)
            let found = reduce(accept: [value], encoding: [value])
            #expect(!found.isSuperset(of: [.brotli, .gzip]))
        }
    }
}
