import Ground

/// Strings in JSON (RFC 8259 §7).
package enum JSONText {
    /// Appends `text` in quotes, as UTF-8.
    ///
    /// Quotes, backslashes and control characters are escaped, including U+0080 to U+009F, which
    /// terminals interpret.
    package static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        var isAfterC2 = false
        for byte in text.utf8 {
            if isAfterC2, byte < 0xA0 {
                bytes.removeLast()
                appendEscape(byte, to: &bytes)
                isAfterC2 = false
                continue
            }
            isAfterC2 = byte == 0xC2
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0..<0x20, 0x7F: appendEscape(byte, to: &bytes)
            default:
                bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Appends the escape of a character up to U+00FF.
    private static func appendEscape(_ number: UInt8, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "\\u00".utf8)
        bytes.append(ASCII.hexDigit(number >> 4))
        bytes.append(ASCII.hexDigit(number & 15))
    }

    /// Returns `text` in quotes.
    package static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        append(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns `bytes` in quotes; invalid UTF-8 is replaced with U+FFFD.
    package static func quoted(_ bytes: [UInt8]) -> String {
        quoted(String(decoding: bytes, as: UTF8.self))
    }
}
