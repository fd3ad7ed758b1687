/// Names an entry on disk and on the ring: the first 16 bytes of the SHA-256 of its normalised key.
///
/// Two entries of one digest are not to be expected by chance (2^64 entries), nor by work (2^64
/// hashes); a record holds the whole digest and key, and is compared before it is served.
package struct EntryDigest: Hashable, Sendable {
    /// The first eight bytes, the first of them lowest.
    package let first: UInt64
    /// The eight bytes after those, the first of them lowest.
    package let second: UInt64

    package init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second
    }

    /// Takes the first 16 bytes of `sha256`, which must hold as many.
    package init(_ sha256: Span<UInt8>) {
        precondition(sha256.count >= 16, "a digest of \(sha256.count) bytes")
        first = littleEndianWord(sha256, at: 0)
        second = littleEndianWord(sha256, at: 8)
    }
}
