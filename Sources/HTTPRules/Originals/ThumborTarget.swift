import Ground

/// The URLs of thumbor ("Usage", section "Image Endpoint"): `/SIGNATURE/…/IMAGE`, or
/// `/unsafe/…/IMAGE`.
///
/// In between are, each at most once and in this order, `debug`, `meta`, `trim`, a crop, `fit-in`,
/// a size, two alignments, `smart` and filters. The image is all that follows.
enum ThumborTarget {
    /// The parts before the image, in order.
    private enum Part: CaseIterable {
        case debug
        case meta
        case trim
        case crop
        case fitIn
        case size
        case horizontal
        case vertical
        case smart
    }

    /// The minimum length of a signature in bytes: that of an HMAC-SHA1 in base64.
    private static let signatureBytesMin = 28

    /// Returns the image; `nil` if the target has no signature or no image.
    ///
    /// An image without a scheme is an http URL, as for thumbor's loader.
    static func reference(_ target: SplitTarget) -> OriginalReference? {
        // thumbor itself ignores the query.
        let path = target.path
        guard path.first == UInt8(ascii: "/"),
            let signature = segment(path.dropFirst()),
            signature.elementsEqual("unsafe".utf8) || signature.count >= signatureBytesMin
        else { return nil }
        var rest = path[(signature.endIndex + 1)...]
        for part in Part.allCases {
            guard let segment = segment(rest) else { break }
            if isPart(part, segment) { rest = rest[(segment.endIndex + 1)...] }
        }
        rest = afterFilters(rest)
        guard !rest.isEmpty, let image = PercentEncoding.decoded(rest) else { return nil }
        return OriginalReference(text: image, base: .http)
    }

    /// Returns the bytes before the first slash; `nil` without a slash.
    private static func segment(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        text.firstIndex(of: UInt8(ascii: "/")).map { text[..<$0] }
    }

    private static func isPart(_ part: Part, _ segment: ArraySlice<UInt8>) -> Bool {
        switch part {
        case .debug: segment.elementsEqual("debug".utf8)
        case .meta: segment.elementsEqual("meta".utf8)
        case .trim: isTrim(segment)
        case .crop: isCrop(segment)
        case .fitIn: isFitIn(segment)
        case .size: isSize(segment)
        case .horizontal: isOne(of: ["left", "right", "center"], segment)
        case .vertical: isOne(of: ["top", "bottom", "middle"], segment)
        case .smart: segment.elementsEqual("smart".utf8)
        }
    }

    private static func isOne(of words: [String], _ text: ArraySlice<UInt8>) -> Bool {
        words.contains { text.elementsEqual($0.utf8) }
    }

    /// Returns true for `trim`, optionally with `:top-left` or `:bottom-right`, optionally with a
    /// tolerance such as `:50`.
    private static func isTrim(_ segment: ArraySlice<UInt8>) -> Bool {
        var words = segment.split(
            separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)[...]
        guard words.popFirst()?.elementsEqual("trim".utf8) == true else { return false }
        if let corner = words.first, isOne(of: ["top-left", "bottom-right"], corner) {
            words.removeFirst()
        }
        if let tolerance = words.first, isNumber(tolerance) { words.removeFirst() }
        return words.isEmpty
    }

    /// Returns true for `AxB:CxD`.
    private static func isCrop(_ segment: ArraySlice<UInt8>) -> Bool {
        let corners = segment.split(
            separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        return corners.count == 2
            && corners.allSatisfy { corner in
                let numbers = corner.split(
                    separator: UInt8(ascii: "x"), omittingEmptySubsequences: false)
                return numbers.count == 2 && numbers.allSatisfy(isNumber)
            }
    }

    /// Returns true for `fit-in`, optionally after `adaptive-`, `full-` or both in this order.
    private static func isFitIn(_ segment: ArraySlice<UInt8>) -> Bool {
        isOne(
            of: ["fit-in", "adaptive-fit-in", "full-fit-in", "adaptive-full-fit-in"], segment)
    }

    /// Returns true for `WxH`; each may be missing, be `orig`, or follow a minus.
    private static func isSize(_ segment: ArraySlice<UInt8>) -> Bool {
        let sides = segment.split(
            separator: UInt8(ascii: "x"), omittingEmptySubsequences: false)
        return sides.count == 2
            && sides.allSatisfy { side in
                let size = side.first == UInt8(ascii: "-") ? side.dropFirst() : side
                return size.isEmpty || size.elementsEqual("orig".utf8) || isNumber(size)
            }
    }

    private static func isNumber(_ text: ArraySlice<UInt8>) -> Bool {
        !text.isEmpty && text.allSatisfy(ASCII.isDigit)
    }

    /// Returns the text after `filters:…)/`, or all of it if there are no filters.
    ///
    /// The arguments of filters may be URLs, which contain slashes.
    private static func afterFilters(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let name = Array("filters:".utf8)
        guard text.starts(with: name) else { return text }
        let start = text.startIndex + name.count
        for index in text.indices.dropFirst(name.count + 1)
        where text[index] == UInt8(ascii: "/") && text[index - 1] == UInt8(ascii: ")")
            && index - 1 > start
        {
            return text[(index + 1)...]
        }
        return text
    }
}
