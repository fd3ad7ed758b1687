import Ground
import Wire

/// The header of a proxy read over a whole array, by splitting text and by slicing: slow, and
/// sharing with the reader under test only the parser of textual addresses.
enum NaiveHeader {
    static func read(_ bytes: [UInt8]) -> ProxyProtocolResult {
        bytes.first == 13 ? binary(bytes) : line(bytes)
    }

    private static let protocols = ["PROXY UNKNOWN ", "PROXY TCP4 ", "PROXY TCP6 "]

    private static func line(_ bytes: [UInt8]) -> ProxyProtocolResult {
        let window = bytes.prefix(107)
        // One scalar for each byte, so that nothing is lost in decoding.
        let text = String(String.UnicodeScalarView(window.map { Unicode.Scalar($0) }))
        let scalars = Array(text.unicodeScalars)
        let stop = scalars.firstIndex(of: "\r") ?? scalars.count
        let before = String(String.UnicodeScalarView(scalars[..<stop]))
        let mayBe = protocols.contains { name in
            name.unicodeScalars.starts(with: before.unicodeScalars)
                || before.unicodeScalars.starts(with: name.unicodeScalars)
        }
        guard mayBe else { return .refused }
        guard stop + 1 < scalars.count else {
            return window.count == 107 ? .refused : .needsMore
        }
        guard scalars[stop + 1] == "\n" else { return .refused }
        let end = stop + 2
        let words = before.unicodeScalars.split(separator: " ", omittingEmptySubsequences: false)
            .map { String(String.UnicodeScalarView($0)) }
        if words.count >= 2, words[1] == "UNKNOWN" { return .source(nil, end: end) }
        guard words.count == 6, words[1] == "TCP4" || words[1] == "TCP6",
            let source = IPAddress(words[2]), let destination = IPAddress(words[3]),
            source.bitCount == (words[1] == "TCP4" ? 32 : 128),
            source.bitCount == destination.bitCount,
            let sourcePort = port(words[4]), port(words[5]) != nil
        else { return .refused }
        return .source(ProxySource(source, port: sourcePort), end: end)
    }

    private static func port(_ text: String) -> UInt16? {
        guard let number = UInt16(text), String(number) == text else { return nil }
        return number
    }

    private static func binary(_ bytes: [UInt8]) -> ProxyProtocolResult {
        let signature: [UInt8] = Array("\r\n\r\n\0\r\nQUIT\n".utf8)
        guard zip(bytes, signature).allSatisfy(==) else { return .refused }
        let rest = bytes.dropFirst(12)
        guard let command = rest.first else { return .needsMore }
        guard [0x20, 0x21].contains(command) else { return .refused }
        guard let family = rest.dropFirst().first else { return .needsMore }
        let least: [UInt8: Int] = [
            0x00: 0, 0x01: 0, 0x02: 0, 0x10: 12, 0x11: 12, 0x12: 12, 0x20: 36, 0x21: 36, 0x22: 36,
            0x30: 216, 0x31: 216, 0x32: 216,
        ]
        guard command == 0x20 || least[family] != nil else { return .refused }
        guard rest.count >= 4 else { return .needsMore }
        let length = rest.dropFirst(2).prefix(2).reduce(0) { $0 * 256 + Int($1) }
        guard 16 + length <= 4096, command == 0x20 || length >= least[family] ?? 0 else {
            return .refused
        }
        let body = Array(rest.dropFirst(4).prefix(length))
        guard body.count == length else { return .needsMore }
        let size = command == 0x21 ? [0x11: 4, 0x21: 16][family] ?? 0 : 0
        let digits = Array(body.prefix(size))
        guard let address = IPAddress(digits.span) else {
            return .source(nil, end: 16 + length)
        }
        let port = UInt16(body[2 * size]) * 256 + UInt16(body[2 * size + 1])
        return .source(ProxySource(address, port: port), end: 16 + length)
    }
}
