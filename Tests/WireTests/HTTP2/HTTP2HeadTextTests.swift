import Ground
import Testing
import Wire

/// HTTP/2 heads as HTTP/1.1 text, read by its parser.
@Suite struct HTTP2HeadTextTests {
    @Test(
        "A head has exactly as many lines as fields, whatever they contain", arguments: 0..<500)
    func lines(_ seed: UInt64) {
        var dice = SplitMix64(seed: seed)
        let bench = ServerBench().greet()
        var fields: [(String, String)] = [
            (":method", word(&dice, "GETPOS")), (":scheme", "https"),
            (":path", "/" + value(&dice)),
        ]
        if Bool.random(using: &dice) { fields.append((":authority", value(&dice))) }
        for _ in 0..<Int.random(in: 0..<8, using: &dice) {
            fields.append((name(&dice), value(&dice)))
        }
        let hasBody = Bool.random(using: &dice)
        bench.send([
            .headers(1, RawHPACK.fields(fields), hasBody ? RawFrame.endHeaders : 5)
        ])
        guard case .request(1, let head, _)? = bench.events.first else { return }
        let bytes = head.unicodeScalars.map { UInt8($0.value) }
        var parser = RequestParser()
        let result = parser.parse(bytes.span, from: 0)
        guard case .head(let end) = result else {
            guard case .refused(let refusal) = result else {
                Issue.record("a head that goes on: \(head.debugDescription)")
                return
            }
            if case .line = refusal { Issue.record("\(refusal) in \(head.debugDescription)") }
            return
        }
        #expect(end == bytes.count)
        #expect(parser.fields.count == bench.lastLinesCount)
        #expect((parser.framing == .none) != hasBody)
    }

    private func word(_ dice: inout SplitMix64, _ letters: String) -> String {
        let count = Int.random(in: 1...4, using: &dice)
        return String((0..<count).map { _ in letters.randomElement(using: &dice) ?? "A" })
    }

    private func name(_ dice: inout SplitMix64) -> String {
        let names = [
            "cookie", "host", "te", "expect", "content-length", "x-a", "x\r\ny", "x:y", "x y", "X",
            "connection", "transfer-encoding", "priority", "", "x\0", "accept",
        ]
        return names.randomElement(using: &dice) ?? ""
    }

    private func value(_ dice: inout SplitMix64) -> String {
        let pieces = [
            "a", "\r\n", "\n", "\r", "\0", " ", "\t", ":", "5", "trailers", "\u{E9}", "\u{7F}",
            "a.example", "\u{1}", "b=c", "#", "%", "[", "\u{A0}",
        ]
        let count = Int.random(in: 0...3, using: &dice)
        return (0..<count).map { _ in pieces.randomElement(using: &dice) ?? "" }.joined()
    }
}
