import COpenSSL
package import Ground
package import HTTPRules

/// Looked up once: by its name it would be at every use.
///
/// Never changed, and never freed.
nonisolated(unsafe) let sha256Algorithm = unsafe EVP_MD_fetch(nil, "SHA256", nil)

private let digestBytes = 32

/// SHA-256 (FIPS 180-4), 32 bytes.
package func sha256(_ bytes: Span<UInt8>) -> [UInt8] {
    let digest = unsafe [UInt8](unsafeUninitializedCapacity: digestBytes) { room, count in
        var written: UInt32 = 0
        let isDone = unsafe bytes.withUnsafeBytes { raw in
            unsafe EVP_Digest(
                raw.baseAddress, raw.count, room.baseAddress, &written, sha256Algorithm, nil)
        }
        // It fails only if OpenSSL has no SHA-256, and then not even once.
        precondition(isDone == 1 && Int(written) == digestBytes, "no SHA-256")
        count = Int(written)
    }
    return digest
}

extension EntryName {
    /// The name of the answer to a normalised URL that depends on nothing else: its SHA-256; or of
    /// what stands under a key that goes on behind a line feed, placed with the URL before it.
    package init(ofKey key: [UInt8]) {
        let whole = EntryName(sha256(key.span).span)
        guard let urlEnd = key.firstIndex(of: 0x0A) else {
            self = whole
            return
        }
        self = whole.colocated(with: EntryName(sha256(key.span.extracting(0..<urlEnd)).span))
    }
}

extension TokenDigest {
    /// The digest of a token's bytes.
    package init(ofToken token: [UInt8]) {
        self.init(sha256(token.span).span)
    }
}
