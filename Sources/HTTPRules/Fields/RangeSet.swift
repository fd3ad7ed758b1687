import Ground

/// What a Range field asks of a body of known size (RFC 9110 §14.2).
package enum RangeSet: Hashable, Sendable {
    /// The whole body, as if there were no Range: 200.
    case whole
    /// None of the ranges lies in the body: 416.
    case unsatisfiable
    /// One range: 206.
    case single(ByteRange)
    /// At least two ranges, in ascending order if any of them touched, else as asked: 206 in parts.
    case multiple([ByteRange])

    /// Ranges in one request at most, where no setting says otherwise.
    package static let countMaxDefault = 16

    /// Reads the value of Range in `range` and resolves it against a body of `size` bytes.
    ///
    /// Another unit than bytes, a set that does not follow the syntax, and more than `countMax`
    /// ranges are answered with the whole (RFC 9110 §14.2). Ranges that overlap or touch become
    /// one (RFC 9110 §15.3.7.2), so that no request is answered with more bytes than the body
    /// has. Of an empty body there are no parts: it is given whole, whatever is asked for.
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

    /// True if the lines of a request ask for less than the whole of a body, as far as can be told
    /// without its size: one Range, of at most `countMax` ranges, that is not all from the first
    /// byte.
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

    /// One range as it was written.
    private enum Spec {
        case from(UInt64, last: UInt64)
        case suffix(UInt64)

        /// Nil if the bytes are no range: no number, or the last before the first.
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

        /// The digits as a number, the greatest one if they say more (RFC 9110 §14.1.1); nil if
        /// they are none.
        private static func number(_ bytes: Span<UInt8>, at range: Range<Int>) -> UInt64? {
            if range.isEmpty { return nil }
            for index in range where !ASCII.isDigit(bytes[index]) { return nil }
            return bytes.decimal(at: range) ?? .max
        }

        /// The bytes meant of a body that is not empty; nil if there are none.
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
