import Ground

/// Whether a body begins as its declared type does (the magic bytes of each format's
/// specification).
package enum ImageSignature {
    /// Bytes from the body's beginning that are looked at.
    package static let bytesCount = 12

    /// True if the Content-Type of `head` is of a format that always begins in one way, and the
    /// body begins in another: then it is not what it claims.
    ///
    /// Formats without such a beginning, and those not known here, contradict nothing. A coded body
    /// is not looked into. `first` holds the first ``bytesCount`` bytes, or all there are.
    package static func contradicts(_ head: AnswerHead, first: [UInt8]) -> Bool {
        guard head.first(.contentEncoding) == nil, let type = head.first(.contentType) else {
            return false
        }
        let bytes = head.bytes.span
        let essence = ContentTypes.essence(bytes, at: type.range)
        for (name, signature) in signatures
        where bytes.holdsIgnoringCase(name, at: essence) {
            return !begins(first, with: signature)
        }
        return false
    }

    /// Nil stands for any byte.
    private static let signatures: [(type: String, signature: [UInt8?])] = [
        ("image/jpeg", [0xFF, 0xD8, 0xFF]),
        ("image/png", [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
        ("image/gif", [0x47, 0x49, 0x46, 0x38]),
        ("image/bmp", [0x42, 0x4D]),
        (
            "image/webp",
            [0x52, 0x49, 0x46, 0x46, nil, nil, nil, nil, 0x57, 0x45, 0x42, 0x50]
        ),
    ]

    private static func begins(_ first: [UInt8], with signature: [UInt8?]) -> Bool {
        guard first.count >= signature.count else { return false }
        return zip(first, signature).allSatisfy { byte, wanted in wanted == nil || byte == wanted }
    }
}
