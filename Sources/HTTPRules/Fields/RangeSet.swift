import Ground

/// The part of a body of known size that a Range field requests (RFC 9110 §14.2).
package enum RangeSet: Hashable, Sendable {
    /// The whole body, as if there were no Range: send 200.
    case whole
    /// None of the ranges overlaps the body: send 416.
    case unsatisfiable
    /// One range: send 206.
    case single(ByteRange)
    /// At least two ranges: send 206 in parts.
    ///
    /// They are in ascending order if any of them touched, else in the order requested.
    case multiple([ByteRange])

    /// The default maximum number of ranges in one request.
    package static let countMaxDefault = 16

    /// Parses the value of Range in `range` and resolves it against a body of `size` bytes.
    ///
    /// The result is ``whole`` for another unit than bytes, a malformed set, more than `countMax`
    /// ranges (RFC 9110 §14.2) or an empty body. Ranges that overlap or touch are merged (RFC 9110
    /// §15.3.7.2), so that no response holds more bytes than the body.
    package static func parse(
        _ bytes: Span<UInt8>, at range: Range<Int>, size: UInt64,
        countMax: Int = countMaxDefault
    ) -> RangeSet {
        let unit = range.lowerBound..<min(range.lowerBound + 6, range.upperBound)
        guard size > 0, bytes.matchesIgnoringCase("bytes=", at: unit) else { return .whole }
        let set = unit.upperBound..<range.upperBound
        var first: ByteRange?
        var others: [ByteRange] = []
        var count = 0
        var cursor = set.lowerBound
        while let element = FieldSyntax.nextElement(bytes, at: set, cursor: &cursor) {
            count += 1
            guard count <= countMax, let spec = Spec(bytes, at: element) else { return .whole }
            guard let resolved = spec.resolved(size: size) else { continue }
            if first == nil {
                first = resolved
            } else {
                others.append(resolved)
            }
        }
        guard count > 0 else { return .whole }
        guard let first else { return .unsatisfiable }
        return others.isEmpty ? .single(first) : coalesced([first] + others)
    }

    /// Returns true if a request asks for less than the whole of a body of any size.
    ///
    /// That is so if there is one Range of at most `countMax` ranges that does not cover everything
    /// from the first byte.
    package static func requestsPart(
        _ lines: [FieldLine], in bytes: Span<UInt8>, countMax: Int = countMaxDefault
    ) -> Bool {
        let ranges = lines.filter { $0.id == .range }
        guard ranges.count == 1 else { return false }
        let range = ranges[0].value.range
        switch parse(bytes, at: range, size: .max, countMax: countMax) {
        case .whole: return false
        case .single(let one): return one.first > 0 || one.last < .max - 1
        case .unsatisfiable, .multiple: return true
        }
    }

    /// Merges ranges that overlap or touch.
    private static func coalesced(_ ranges: [ByteRange]) -> RangeSet {
        let sorted = ranges.sorted { ($0.first, $0.last) < ($1.first, $1.last) }
        var merged = [sorted[0]]
        for range in sorted.dropFirst() {
            let open = merged[merged.count - 1]
            if range.first <= open.last + 1 {
                merged[merged.count - 1].last = max(open.last, range.last)
            } else {
                merged.append(range)
            }
        }
        if merged.count == 1 { return .single(merged[0]) }
        return .multiple(merged.count == ranges.count ? ranges : merged)
    }

    /// One range as written, before the size is known.
    private enum Spec {
        case from(UInt64, last: UInt64)
        case suffix(UInt64)

        /// Parses a range; `nil` if it holds no number, or its last offset is before the first.
        init?(_ bytes: Span<UInt8>, at range: Range<Int>) {
            var dash = range.lowerBound
            while dash < range.upperBound, bytes[dash] != UInt8(ascii: "-") { dash += 1 }
            guard dash < range.upperBound else { return nil }
            let left = range.lowerBound..<dash
            let right = dash + 1..<range.upperBound
            if left.isEmpty {
                guard let count = Self.number(bytes, at: right) else { return nil }
                self = .suffix(count)
                return
            }
            guard let first = Self.number(bytes, at: left) else { return nil }
            if right.isEmpty {
                self = .from(first, last: .max)
                return
            }
            guard let last = Self.number(bytes, at: right), first <= last else { return nil }
            self = .from(first, last: last)
        }

        /// Parses a number; a greater one becomes the maximum (RFC 9110 §14.1.1), anything but
        /// digits `nil`.
        private static func number(_ bytes: Span<UInt8>, at range: Range<Int>) -> UInt64? {
            if range.isEmpty { return nil }
            for index in range where !ASCII.isDigit(bytes[index]) { return nil }
            return bytes.decimal(at: range) ?? .max
        }

        /// Returns the bytes of a body that is not empty; `nil` if the range covers none.
        func resolved(size: UInt64) -> ByteRange? {
            switch self {
            case .from(let first, let last):
                return first < size ? ByteRange(first: first, last: min(last, size - 1)) : nil
            case .suffix(let count):
                if count == 0 { return nil }
                return ByteRange(first: size - min(count, size), last: size - 1)
            }
        }
    }
}

/// A non-empty part of a body (RFC 9110 §14.1.2).
package struct ByteRange: Hashable, Sendable {
    /// The offset of the first byte.
    package var first: UInt64
    /// The offset of the last byte, which is included.
    package var last: UInt64

    /// Creates a range from its first and last offset; `last` must not be less than `first`.
    package init(first: UInt64, last: UInt64) {
        self.first = first
        self.last = last
    }

    /// The number of bytes.
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

/// The framing of a 206 with several ranges (RFC 9110 §14.6).
///
/// Each part is its head followed by the bytes of its range; the tail follows the last part.
package struct MultipartRanges: Hashable, Sendable {
    /// The ranges, in the order in which they are sent.
    package let ranges: [ByteRange]
    /// The length of the whole body in bytes.
    package let size: UInt64
    private let contentType: [UInt8]
    private let boundary: [UInt8]

    /// Creates the framing of several ranges.
    ///
    /// - Parameters:
    ///   - ranges: the ranges, in the order in which they are sent.
    ///   - size: the length of the whole body in bytes.
    ///   - contentType: the Content-Type of each part; empty for none.
    ///   - boundary: 64 random bits, so that no body holds the boundary.
    package init(ranges: [ByteRange], size: UInt64, contentType: [UInt8], boundary: UInt64) {
        self.ranges = ranges
        self.size = size
        self.contentType = contentType
        var text = Array("nuthatch-".utf8)
        HexDigits(boundary).append(to: &text)
        self.boundary = text
    }

    /// Appends the value of the response's Content-Type.
    package func appendContentType(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "multipart/byteranges; boundary=".utf8)
        bytes.append(contentsOf: boundary)
    }

    /// Appends the bytes that precede the range at this index of ``ranges``.
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

    /// Appends the bytes that follow the last range.
    package func appendTail(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "\r\n--".utf8)
        bytes.append(contentsOf: boundary)
        bytes.append(contentsOf: "--\r\n".utf8)
    }

    /// The Content-Length of the response: all heads and ranges, and the tail.
    package var contentLength: UInt64 {
        var framing: [UInt8] = []
        for index in ranges.indices { appendPartHead(index, to: &framing) }
        appendTail(to: &framing)
        return ranges.reduce(UInt64(framing.count)) { $0 + $1.count }
    }
}
