/// The first 16 bytes of an ``EntryName``: identifies an entry on disk and on the hash ring.
///
/// By chance no collision is expected among fewer than 2^64 entries. An attack takes 2^64 hashes,
/// or 2^48 among the variants of one URL, which share four bytes. A disk record holds the whole
/// name and key, which are compared before it is served.
package struct EntryDigest: Hashable, Sendable {
    /// Bytes 0 to 7 as a little-endian number.
    package let first: UInt64
    /// Bytes 8 to 15 as a little-endian number.
    package let second: UInt64

    /// Creates a digest from its two halves.
    package init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second
    }

    /// Creates a digest from the first 16 bytes of `sha256`, which must have at least as many.
    package init(_ sha256: Span<UInt8>) {
        precondition(sha256.count >= 16, "a digest of \(sha256.count) bytes")
        first = littleEndianWord(sha256, at: 0)
        second = littleEndianWord(sha256, at: 8)
    }
}

/// The 32-byte identifier of an entry on disk and on the hash ring.
///
/// The SHA-256 of the entry's normalised key and variant, with bytes 4 to 7 replaced by those of
/// the hash of its URL alone.
package struct EntryName: Hashable, Sendable {
    /// The first 16 bytes, by which the entry is looked up.
    package let digest: EntryDigest
    private let third: UInt64
    private let fourth: UInt64

    /// Reads the 32 bytes at `offset`.
    package init(_ bytes: Span<UInt8>, at offset: Int = 0) {
        digest = EntryDigest(bytes.extracting(offset..<bytes.count))
        third = bytes.little64(at: offset + 16)
        fourth = bytes.little64(at: offset + 24)
    }

    /// Creates a name from its first 16 bytes; the rest is zero.
    package init(prefix digest: EntryDigest) {
        self.init(digest: digest, third: 0, fourth: 0)
    }

    /// Returns this name with bytes 4 to 7 taken from `other`.
    ///
    /// These bytes decide the position on the hash ring, so all variants of a URL share one
    /// position.
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

    /// Length of a name in bytes.
    package static let bytesCount = 32

    /// Appends the 32 bytes of the name.
    package func append(to bytes: inout [UInt8]) {
        bytes.appendLittle(digest.first)
        bytes.appendLittle(digest.second)
        bytes.appendLittle(third)
        bytes.appendLittle(fourth)
    }
}

/// The index of an entry in the table of one shard of the memory tier.
///
/// An index is reused after its entry has been removed.
package struct EntryID: Hashable, Sendable {
    /// The position in the shard's table.
    package var index: UInt32

    /// Creates an id from a table index.
    package init(index: UInt32) {
        self.index = index
    }
}
