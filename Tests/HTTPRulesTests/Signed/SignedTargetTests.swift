import Ground
import HTTPRules
import Testing
import Trials

@Suite("Parsing of signed URLs")
struct SignedTargetTests {
    private static let letters = "ulOpNGIaBvswWReDe03BU36EQDG98Xr4bRRGI11qV0o"

    private func read(_ target: String) -> SignedTargetParse {
        let bytes = ("GET " + target + " HTTP/1.1").bytes
        return SignedTarget.parse(bytes.span, at: 4..<4 + target.utf8.count)
    }

    /// The target without its parameters, and the expiry; `nil` if it is not signed.
    private func parts(_ target: String) -> (bare: String, expiry: Int64?)? {
        guard case .signed(let signed) = read(target) else { return nil }
        #expect(signed.signature.description == Self.letters)
        return (("GET " + target).bytes.text(signed.unsignedTarget), signed.expiry?.seconds)
    }

    @Test(
        "The target is everything before the two parameters",
        arguments: [
            ("/a?S", "/a", nil), ("/a?expires=5&S", "/a", 5), ("/a?b=c&S", "/a?b=c", nil),
            ("/a?b=c&d&expires=253402300799&S", "/a?b=c&d", 253_402_300_799),
            ("/a?&S", "/a?", nil), ("?S", "", nil), ("/a?b?c&S", "/a?b?c", nil),
            ("/a&expires=1?S", "/a&expires=1", nil),
            (
                "/a?expiress=1&signatur=2&S",
                "/a?expiress=1&signatur=2", nil
            ), ("/a?Expires=1&S", "/a?Expires=1", nil),
            ("/a?%65xpires=1&S", "/a?%65xpires=1", nil),
        ] as [(String, String, Int64?)])
    func found(target: String, bare: String, expiry: Int64?) throws {
        let found = try #require(
            parts(target.replacing("S", with: "signature=" + Self.letters)))
        #expect(found.bare == bare && found.expiry == expiry)
    }

    @Test(
        "A target without a signature parameter is unsigned",
        arguments: [
            "", "/", "*", "/a?", "/a?b", "/a?expires=5", "/a?expires=5&expires=6",
            "/a?expires=5&b=c", "/signature=S", "/a&signature=S", "/a?b=signature=S",
            "/a?Signature=S", "/a?%73ignature=S", "/a?signatures=S", "/a?b?signature=S",
        ])
    func unsigned(target: String) {
        #expect(read(target.replacing("S", with: Self.letters)) == .unsigned)
    }

    @Test(
        "A misplaced, repeated or malformed signature is refused with the reason",
        arguments: [
            ("/a?S&", .signatureNotLast), ("/a?S&b=c", .signatureNotLast),
            ("/a?S&b&expires=5", .signatureNotLast), ("/a?S&S", .signatureDuplicated),
            ("/a?S&b=c&S", .signatureDuplicated), ("/a?expires=5&expires=5&S", .expiresDuplicated),
            ("/a?S&expires=5", .expiresMisplaced), ("/a?expires=5&b=c&S", .expiresMisplaced),
            ("/a?expires=5&&S", .expiresMisplaced),
            ("/a?expires=5&S&expires=5", .expiresDuplicated),
            ("/a?expires=&S", .expiresSyntax), ("/a?expires&S", .expiresSyntax),
            ("/a?expires=0&S", .expiresSyntax), ("/a?expires=05&S", .expiresSyntax),
            ("/a?expires=+5&S", .expiresSyntax), ("/a?expires=5.0&S", .expiresSyntax),
            ("/a?expires=%35&S", .expiresSyntax), ("/a?expires=253402300800&S", .expiresSyntax),
            ("/a?expires=1767225600000&S", .expiresSyntax), ("/a?signature", .signatureSyntax),
            ("/a?signature=", .signatureSyntax), ("/a?signature=abc", .signatureSyntax),
            ("/a?S=", .signatureSyntax), ("/a?SA", .signatureSyntax),
            ("/a?signature=+lOpNGIaBvswWReDe03BU36EQDG98Xr4bRRGI11qV0o", .signatureSyntax),
            ("/a?signature=ulOpNGIaBvswWReDe03BU36EQDG98Xr4bRRGI11qV0p", .signatureSyntax),
        ] as [(String, SignatureFault)])
    func malformed(target: String, fault: SignatureFault) {
        let whole = target.replacing("S", with: "signature=" + Self.letters)
        #expect(read(whole) == .malformed(fault))
        #expect(!fault.message.isEmpty)
    }

    @Test("Appended parameters are parsed again, whatever the target")
    func appendedIsRead() {
        var dice = SplitMix64(seed: 71)
        for _ in 0..<Trials.count(3_000) {
            let target = "/" + dice.text(of: "ab?&=%/.", upTo: 12)
            let bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &dice) }
            let signature = Signature(bytes.span)
            let seconds = Int64.random(in: 1...253_402_300_799, using: &dice)
            let expiry = Bool.random(using: &dice) ? WallTime(seconds: seconds) : nil
            var whole = target.bytes
            SignatureBase.append(signature, expiry: expiry, to: &whole)
            let read = SignedTarget.parse(whole.span, at: 0..<whole.count)
            let expected = SignedTarget(
                unsignedTarget: Extent(start: 0, count: target.utf8.count), expiry: expiry,
                signature: signature)
            #expect(read == .signed(expected), "\(whole.text)")
        }
    }

    @Test("A signature has one spelling, and any other bit makes another")
    func spelling() {
        var dice = SplitMix64(seed: 72)
        for _ in 0..<200 {
            var bytes = (0..<32).map { _ in UInt8.random(in: 0...255, using: &dice) }
            let signature = Signature(bytes.span)
            let letters = signature.description.bytes
            #expect(letters.count == 43)
            let read = Signature(base64URL: letters.span, at: 0..<letters.count)
            #expect(read == signature && read?.isSame(as: signature) == true)
            let bit = Int.random(in: 0..<256, using: &dice)
            bytes[bit / 8] ^= 1 << UInt8(bit % 8)
            let other = Signature(bytes.span)
            #expect(!other.isSame(as: signature))
        }
    }

    @Test("A URL is valid before its expiry, and a forged one is never reported as expired")
    func outcomes() {
        let signature = Signature([UInt8](repeating: 7, count: 32).span)
        let until = WallTime(seconds: 100)
        let limited = SignedTarget(unsignedTarget: .empty, expiry: until, signature: signature)
        #expect(
            limited.result(isAuthentic: true, now: WallTime(seconds: 99)) == .valid(until: until))
        #expect(
            limited.result(isAuthentic: true, now: until) == .refused(.expired(at: until)))
        #expect(limited.result(isAuthentic: false, now: until) == .refused(.forged))
        let lasting = SignedTarget(unsignedTarget: .empty, expiry: nil, signature: signature)
        #expect(lasting.result(isAuthentic: true, now: until) == .valid(until: nil))
    }

    @Test("Each refusal has a problem document of its own")
    func problems() {
        let refusals: [SignatureRefusal] = [
            .unsigned, .malformed(.expiresSyntax), .forged, .expired(at: WallTime(seconds: 5)),
        ]
        let documents = refusals.map { ProblemDocument($0) }
        #expect(documents.map(\.status) == [403, 400, 403, 410])
        #expect(
            documents.map(\.name) == [
                "url-unsigned", "url-signature-malformed", "url-signature", "url-expired",
            ])
    }
}
