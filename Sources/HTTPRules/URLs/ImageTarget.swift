package import Ground

/// The result of parsing a request target as one of the image API, `/v1/image?url=…`.
package enum ImageTargetParse: Hashable, Sendable {
    /// The target requests the image whose percent-encoded URL is in `url`.
    case image(url: Extent)
    /// The target is that of another resource.
    case notImage
    /// The target is malformed: send 400.
    case refused(ImageTargetRefusal)
}

/// The reasons why a target of the image API is refused.
package enum ImageTargetRefusal: Hashable, Sendable {
    /// There is no parameter `url`.
    case urlMissing
    /// The parameter `url` has no value; `offset` is where the value would begin.
    case urlEmpty(offset: Int)
    /// The parameter `url` comes twice; `offset` is where the second begins.
    case urlDuplicated(offset: Int)
    /// There is a parameter other than `url`, most often the rest of a URL with an unescaped `&`.
    case parameterUnknown(name: Extent)
}

/// The request targets of the image API.
package enum ImageTarget {
    /// Parses the path and query of a request target in one pass, without copying.
    ///
    /// Extents and offsets in the result refer to `bytes`.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that hold the target.
    ///   - range: the range of path and query, without scheme and authority of the absolute form
    ///     (RFC 9112 §3.2.2). It holds no `#`, which is not allowed in a request target.
    /// - Returns: the extent of the encoded URL, or that the target is not an image's, or the error
    ///   to respond with.
    package static func parse(_ bytes: Span<UInt8>, at range: Range<Int>) -> ImageTargetParse {
        // The compiler drops bounds checks in a loop that runs to the span's own end.
        let target = bytes.extracting(range)
        let base = range.lowerBound
        let query = path.count
        guard query <= target.count else { return .notImage }
        for index in 0..<path.count where target[index] != path[index] {
            return .notImage
        }
        if query == target.count { return .refused(.urlMissing) }
        guard target[query] == UInt8(ascii: "?") else { return .notImage }
        return parameters(target, from: query + 1, base: base)
    }

    private static var path: InlineArray<9, UInt8> {
        [0x2F, 0x76, 0x31, 0x2F, 0x69, 0x6D, 0x61, 0x67, 0x65]
    }

    /// Parses the query, which may have only one parameter; `base` is the offset of `target` in the
    /// bytes that the result refers to.
    @inline(__always)
    private static func parameters(
        _ target: Span<UInt8>, from first: Int, base: Int
    ) -> ImageTargetParse {
        var url: Extent?
        var start = first
        while start < target.count {
            let end = delimiter(target, from: start)
            guard start + 4 <= end, target[start] == UInt8(ascii: "u"),
                target[start + 1] == UInt8(ascii: "r"), target[start + 2] == UInt8(ascii: "l"),
                target[start + 3] == UInt8(ascii: "=")
            else {
                return unknown(target, at: start..<end, base: base)
            }
            if url != nil { return .refused(.urlDuplicated(offset: base + start)) }
            if start + 4 == end { return .refused(.urlEmpty(offset: base + end)) }
            url = Extent(start: base + start + 4, count: end - start - 4)
            start = end + 1
            if start == target.count {
                return .refused(.parameterUnknown(name: Extent(start: base + start, count: 0)))
            }
        }
        guard let url else { return .refused(.urlMissing) }
        return .image(url: url)
    }

    /// Returns the offset of the next `&`, or the end of the target.
    @inline(__always)
    private static func delimiter(_ target: Span<UInt8>, from start: Int) -> Int {
        var index = start
        while index < target.count, target[index] != UInt8(ascii: "&") { index &+= 1 }
        return index
    }

    /// Returns the refusal of a parameter that is not `url=…`.
    private static func unknown(
        _ target: Span<UInt8>, at range: Range<Int>, base: Int
    ) -> ImageTargetParse {
        var end = range.lowerBound
        while end < range.upperBound, target[end] != UInt8(ascii: "=") { end += 1 }
        if target.matches("url", at: range.lowerBound..<end) {
            return .refused(.urlEmpty(offset: base + end))
        }
        let name = Extent(start: base + range.lowerBound, count: end - range.lowerBound)
        return .refused(.parameterUnknown(name: name))
    }
}
