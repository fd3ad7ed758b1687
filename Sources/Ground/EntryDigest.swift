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

/// SHA-256 of an entry's key and variant, with the bytes 4 to 7 of that of its URL alone: what
/// names it on disk and on the ring.
package struct EntryName: Hashable, Sendable {
    /// The first 16 bytes, by which it is found.
    package let digest: EntryDigest
    private let third: UInt64
    private let fourth: UInt64

    /// The 32 bytes from `offset`.
    package init(_ bytes: Span<UInt8>, at offset: Int = 0) {
        digest = EntryDigest(bytes.extracting(offset..<bytes.count))
        third = bytes.little64(at: offset + 16)
        fourth = bytes.little64(at: offset + 24)
    }

    /// A name of which no more is known than the first half.
    package init(prefix digest: EntryDigest) {
        self.init(digest: digest, third: 0, fourth: 0)
    }

    /// The same name but for the bytes 4 to 7, which are those of `other`.
    ///
    /// So all variants of a URL have one place on the ring, which those bytes decide.
    package func colocated(with other: EntryName) -> EntryName {
        let kept = other.digest.first & ~0xFFFF_FFFF
        let first = digest.first & 0xFFFF_FFFF | kept
        return EntryName(
            digest: EntryDigest(first: first, second: digest.second), third: third,
            fourth: fourth)
    }

    private init(digest: EntryDigest, third: UInt64, fourth: UInt64) {
        self.digest = digest
        self.third = third
        self.fourth = fourth
    }

    /// Number of bytes.
    package static let bytesCount = 32

    /// Appends the bytes.
    package func append(to bytes: inout [UInt8]) {
        bytes.appendLittle(digest.first)
        bytes.appendLittle(digest.second)
        bytes.appendLittle(third)
        bytes.appendLittle(fourth)
    }
}

/// Names an entry inside one shard of the memory tier: an index into its table, reused after the
/// entry is gone.
package struct EntryID: Hashable, Sendable {
    package var index: UInt32

    package init(index: UInt32) {
        self.index = index
    }
}
