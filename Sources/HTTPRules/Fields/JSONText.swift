import Ground

/// Strings as JSON has them (RFC 8259 §7).
package enum JSONText {
    /// Appends `text` between quotes: quotes, backslashes and control characters escaped, those
    /// above ASCII too (U+0080 to U+009F), which terminals obey; the rest as UTF-8.
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

    /// A character up to U+00FF by its number.
    private static func appendEscape(_ number: UInt8, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "\\u00".utf8)
        bytes.append(ASCII.hexDigit(number >> 4))
        bytes.append(ASCII.hexDigit(number & 15))
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
