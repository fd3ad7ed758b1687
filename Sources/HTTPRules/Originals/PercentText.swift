/// Bytes written with percent escapes (RFC 3986 §2.1).
package enum PercentText {
    /// What `text` means, each escape undone once; nil if a `%` stands without two hexadecimal
    /// digits.
    ///
    /// `plusIsSpace` is for the values of forms, in which browsers write a space as `+` (URL
    /// Standard, application/x-www-form-urlencoded).
    package static func decoded(_ text: ArraySlice<UInt8>, plusIsSpace: Bool = false) -> [UInt8]? {
        var meant: [UInt8] = []
        meant.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            let byte = text[index]
            if byte == UInt8(ascii: "%") {
                guard index + 2 < text.endIndex, let high = Byte.hexValue(text[index + 1]),
                    let low = Byte.hexValue(text[index + 2])
                else { return nil }
                meant.append(high << 4 | low)
                index += 3
            } else {
                meant.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
                index += 1
            }
        }
        return meant
    }

    /// True if `text` begins with `http:` or `https:` whose colon is escaped, as in a URL that was
    /// escaped as a whole.
    static func isEscapedURL(_ text: ArraySlice<UInt8>) -> Bool {
        let start = text.prefix(8).map(Byte.lowercased)
        return start.starts(with: "http%3a".utf8) || start.starts(with: "https%3a".utf8)
    }
}
