import Ground

/// A seeded generator of valid and invalid messages from a grammar, with mutations.
struct MessageGenerator {
    var dice: SplitMix64

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
    }

    /// One to three pipelined requests, some of them damaged.
    mutating func requests() -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0...below(3) { bytes += request() }
        return mutated(bytes)
    }

    /// One to three responses in sequence, some of them damaged.
    mutating func responses() -> [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0...below(3) { bytes += response() }
        return mutated(bytes)
    }

    private mutating func below(_ bound: Int) -> Int {
        Int.random(in: 0..<bound, using: &dice)
    }

    private mutating func chance(_ oneIn: Int) -> Bool {
        below(oneIn) == 0
    }

    private mutating func pick(_ choices: [String]) -> String {
        choices[below(choices.count)]
    }

    /// A random choice, usually the first.
    private mutating func mostly(_ usual: String, _ others: [String]) -> String {
        chance(30) ? pick(others) : usual
    }

    private mutating func request() -> [UInt8] {
        let method = pick(["GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PURGE"])
        let target = mostly(
            pick(["/", "/v1/image?url=http%3A%2F%2Fa%2Fb", "/a/b?c=d&e", "//x", "/%zz", "/{|}\"<>"]
            ),
            [
                "*", "a", "http://a/b", "https://u@b", "http://[::1]:8/?q", "ftp://a/", "/#f",
                "/\u{E9}", "",
            ])
        let version = mostly(
            chance(6) ? "HTTP/1.0" : "HTTP/1.1",
            ["HTTP/0.9", "HTTP/2.0", "http/1.1", "HTTP/11", "HTTP/1.1 ", "ICE/1.0", ""])
        var text = mostly("", ["\r\n", "\n", "\r\n\r\n", " "])
        text += method + mostly(" ", ["  ", "\t", ""]) + target + mostly(" ", ["  ", "\t"])
        text += version + lineEnd()
        if !chance(40) {
            text += "Host: " + mostly("a.example", ["", "b c", "[::1]:80", "a:b"]) + lineEnd()
        }
        return latin1(text + fields() + framing(isRequest: true))
    }

    private mutating func response() -> [UInt8] {
        let version = mostly(
            chance(6) ? "HTTP/1.0" : "HTTP/1.1",
            ["HTTP/2.0", "ICY", "http/1.1", "HTTP/0.9"])
        let status = pick(["200", "200", "200", "404", "304", "204", "206", "100", "103", "500"])
        let reason = mostly(" OK", ["", " ", " O\u{E9}", "  x", " a\tb", "\tx", " \0"])
        let text =
            version + mostly(" ", ["  ", ""]) + mostly(status, ["20", "2000", "099", "600", "+20"])
        return latin1(text + reason + lineEnd() + fields() + framing(isRequest: false))
    }

    private mutating func lineEnd() -> String {
        chance(200) ? pick(["\n", "\r", "\r\r\n", "\n\r\n", " \r\n", "\r\n "]) : "\r\n"
    }

    private mutating func fields() -> String {
        var text = ""
        for _ in 0..<below(5) {
            let name = mostly(
                pick([
                    "Accept", "User-Agent", "X-1", "a", "ETag", "If-None-Match", "Expect-CT",
                    "!#$%&'*+.^_`|~",
                ]),
                ["", "A B", "A ", " A", "A\u{E9}", "A(", "A\0", "Content-Length", "Connection"])
            let value = mostly(
                pick([
                    "*/*", "a, b", "", "caf\u{C3}\u{A9}", "\u{FF}", "\"x\"", "a\tb", "  a  ", "a:b",
                ]),
                ["\0", "\u{1}", "\u{7F}", "a\rb", "a\nb", "a\r\n b", "\u{B}"])
            text += name + ":" + pick(["", " ", "\t", "  "]) + value + pick(["", "", " ", "\t"])
            text += lineEnd()
        }
        if chance(4) {
            let options = pick([
                "close", "keep-alive", "Close", "Keep-Alive", "x, close", "close, x", "closed", "x",
            ])
            text += "Connection: " + options + lineEnd()
        }
        return text
    }

    private mutating func framing(isRequest: Bool) -> String {
        let body = String("0123456789abcdef".prefix(below(17)))
        let count = body.utf8.count
        switch below(5) {
        case 0 where isRequest: return lineEnd()
        case 0, 1, 2:
            let length = mostly(
                "\(count)",
                [
                    "+\(count)", "-1", "", "\(count), \(count)", "0x5", "99999999999999999999",
                    "00\(count)", "\(count)x",
                ])
            var text = "Content-Length: " + length + lineEnd()
            if chance(40) { text += "content-length: \(pick(["\(count)", "7"]))" + lineEnd() }
            if chance(40) { text += "Transfer-Encoding: chunked" + lineEnd() }
            return text + lineEnd() + body
        default:
            var text =
                "Transfer-Encoding: "
                + mostly(
                    pick(["chunked", "Chunked", "chunked "]),
                    [
                        "gzip, chunked", "chunked, gzip", "gzip", "", "chunked, chunked",
                        ",chunked", "chunke", "x chunked",
                    ])
            text += lineEnd()
            if chance(40) {
                text += "Transfer-Encoding: " + pick(["chunked", "identity"]) + lineEnd()
            }
            if chance(40) { text += "Content-Length: \(count)" + lineEnd() }
            return text + lineEnd() + chunks(body)
        }
    }

    private mutating func chunks(_ body: String) -> String {
        var text = ""
        var rest = Substring(body)
        while let first = rest.first {
            let piece = rest.prefix(1 + below(8))
            rest = rest.dropFirst(piece.count)
            let size = String(piece.utf8.count, radix: 16, uppercase: first < "5")
            text += mostly(
                size,
                ["0x\(size)", "+\(size)", " \(size)", "\(size) ", "00\(size)", "", "g", "1\(size)"])
            text += chunkExtension() + lineEnd() + piece + lineEnd()
        }
        text +=
            mostly("0", ["00", "", "-0", "0000000000000000000000"]) + chunkExtension() + lineEnd()
        if chance(8) {
            text +=
                pick(["T: u", "X-Y:", "a: b\t", "T: u", "Content-Length: 1", ": x", "A : b"])
                + lineEnd()
        }
        return text + lineEnd()
    }

    private mutating func chunkExtension() -> String {
        guard chance(8) else { return "" }
        return mostly(
            pick([";a", ";a=b", ";a=\"b\"", ";a;b", ";a=\"b\\\"c\"", ";a=\"\u{E9}\""]),
            [
                ";a", ";a=b", ";a=\"b\"", ";a;b", ";a=\"b\\\"c\"", ";", ";a=", ";;", "; a", ";a ",
                ";a=\"", ";a=b c", ";\u{E9}",
                " ;a", ";a=\"b\"c", ";a=\"\u{E9}\"", ";a=\"\\\u{1}\"",
            ])
    }

    private mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        guard chance(3) else { return bytes }
        for _ in 0...below(3) where !bytes.isEmpty {
            let index = below(bytes.count)
            let interesting = latin1("\0\t\n\r :;,/=\"\\#*09aAzZ\u{7F}\u{80}\u{FF}")
            let byte = chance(3) ? UInt8(below(256)) : interesting[below(interesting.count)]
            switch below(5) {
            case 0: bytes[index] = byte
            case 1: bytes.insert(byte, at: index)
            case 2: bytes.remove(at: index)
            case 3: bytes.removeSubrange(index..<min(bytes.count, index + below(6)))
            default:
                bytes.insert(
                    contentsOf: bytes[index..<min(bytes.count, index + below(12))], at: index)
            }
        }
        return bytes
    }
}
