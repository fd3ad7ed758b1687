package import Ground

/// An HMAC-SHA-256 (RFC 2104), 32 bytes, as the parameter `signature` of a signed URL has it:
/// base64url without padding (RFC 4648 §5), 43 letters.
package struct Signature: Hashable, Sendable {
    package static let bytesCount = 32
    package static let textBytesCount = 43

    /// The bytes as one number, the first the most significant.
    private var high: UInt128 = 0
    private var low: UInt128 = 0

    /// The signature whose 32 bytes these are.
    package init(_ bytes: Span<UInt8>) {
        precondition(bytes.count == Self.bytesCount, "\(bytes.count) bytes are no signature")
        for index in 0..<16 {
            high = high << 8 | UInt128(bytes[index])
            low = low << 8 | UInt128(bytes[index + 16])
        }
    }

    /// The signature that the letters in `range` stand for; nil if they stand for none.
    ///
    /// Every signature has one spelling: the two bits that the last letter has too many are 0.
    package init?(base64URL bytes: Span<UInt8>, at range: Range<Int>) {
        guard range.count == Self.textBytesCount else { return nil }
        let letters = bytes.extracting(range)
        var seen: UInt8 = 0
        for index in 0..<letters.count - 1 {
            let sextet = Self.value(letters[index])
            seen |= sextet
            high = high << 6 | low >> 122
            low = low << 6 | UInt128(sextet & 63)
        }
        let last = Self.value(letters[letters.count - 1])
        guard seen | last < 64, last & 3 == 0 else { return nil }
        high = high << 4 | low >> 124
        low = low << 4 | UInt128(last >> 2)
    }

    /// Appends the 43 letters.
    package func append(to bytes: inout [UInt8]) {
        for shift in stride(from: 250, through: 4, by: -6) {
            let bits =
                shift >= 128
                ? high >> UInt128(shift - 128)
                : low >> UInt128(shift) | (shift > 122 ? high << UInt128(128 - shift) : 0)
            bytes.append(Self.letter(UInt8(truncatingIfNeeded: bits) & 63))
        }
        bytes.append(Self.letter(UInt8(truncatingIfNeeded: low & 15) << 2))
    }

    /// True if both are the same; takes as long whichever byte is wrong.
    package func isSame(as other: Signature) -> Bool {
        (high ^ other.high) | (low ^ other.low) == 0
    }

    private static func letter(_ sextet: UInt8) -> UInt8 {
        switch sextet {
        case 0..<26: UInt8(ascii: "A") + sextet
        case 26..<52: UInt8(ascii: "a") + sextet - 26
        case 52..<62: UInt8(ascii: "0") + sextet - 52
        case 62: UInt8(ascii: "-")
        default: UInt8(ascii: "_")
        }
    }

    /// What a letter stands for; 64 or more for what is none.
    ///
    /// Without branches: which letter comes next cannot be foreseen, and a wrong guess costs more
    /// than all of this.
    @inline(__always)
    private static func value(_ letter: UInt8) -> UInt8 {
        var sextet: UInt8 = 0xFF
        sextet = letter &- 0x41 < 26 ? letter &- 0x41 : sextet
        sextet = letter &- 0x61 < 26 ? letter &- 0x61 &+ 26 : sextet
        sextet = letter &- 0x30 < 10 ? letter &- 0x30 &+ 52 : sextet
        sextet = letter == UInt8(ascii: "-") ? 62 : sextet
        return letter == UInt8(ascii: "_") ? 63 : sextet
    }
}

extension Signature: CustomStringConvertible {
    /// The 43 letters.
    package var description: String {
        var letters: [UInt8] = []
        append(to: &letters)
        return String(decoding: letters, as: UTF8.self)
    }
}

/// What a signature is made of: three lines, with a line feed between them.
///
///     nuthatch-signed-url-v1
///     <target>
///     <seconds since 1970, or nothing>
///
/// The target of an image is its normalised URL, as ``CacheKey`` makes it, so that all spellings of
/// the URL have one signature. That of a site is `//`, the site's name, and path and query as they
/// are sent, as ``SiteKey`` makes it. Neither holds a line feed, and neither is ever the other.
package enum SignatureBase {
    /// The first line and its end.
    private static let label = Array("nuthatch-signed-url-v1\n".utf8)

    /// Makes the target that `text` holds the text that is signed; gives where in it the target
    /// lies now.
    package static func makeBase(_ text: inout [UInt8], expiry: WallTime?) -> Range<Int> {
        let count = text.count
        text.insert(contentsOf: label, at: 0)
        text.append(UInt8(ascii: "\n"))
        if let expiry { ASCII.append(UInt64(expiry.seconds), to: &text) }
        return label.count..<label.count + count
    }

    /// Appends the two parameters to a target, or to a URL, that has neither and no fragment.
    package static func append(
        _ signature: Signature, expiry: WallTime?, to target: inout [UInt8]
    ) {
        target.append(target.contains(UInt8(ascii: "?")) ? UInt8(ascii: "&") : UInt8(ascii: "?"))
        if let expiry {
            target.append(contentsOf: "expires=".utf8)
            ASCII.append(UInt64(expiry.seconds), to: &target)
            target.append(UInt8(ascii: "&"))
        }
        target.append(contentsOf: "signature=".utf8)
        signature.append(to: &target)
    }
}
