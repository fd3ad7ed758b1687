/// The URLs of imgproxy ("Processing an image", section "Source URL"):
/// `/SIGNATURE/OPTION/…/plain/URL@EXTENSION` and `/SIGNATURE/OPTION/…/BASE64.EXTENSION`.
///
/// Options contain a colon, and base64 does not. A server that accepts only presets has their names
/// in place of the options, without a colon if there is one name; URLs of `/info` also have one
/// more segment. Therefore the segment after the first one without a colon is tried, too. An
/// encrypted source (`enc`) can only be read by imgproxy and has no original here.
enum ImgproxyTarget {
    /// Returns the possible sources, the most likely first.
    static func references(_ target: SplitTarget) -> [OriginalReference] {
        // imgproxy itself ignores the query.
        let segments = target.path.split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard segments.count > 2, segments[0].isEmpty, !segments[1].isEmpty,
            let first = source(in: segments, from: 2)
        else { return [] }
        var texts: [[UInt8]?] = []
        switch kind(of: segments, at: first) {
        case .plain: texts = [plain(target.path, from: segments[first].endIndex)]
        case .encrypted: break
        case .base64:
            texts = [base64(target.path[segments[first].startIndex...])]
            guard let next = source(in: segments, from: first + 1) else { break }
            switch kind(of: segments, at: next) {
            case .plain: texts.append(plain(target.path, from: segments[next].endIndex))
            case .encrypted: break
            case .base64: texts.append(base64(target.path[segments[next].startIndex...]))
            }
        }
        return texts.compactMap { text in text.map { OriginalReference(text: $0, base: nil) } }
    }

    private enum Kind {
        case plain
        case base64
        case encrypted
    }

    /// Returns how the source that begins at the segment `index` is written.
    private static func kind(of segments: [ArraySlice<UInt8>], at index: Int) -> Kind {
        // The last segment cannot be a marker, because nothing follows it.
        guard index + 1 < segments.count else { return .base64 }
        if segments[index].elementsEqual("plain".utf8) { return .plain }
        return segments[index].elementsEqual("enc".utf8) ? .encrypted : .base64
    }

    /// Returns the index of the first segment from `start` on that is not an option.
    private static func source(in segments: [ArraySlice<UInt8>], from start: Int) -> Int? {
        segments.indices.dropFirst(start).first { !segments[$0].contains(UInt8(ascii: ":")) }
    }

    /// Returns the URL after the slash at `slash`, up to an `@` and an extension; `nil` if it is
    /// malformed.
    private static func plain(_ path: ArraySlice<UInt8>, from slash: Int) -> [UInt8]? {
        let parts = path[(slash + 1)...].split(
            separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        guard parts.count == 1 || parts.count == 2 && !parts[1].contains(UInt8(ascii: "/")),
            !parts[0].isEmpty
        else { return nil }
        return PercentEncoding.decoded(parts[0])
    }

    /// Returns the bytes of base64url letters (RFC 4648 §5) with slashes anywhere, up to a dot and
    /// an extension; `nil` if they are not UTF-8.
    ///
    /// Text after the extension may be a file name and is ignored.
    private static func base64(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var letters = text.prefix { $0 != UInt8(ascii: ".") }.filter { $0 != UInt8(ascii: "/") }
        while letters.last == UInt8(ascii: "=") { letters.removeLast() }
        guard !letters.isEmpty, letters.count % 4 != 1 else { return nil }
        var source: [UInt8] = []
        var group: UInt32 = 0
        for (index, letter) in letters.enumerated() {
            guard let sextet = sextet(letter) else { return nil }
            group = group << 6 | UInt32(sextet)
            let place = index % 4
            // The first letter of four completes no byte.
            if place > 0 { source.append(UInt8(truncatingIfNeeded: group >> (6 - 2 * place))) }
        }
        // The name of a preset may be valid base64, but rarely decodes to text.
        return String(validating: source, as: UTF8.self) == nil ? nil : source
    }

    /// Returns the number that a base64url letter stands for.
    private static func sextet(_ letter: UInt8) -> UInt8? {
        switch letter {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): letter - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): letter - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): letter - UInt8(ascii: "0") + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
