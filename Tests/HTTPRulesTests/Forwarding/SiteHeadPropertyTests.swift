import Ground
import HTTPRules
import Testing

/// Random heads with lines of every kind that is treated specially.
@Suite("Rendered heads of sites never have an injected line")
struct SiteHeadPropertyTests {
    private static let names = [
        "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "Proxy-Connection", "Host",
        "Transfer-Encoding", "Content-Length", "Content-Type", "Content-Encoding", "ETag", "Date",
        "Cache-Control", "Expires", "Age", "Vary", "Via", "X-A", "x-b", "X-Forwarded-For",
        "Forwarded", "Nuthatch-Cache-Control", "CDN-Cache-Control", "xkey", "Set-Cookie", "Range",
        "If-None-Match", "Expect", "Max-Forwards", "Accept", "Accept-Encoding", "Content-Digest",
        "Content-Range", "Last-Modified", "Server", "Cookie", "Content-Security-Policy",
    ]
    private static let oneHop = [
        "connection", "keep-alive", "te", "trailer", "upgrade", "proxy-connection",
        "transfer-encoding",
    ]
    private static let rules = [
        ResponseFieldRules.none,
        ResponseFieldRules(
            removed: ["server", "x-a"], lines: ["X-B: 1", "Content-Type: a/b"], tags: ["xkey"]),
        ResponseFieldRules(control: "max-age=60"),
    ]

    private func randomFields(_ dice: inout SplitMix64) -> [String] {
        (0..<Int.random(in: 0...12, using: &dice)).map { _ in
            let name = Self.names.randomElement(using: &dice) ?? ""
            let value =
                Bool.random(using: &dice)
                ? dice.text(of: "x-ab,\"()\\= ;:0\u{e4}", upTo: 12)
                : ["x-a, close", "\"a\"", "W/\"b\"", "only-if-cached, a", "0", "1.1 nuthatch"]
                    .randomElement(using: &dice) ?? ""
            // A parsed value has no white space at its ends.
            let bytes = value.bytes.span
            var range = 0..<bytes.count
            while let last = range.last, bytes[last] == 0x20 { range.removeLast() }
            return name + ": " + String(latin: bytes.copy(range))
        }
    }

    /// The lines as names and values, after a check of every byte.
    private func check(_ bytes: [UInt8], allowing own: [String] = []) -> [String] {
        let lines = bytes.lines
        #expect(lines.reduce(0) { $0 + $1.unicodeScalars.count + 2 } == bytes.count)
        for (index, line) in lines.enumerated() {
            let scalars = line.unicodeScalars
            #expect(!scalars.contains { $0 == "\r" || $0 == "\n" || $0 == "\0" }, "\(line)")
            if index == 0 || own.contains(line) { continue }
            let name = line.prefix { $0 != ":" }.lowercased()
            #expect(!name.isEmpty && !name.contains(" ") && !Self.oneHop.contains(name), "\(line)")
        }
        return Array(lines.dropFirst())
    }

    @Test("A stored head rendered again from its own lines is the same", arguments: 0..<400)
    func storedTwice(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let rules = Self.rules[Int(seed) % Self.rules.count]
        let response = ResponseHead(status: 200, fields: randomFields(&dice))
        let head = StoredHead(
            response, size: seed, rules: rules, unstored: FieldNames(["set-cookie"]),
            received: WallTime(seconds: 0))
        #expect(check(head.bytes).count { $0.lowercased().hasPrefix("date: ") } >= 1)
        let again = StoredHead(
            ResponseHead(
                status: 200, bytes: head.bytes, lines: StoredHead.lines(head.bytes)),
            size: seed, rules: rules, unstored: FieldNames(), received: WallTime(seconds: 9))
        #expect(again == head)
        #expect(throws: Never.self) { try head.validate(.isDated, size: seed) }
        #expect(head.bytes.count >= head.multipartStart && head.partialStart > 0)
    }

    @Test("Applying an update twice has the same effect as once", arguments: 0..<400)
    func updated(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let head = StoredHead(site: randomFields(&dice), size: 1)
        let facts = EntryMetadata(
            size: 1, generatedAt: .zero, freshUntil: .zero, flags: [], lastModified: nil,
            date: WallTime(seconds: 0), entityTag: head.entityTag)
        let update = ResponseHead(status: 304, fields: randomFields(&dice))
        let merged = head.updated(with: update, metadata: facts)
        let once = StoredHead(merged, size: 1, rules: .none, unstored: FieldNames())
        _ = check(once.bytes)
        let twice = StoredHead(
            once.updated(with: update, metadata: facts), size: 1, rules: .none,
            unstored: FieldNames())
        #expect(twice.fields.sorted() == once.fields.sorted())
    }

    @Test("A forwarded response keeps its lines", arguments: 0..<400)
    func passed(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let response = ResponseHead(status: 418, fields: randomFields(&dice))
        var bytes: [UInt8] = []
        ResponseForwarder.append(
            response, rules: Self.rules[Int(seed) % Self.rules.count], to: &bytes)
        #expect(check(bytes).last == "Via: 1.1 nuthatch")
    }

    @Test("A forwarded request keeps its lines", arguments: 0..<400)
    func request(seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let client = ResponseHead(status: 200, fields: randomFields(&dice))
        var rules = RequestFieldRules(authority: "o".bytes, basePath: "/b".bytes)
        rules.forwarded = [.added, .replaced, .unchanged].randomElement(using: &dice) ?? .added
        rules.normalisesAccept = Bool.random(using: &dice)
        rules.forwardsOthers = Bool.random(using: &dice)
        rules.forwardedNames = FieldNames(["x-a"])
        let outcome = RequestForwarder.forward(
            ForwardedRequest(
                method: "GET".bytes, target: "/".bytes, host: "h".bytes,
                client: IPAddress("::1"), remoteAddress: IPAddress("::1")),
            client.lines, in: client.bytes.span, rules: rules,
            purpose: Bool.random(using: &dice) ? .pass : .store(Validation()))
        guard case .send(let bytes) = outcome else {
            #expect(Via.count(client.lines, in: client.bytes.span) >= 3)
            return
        }
        let lines = check(bytes)
        #expect(bytes.lines.first == "GET /b/ HTTP/1.1" && lines.first == "Host: o")
        #expect(lines.last == "Via: 1.1 nuthatch")
        let refused = ["host:", "content-length:", "expect:"]
        let rest = lines.dropFirst().filter { line in
            refused.contains { line.lowercased().hasPrefix($0) }
        }
        #expect(rest.isEmpty)
    }
}
