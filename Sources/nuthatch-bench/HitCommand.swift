import ArgumentParser
import Ground
import HTTPRules
import Serving
import Store
import Wire

/// Measures the steps of a memory hit, each alone, in nanoseconds.
struct HitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hit", abstract: "Prints the nanoseconds of each step of a memory hit.")

    @Option(help: "Number of times each step is run, at least 1000.")
    var rounds = 2_000_000

    func validate() throws {
        guard rounds >= 1000 else { throw ValidationError("--rounds: at least 1000") }
    }

    func run() throws {
        let short =
            "GET /v1/image?url=http://images.example/photos/7.jpg HTTP/1.1\r\n"
            + "Host: cache.example\r\n\r\n"
        let browser =
            "GET /v1/image?url=http%3A%2F%2Fimages.example%2Fphotos%2F7.jpg HTTP/1.1\r\n"
            + "Host: cache.example\r\nConnection: keep-alive\r\n"
            + "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0\r\n"
            + "Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8\r\n"
            + "Referer: https://shop.example/list?page=2\r\n"
            + "Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en-GB,en;q=0.9\r\n\r\n"
        time("parse, short head") { parse(Array(short.utf8), $0) }
        time("parse, browser's head") { parse(Array(browser.utf8), $0) }
        time("target and key, canonical") { key(Array(short.utf8), $0) }
        time("target and key, percent-encoded") { key(Array(browser.utf8), $0) }
        let url = Array("http://images.example/photos/7.jpg".utf8)
        let signer = URLSigner([SigningKey(secret: Array(repeating: 0x6B, count: 43))])
        let signed = signedTarget(url, signer)
        time("signature, read") { readSigned(signed, $0) }
        time("signature, checked") { checkSigned(url, signer, $0) }
        let store = MemoryStore(
            .init(limitBytes: 256 << 20), hashing: KeyedHash(key0: 1, key1: 2))
        let entries = SyntheticEntries(store: store)
        for number in 0..<10_000 { _ = entries.insert(number, bodyBytes: 1_000) }
        time("hash, look-up and judge among 10,000") { lookUp(store, $0) }
    }

    private func time(_ name: String, _ step: (Int) -> Int) {
        _ = step(rounds / 10)
        let clock = ContinuousClock()
        var sum = 0
        let took = clock.measure { sum = step(rounds) }
        let nanoseconds =
            Double(took.components.seconds) * 1e9 + Double(took.components.attoseconds) / 1e9
        let each = (nanoseconds / Double(rounds) * 10).rounded() / 10
        print("\(name): \(each) ns\(sum == 0 ? " (nothing found)" : "")")
    }

    /// Returns the target for the image at `url`, signed until a distant time.
    private func signedTarget(_ url: [UInt8], _ signer: URLSigner) -> [UInt8] {
        var text = url
        let expiry = WallTime(seconds: 4_102_444_800)
        _ = SignatureBase.makeSignedText(&text, expiry: expiry)
        var target = Array("/v1/image?url=".utf8) + url
        SignatureBase.append(signer.sign(text.span), expiry: expiry, to: &target)
        return target
    }

    private func readSigned(_ target: [UInt8], _ rounds: Int) -> Int {
        var sum = 0
        for _ in 0..<rounds {
            if case .signed(let signed) = SignedTarget.parse(target.span, at: 0..<target.count) {
                sum &+= signed.unsignedTarget.end
            }
        }
        return sum
    }

    private func checkSigned(_ url: [UInt8], _ signer: URLSigner, _ rounds: Int) -> Int {
        let target = signedTarget(url, signer)
        guard case .signed(let signed) = SignedTarget.parse(target.span, at: 0..<target.count)
        else {
            return 0
        }
        var text: [UInt8] = []
        var sum = 0
        for _ in 0..<rounds {
            text.removeAll(keepingCapacity: true)
            text.append(contentsOf: url)
            let key = SignatureBase.makeSignedText(&text, expiry: signed.expiry)
            if signer.accepts(signed.signature, of: text.span) { sum &+= key.count }
        }
        return sum
    }

    private func parse(_ bytes: [UInt8], _ rounds: Int) -> Int {
        var parser = RequestParser()
        var sum = 0
        for _ in 0..<rounds {
            if case .head(let end) = parser.parse(bytes.span, from: 0) { sum &+= end }
        }
        return sum
    }

    private func key(_ bytes: [UInt8], _ rounds: Int) -> Int {
        var parser = RequestParser()
        guard case .head = parser.parse(bytes.span, from: 0) else { return 0 }
        let path = parser.path.range
        var scratch: [UInt8] = []
        var sum = 0
        for _ in 0..<rounds {
            guard case .image(let url) = ImageTarget.parse(bytes.span, at: path) else { return 0 }
            if CacheKey.isCanonical(bytes.span, at: url.range) {
                sum &+= Int(url.count)
            } else {
                _ = CacheKey.normalise(percentEncoded: bytes.span, at: url.range, into: &scratch)
                sum &+= scratch.count
            }
        }
        return sum
    }

    private func lookUp(_ store: MemoryStore, _ rounds: Int) -> Int {
        let keys = (0..<10_000).map(SyntheticEntries.key)
        var sum = 0
        for round in 0..<rounds {
            let key = keys[(round &* 7919) % keys.count]
            let span = key.span
            let hash = store.hash(span, 0..<key.count)
            guard let found = store.find(span, 0..<key.count, hash: hash) else { return 0 }
            let now = Instant(nanoseconds: Int64(round))
            if decideHit(found.metadata, for: [], now: now) == .serve { sum &+= 1 }
        }
        return sum
    }
}
