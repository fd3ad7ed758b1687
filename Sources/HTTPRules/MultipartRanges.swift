import Ground

/// The body of a 206 with several ranges, but for the bytes of the ranges themselves (RFC 9110
/// §14.6).
///
/// Each part is its head, then the bytes of its range; after the last part comes the tail.
package struct MultipartRanges: Hashable, Sendable {
    package let ranges: [ByteRange]
    /// Length of the whole body, of which the ranges are parts, in bytes.
    package let size: UInt64
    private let contentType: [UInt8]
    private let boundary: [UInt8]

    /// `contentType` is the value for each part, or empty; `boundary` 64 random bits, so that no
    /// body holds it.
    package init(ranges: [ByteRange], size: UInt64, contentType: [UInt8], boundary: UInt64) {
        self.ranges = ranges
        self.size = size
        self.contentType = contentType
        var text = Array("nuthatch-".utf8)
        for shift in stride(from: UInt64(60), through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: boundary >> shift) & 15
            text.append(ASCII.hexDigit(digit))
        }
        self.boundary = text
    }

    /// Appends the value of the response's Content-Type.
    package func appendContentType(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "multipart/byteranges; boundary=".utf8)
        bytes.append(contentsOf: boundary)
    }

    /// Appends what comes before the bytes of the range at `index`.
    package func appendPartHead(_ index: Int, to bytes: inout [UInt8]) {
        if index > 0 { bytes.append(contentsOf: "\r\n".utf8) }
        bytes.append(contentsOf: "--".utf8)
        bytes.append(contentsOf: boundary)
        if !contentType.isEmpty {
            bytes.append(contentsOf: "\r\ncontent-type: ".utf8)
            bytes.append(contentsOf: contentType)
        }
        bytes.append(contentsOf: "\r\ncontent-range: ".utf8)
        ranges[index].appendContentRange(size: size, to: &bytes)
        bytes.append(contentsOf: "\r\n\r\n".utf8)
    }

    /// Appends what comes after the last range.
    package func appendTail(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "\r\n--".utf8)
        bytes.append(contentsOf: boundary)
        bytes.append(contentsOf: "--\r\n".utf8)
    }

    /// The Content-Length of the response: all heads, ranges and the tail.
    package var contentLength: UInt64 {
        var framing: [UInt8] = []
        for index in ranges.indices { appendPartHead(index, to: &framing) }
        appendTail(to: &framing)
        return ranges.reduce(UInt64(framing.count)) { $0 + $1.count }
    }
}
