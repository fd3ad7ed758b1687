import Ground
import HTTPRules

/// The original that `rule` finds in `target`, within other bytes.
func original(
    _ rule: String, of target: [UInt8], origin: String = "http://10.0.0.7:9000",
    bytesMax: Int = CacheKey.bytesMaxDefault
) throws -> [UInt8]? {
    let bytes = "GET ".bytes + target + " /x?url=http://wrong/".bytes
    return try OriginalRule(rule).original(
        of: bytes.span, at: 4..<4 + target.count, origin: BaseURL(origin), bytesMax: bytesMax)
}

func original(
    _ rule: String, of target: String, origin: String = "http://10.0.0.7:9000"
) throws -> String? {
    try original(rule, of: target.bytes, origin: origin)?.text
}

extension [UInt8] {
    /// The bytes with every character but letters and digits escaped, as by encodeURIComponent.
    var escaped: [UInt8] {
        flatMap { byte in
            ASCII.isLetter(byte) || ASCII.isDigit(byte)
                ? [byte]
                : [
                    UInt8(ascii: "%"), ASCII.hexDigit(byte >> 4), ASCII.hexDigit(byte & 15),
                ]
        }
    }

    /// The bytes in base64url without padding (RFC 4648 §5).
    var base64: [UInt8] {
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".bytes
        var written: [UInt8] = []
        var bits = 0
        var group = 0
        for byte in self {
            group = (group << 8 | Int(byte)) & 0xFFFF
            bits += 8
            while bits >= 6 {
                bits -= 6
                written.append(letters[group >> bits & 63])
            }
        }
        if bits > 0 { written.append(letters[group << (6 - bits) & 63]) }
        return written
    }
}
