package import Ground

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
