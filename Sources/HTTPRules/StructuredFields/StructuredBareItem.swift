import Ground

/// A value of a structured field without parameters (RFC 9651 §3.3).
package enum StructuredBareItem: Hashable, Sendable {
    /// An integer of at most 15 digits (RFC 9651 §3.3.1).
    case integer(Int64)
    /// A decimal in thousandths: at most 12 digits before the point and 3 after it (RFC 9651
    /// §3.3.2).
    case decimal(thousandths: Int64)
    /// A string of visible ASCII and spaces, without quotes and escapes (RFC 9651 §3.3.3).
    case string([UInt8])
    /// A token (RFC 9651 §3.3.4).
    case token([UInt8])
    /// A byte sequence, written in base64 (RFC 9651 §3.3.5).
    case bytes([UInt8])
    case boolean(Bool)
    /// A date in seconds since 1970 (RFC 9651 §3.3.7).
    case date(Int64)
    /// A string of any Unicode text (RFC 9651 §3.3.8).
    case displayString(String)

    /// The maximum magnitude of integers and dates (RFC 9651 §3.3.1).
    package static let integerMax: Int64 = 999_999_999_999_999

    /// Appends the serialised value (RFC 9651 §4.1.3.1).
    ///
    /// - Precondition: numbers have no more digits than allowed; strings and tokens hold only
    ///   allowed bytes.
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .integer(let number): Self.append(number, to: &bytes)
        case .decimal(let thousandths): Self.append(thousandths: thousandths, to: &bytes)
        case .string(let text): Self.append(string: text, to: &bytes)
        case .token(let text): bytes += text
        case .bytes(let content):
            bytes.append(UInt8(ascii: ":"))
            Base64.append(content, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
        case .boolean(let isTrue): bytes += (isTrue ? "?1" : "?0").utf8
        case .date(let seconds):
            bytes.append(UInt8(ascii: "@"))
            Self.append(seconds, to: &bytes)
        case .displayString(let text): Self.append(display: text, to: &bytes)
        }
    }

    private static func append(_ number: Int64, to bytes: inout [UInt8]) {
        precondition(number.magnitude <= UInt64(integerMax), "\(number) has too many digits")
        if number < 0 { bytes.append(UInt8(ascii: "-")) }
        ASCII.append(number.magnitude, to: &bytes)
    }

    private static func append(thousandths: Int64, to bytes: inout [UInt8]) {
        precondition(thousandths.magnitude <= UInt64(integerMax), "\(thousandths) is too great")
        if thousandths < 0 { bytes.append(UInt8(ascii: "-")) }
        ASCII.append(thousandths.magnitude / 1000, to: &bytes)
        bytes.append(UInt8(ascii: "."))
        var rest = thousandths.magnitude % 1000
        repeat {
            bytes.append(0x30 + UInt8(rest / 100))
            rest = rest % 100 * 10
        } while rest > 0
    }

    private static func append(string: [UInt8], to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in string {
            precondition((0x20...0x7E).contains(byte), "byte \(byte) in a string")
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                bytes.append(UInt8(ascii: "\\"))
            }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func append(display text: String, to bytes: inout [UInt8]) {
        bytes += "%\"".utf8
        for byte in text.utf8 {
            let isPlain =
                (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "%")
                && byte != UInt8(ascii: "\"")
            if isPlain {
                bytes.append(byte)
            } else {
                bytes.append(UInt8(ascii: "%"))
                bytes.append(ASCII.hexDigit(byte >> 4))
                bytes.append(ASCII.hexDigit(byte & 15))
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}

/// Writes bare items from arbitrary values: what an item cannot hold is cut or escaped.
///
/// ``StructuredBareItem`` writes valid values.
enum StructuredText {
    /// Appends an integer, clamped to 15 digits.
    static func append(_ number: Int64, to bytes: inout [UInt8]) {
        let most = StructuredBareItem.integerMax
        StructuredBareItem.integer(max(-most, min(most, number))).append(to: &bytes)
    }

    /// Appends a string (RFC 9651 §4.1.6).
    ///
    /// Bytes that are not printable ASCII are written as `%` and two hexadecimal digits. A string
    /// longer than `bytesMax` within its quotes is cut and ends in `...`.
    static func append(
        string: some Sequence<UInt8>, bytesMax: Int = .max, to bytes: inout [UInt8]
    ) {
        bytes.append(UInt8(ascii: "\""))
        let start = bytes.count
        for byte in string {
            let last = bytes.count
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0x20...0x7E: bytes.append(byte)
            default:
                URLNormaliser.appendEscape(byte, to: &bytes)
            }
            guard bytes.count - start <= bytesMax else {
                bytes.removeSubrange(last...)
                bytes += "...".utf8
                break
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// Appends a token if the text is one (RFC 9651 §3.3.4) of at most `bytesMax` bytes, else a
    /// string.
    static func append(tokenOrString text: String, bytesMax: Int = .max, to bytes: inout [UInt8]) {
        if isToken(text), text.utf8.count <= bytesMax {
            bytes += text.utf8
        } else {
            append(string: text.utf8, bytesMax: bytesMax, to: &bytes)
        }
    }

    private static func isToken(_ text: String) -> Bool {
        guard let first = text.utf8.first, ASCII.isLetter(first) || first == UInt8(ascii: "*")
        else { return false }
        return text.utf8.allSatisfy { byte in
            ByteSet.token.contains(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "/")
        }
    }
}
