package import Ground

/// The signature of a URL: an HMAC-SHA-256 (RFC 2104), 32 bytes, written as 43 letters of base64url
/// without padding (RFC 4648 §5).
package struct Signature: Hashable, Sendable {
    /// The length of a signature in bytes.
    package static let bytesCount = 32
    /// The length of a signature in letters.
    package static let textBytesCount = 43

    /// The first 16 bytes as a big-endian number.
    private var high: UInt128 = 0
    /// The last 16 bytes as a big-endian number.
    private var low: UInt128 = 0

    /// Creates the signature from its 32 bytes.
    package init(_ bytes: Span<UInt8>) {
        precondition(bytes.count == Self.bytesCount, "\(bytes.count) bytes are no signature")
        for index in 0..<16 {
            high = high << 8 | UInt128(bytes[index])
            low = low << 8 | UInt128(bytes[index + 16])
        }
    }

    /// Parses the letters in `range`; `nil` if they are not a signature.
    ///
    /// Every signature has one spelling: the two unused bits of the last letter must be 0.
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

    /// Returns true if both are equal, in constant time.
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

    /// Returns the value of a letter; 64 or more for an invalid one.
    ///
    /// The code has no branches: letters are unpredictable, and a branch misprediction costs more
    /// than the whole function.
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

/// The text that is signed: three lines separated by line feeds.
///
///     nuthatch-signed-url-v1
///     <target>
///     <seconds since 1970, or nothing>
///
/// The target of an image is its normalised URL (``CacheKey``), so that all spellings of the URL
/// have one signature. The target of a site is `//`, the site's name, and path and query as sent
/// (``SiteKey``), for http and https alike. Neither holds a line feed, and an image's target never
/// equals a site's.
package enum SignatureBase {
    /// The first line with its line feed.
    private static let label = Array("nuthatch-signed-url-v1\n".utf8)

    /// Turns the target in `text` into the signed text, and returns the range of the target in it.
    ///
    /// - Parameters:
    ///   - text: the target on entry, the signed text on return.
    ///   - expiry: the expiry time; `nil` for none.
    /// - Returns: the range of the target in the signed text, in bytes.
    package static func makeSignedText(_ text: inout [UInt8], expiry: WallTime?) -> Range<Int> {
        let count = text.count
        text.insert(contentsOf: label, at: 0)
        text.append(UInt8(ascii: "\n"))
        if let expiry { ASCII.append(UInt64(expiry.seconds), to: &text) }
        return label.count..<label.count + count
    }

    /// Appends the parameters `expires` and `signature` to a target or URL that has neither, and no
    /// fragment.
    ///
    /// - Parameters:
    ///   - signature: the signature.
    ///   - expiry: the expiry time; `nil` for none.
    ///   - target: the target to append to.
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
