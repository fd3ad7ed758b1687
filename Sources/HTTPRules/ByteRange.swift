import Ground

/// A part of a body that is not empty (RFC 9110 §14.1.2).
package struct ByteRange: Hashable, Sendable {
    /// Offset of the first byte.
    package var first: UInt64
    /// Offset of the last byte, which belongs to the range.
    package var last: UInt64

    package init(first: UInt64, last: UInt64) {
        self.first = first
        self.last = last
    }

    /// Number of bytes.
    package var count: UInt64 { last - first + 1 }

    /// Appends the value of Content-Range, `bytes 0-499/1234` (RFC 9110 §14.4).
    package func appendContentRange(size: UInt64, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "bytes ".utf8)
        ASCII.append(first, to: &bytes)
        bytes.append(UInt8(ascii: "-"))
        ASCII.append(last, to: &bytes)
        bytes.append(UInt8(ascii: "/"))
        ASCII.append(size, to: &bytes)
    }
}
