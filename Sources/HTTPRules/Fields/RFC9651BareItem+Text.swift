import Ground
import RawStructuredFieldValues

/// Items of structured fields made of arbitrary values, which are clamped, escaped or cut to what
/// items can hold.
extension RFC9651BareItem {
    /// Returns an integer of at most 15 digits (RFC 9651 §3.3.1).
    static func clamped(_ number: Int64) -> RFC9651BareItem {
        let most: Int64 = 999_999_999_999_999
        return .integer(max(-most, min(most, number)))
    }

    /// Returns a string (RFC 9651 §3.3.3) in which `%` and two hexadecimal digits replace each byte
    /// that is not printable ASCII.
    ///
    /// A string that takes more than `bytesMax` within its quotes is cut and ends in `...`.
    static func visible(_ text: some Sequence<UInt8>, bytesMax: Int = .max) -> RFC9651BareItem {
        var visible: [UInt8] = []
        var written = 0
        for byte in text {
            let last = visible.count
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                // A backslash is written before it.
                written += 1
                visible.append(byte)
            case 0x20...0x7E: visible.append(byte)
            default: URLNormaliser.appendEscape(byte, to: &visible)
            }
            written += visible.count - last
            guard written <= bytesMax else {
                visible.removeSubrange(last...)
                visible += "...".utf8
                break
            }
        }
        return .string(String(decoding: visible, as: UTF8.self))
    }

    /// Returns a token if the text is one (RFC 9651 §3.3.4) of at most `bytesMax` bytes, else a
    /// string.
    static func tokenOrVisible(_ text: String, bytesMax: Int = .max) -> RFC9651BareItem {
        text.structuredHeadersIsValidToken && text.utf8.count <= bytesMax
            ? .token(text) : .visible(text.utf8, bytesMax: bytesMax)
    }

    /// Appends the item as a field shows it (RFC 9651 §4.1.3.1).
    func append(to bytes: inout [UInt8]) {
        var serializer = StructuredFieldValueSerializer()
        let item = Item(bareItem: self, parameters: [:])
        bytes += (try? serializer.writeItemFieldValue(item)) ?? []
    }
}
