/// SHA-256 of an entry's key and variant: what names it on disk and on the ring.
package struct EntryName: Hashable, Sendable {
    /// The bytes in their order, eight to a word, the first in the lowest bits.
    package var words: InlineWords

    /// Four words of 64 bits.
    package struct InlineWords: Hashable, Sendable {
        package var first: UInt64
        package var second: UInt64
        package var third: UInt64
        package var fourth: UInt64
    }

    /// The 32 bytes from `offset`.
    package init(_ bytes: Span<UInt8>, at offset: Int = 0) {
        words = InlineWords(
            first: bytes.little64(at: offset), second: bytes.little64(at: offset + 8),
            third: bytes.little64(at: offset + 16), fourth: bytes.little64(at: offset + 24))
    }

    /// Number of bytes.
    package static let bytesCount = 32

    /// Appends the bytes.
    package func append(to bytes: inout [UInt8]) {
        for word in [words.first, words.second, words.third, words.fourth] {
            bytes.appendLittle(word)
        }
    }
}
