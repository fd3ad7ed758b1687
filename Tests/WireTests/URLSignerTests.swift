import Dispatch
import Foundation
import Ground
import HTTPRules
import Synchronization
import Testing
import Wire

@Suite("Signing URLs with HMAC-SHA-256")
struct URLSignerTests {
    private static let secret = "0123456789abcdef0123456789abcdef"

    private func signer(_ secrets: String...) -> URLSigner {
        URLSigner(secrets.map { SigningKey(secret: Array($0.utf8)) })
    }

    private func text(_ target: [UInt8], _ expiry: WallTime?) -> [UInt8] {
        var text = target
        _ = SignatureBase.makeSignedText(&text, expiry: expiry)
        return text
    }

    private func sign(_ signer: URLSigner, _ text: [UInt8]) -> Signature {
        signer.sign(text.span)
    }

    private func accepts(_ signer: URLSigner, _ signature: Signature, _ text: [UInt8]) -> Bool {
        signer.accepts(signature, of: text.span)
    }

    private func hex(_ text: String) throws -> Signature {
        let digits = Array(text)
        let bytes = try stride(from: 0, to: digits.count, by: 2).map {
            try #require(UInt8(String(digits[$0...$0 + 1]), radix: 16))
        }
        return Signature(bytes.span)
    }

    @Test(
        "RFC 4231 vectors, with keys shorter and longer than a block",
        arguments: [
            (
                Array(repeating: 0x0B, count: 20), "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                Array("Jefe".utf8), "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
            (
                Array(repeating: 0xAA, count: 131),
                "Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
        ] as [([UInt8], String, String)])
    func standard(secret: [UInt8], text: String, code: String) throws {
        let made = HMACKey(secret).sign(Array(text.utf8).span)
        #expect(try made == hex(code))
    }

    /// The vectors of the page on signed URLs.
    private static let vectors: [(target: String, expiry: Int64?, signature: String)] = [
        ("http://a.example/b", 1_767_225_600, "ulOpNGIaBvswWReDe03BU36EQDG98Xr4bRRGI11qV0o"),
        ("http://a.example/b", nil, "Fmaj6MOkkVTm1vnFkJGNu1IJy1p-PIIzGn5-A_cjcUo"),
        ("http://a.example/%20?q=%2F", nil, "asyvzrlE0nqIZzcUZfcCdu8TaNpTTv07NJ1xR8EmvLI"),
        (
            "//www.example.com/a?b=c", 4_102_444_800,
            "k3BDt7U8-W9EIHrl5V9ofUbXEKximVlgFqysZ_LWeOE"
        ),
    ]

    @Test("The vectors of the page on signed URLs", arguments: vectors)
    func vector(target: String, expiry: Int64?, signature: String) {
        let signed = text(Array(target.utf8), expiry.map { WallTime(seconds: $0) })
        #expect(sign(signer(Self.secret), signed).description == signature)
    }

    @Test("The page has these vectors and no others")
    func pageHasThem() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
        let page = try String(
            contentsOf: root.appending(path: "Sources/HTTPRules/HTTPRules.docc/SignedURLs.md"),
            encoding: .utf8)
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| `") }
        #expect(
            rows.map(String.init)
                == Self.vectors.map { target, expiry, signature in
                    "| `\(target)` | \(expiry.map { "`\($0)` " } ?? "")| `\(signature)` |"
                })
        #expect(page.contains("The secret is `\(Self.secret)`."))
    }

    @Test("A signature is valid with any configured key, at any position")
    func rotation() {
        let old = String(Self.secret.reversed())
        let signed = text(Array("http://a/".utf8), nil)
        let signature = sign(signer(old), signed)
        #expect(accepts(signer(Self.secret, old), signature, signed))
        #expect(sign(signer(old, Self.secret), signed) == signature)
        #expect(!accepts(signer(Self.secret), signature, signed))
    }

    @Test("Flipping any bit of target, expiry or signature invalidates it")
    func bits() throws {
        var dice = SplitMix64(seed: 73)
        let signer = signer(Self.secret)
        for _ in 0..<500 {
            let count = Int.random(in: 1...90, using: &dice)
            let target = (0..<count).map { _ in UInt8.random(in: 0x21...0x7E, using: &dice) }
            let seconds = Int64.random(in: 1...253_402_300_799, using: &dice)
            let expiry = WallTime(seconds: seconds)
            let signed = text(target, expiry)
            let signature = sign(signer, signed)
            #expect(accepts(signer, signature, signed))
            var other = target
            other[Int.random(in: 0..<count, using: &dice)] ^=
                1 << UInt8.random(in: 0..<8, using: &dice)
            #expect(!accepts(signer, signature, text(other, expiry)))
            let later = WallTime(seconds: seconds ^ 1 << Int64.random(in: 0..<38, using: &dice))
            #expect(!accepts(signer, signature, text(target, later)))
            #expect(!accepts(signer, signature, text(target, nil)))
            var letters = Array(signature.description.utf8)
            letters[Int.random(in: 0..<43, using: &dice)] ^=
                1 << UInt8.random(in: 0..<8, using: &dice)
            if let wrong = Signature(base64URL: letters.span, at: 0..<43) {
                #expect(!accepts(signer, wrong, signed))
            }
        }
    }

    @Test("Threads sign concurrently with one key")
    func threads() {
        let signer = signer(Self.secret)
        let signed = text(Array("http://a/".utf8), nil)
        let expected = sign(signer, signed)
        let wrong = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            let count = (0..<2_000).count { _ in !accepts(signer, expected, signed) }
            wrong.withLock { $0 += count }
        }
        #expect(wrong.withLock { $0 } == 0)
    }
}
