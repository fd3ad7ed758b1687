import COpenSSL
package import Ground
package import HTTPRules

/// The SHA-256 algorithm, fetched once because OpenSSL otherwise looks it up by name at each use.
///
/// The pointer never changes and is never freed.
nonisolated(unsafe) let sha256Algorithm = unsafe EVP_MD_fetch(nil, "SHA256", nil)

private let digestBytes = 32

/// Returns the SHA-256 (FIPS 180-4) of `bytes`, 32 bytes.
package func sha256(_ bytes: Span<UInt8>) -> [UInt8] {
    let digest = unsafe [UInt8](unsafeUninitializedCapacity: digestBytes) { room, count in
        var written: UInt32 = 0
        let isDone = unsafe bytes.withUnsafeBytes { raw in
            unsafe EVP_Digest(
                raw.baseAddress, raw.count, room.baseAddress, &written, sha256Algorithm, nil)
        }
        // OpenSSL fails here only if it has no SHA-256, and then from the first call on.
        precondition(isDone == 1 && Int(written) == digestBytes, "no SHA-256")
        count = Int(written)
    }
    return digest
}

extension EntryName {
    /// Creates the name of the entry with this key.
    ///
    /// For a normalised URL alone it is the key's SHA-256. A key that continues after a line feed
    /// gets a name that is colocated with that of the URL before the line feed.
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
    /// Creates the digest of a token's bytes.
    package init(ofToken token: [UInt8]) {
        self.init(sha256(token.span).span)
    }
}
