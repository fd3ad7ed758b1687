import Ground

/// Strings as JSON has them (RFC 8259 §7).
package enum JSONText {
    /// Appends `text` between quotes: quotes, backslashes and control characters escaped, the rest
    /// as UTF-8.
    package static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20, 0x7F:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(ASCII.hexDigit(byte >> 4))
                bytes.append(ASCII.hexDigit(byte & 15))
            default:
                bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// `text` between quotes.
    package static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        append(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// `bytes` between quotes; what is not UTF-8 is shown as U+FFFD.
    package static func quoted(_ bytes: [UInt8]) -> String {
        quoted(String(decoding: bytes, as: UTF8.self))
    }
}
