import Ground

/// Bare items of structured fields that tell of anything: what they cannot hold is cut or escaped.
///
/// What they can hold is printed by ``StructuredBareItem``.
enum StructuredText {
    /// Appends an integer; one with more than 15 digits becomes the nearest that has no more.
    static func append(_ number: Int64, to bytes: inout [UInt8]) {
        let most = StructuredBareItem.integerMax
        StructuredBareItem.integer(max(-most, min(most, number))).append(to: &bytes)
    }

    /// Appends a string (RFC 9651 §4.1.6).
    ///
    /// Strings hold printable ASCII only: other bytes are written as `%` and two hexadecimal
    /// digits. What would be longer than `bytesMax` within its quotes is cut and ends in `...`.
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

    /// Appends a token if the text can be one (RFC 9651 §3.3.4), else a string.
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
