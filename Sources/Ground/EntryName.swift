/// SHA-256 of an entry's key and variant: what names it on disk and on the ring.
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

    /// Number of bytes.
    package static let bytesCount = 32

    /// Appends the bytes.
    package func append(to bytes: inout [UInt8]) {
        for word in [digest.first, digest.second, third, fourth] { bytes.appendLittle(word) }
    }
}
