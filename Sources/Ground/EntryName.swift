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
