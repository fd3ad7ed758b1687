/// The URLs of imgproxy ("Processing an image", section "Source URL"):
/// `/SIGNATURE/OPTION/…/plain/URL@EXTENSION` and `/SIGNATURE/OPTION/…/BASE64.EXTENSION`.
///
/// Options hold a colon, and base64 does not. A server that takes presets alone has their names in
/// the place of the options, without a colon if it is one name; URLs of `/info` have one segment
/// more as well. So what is behind the first segment without a colon is tried, too. A source that
/// is encrypted (`enc`) is known to imgproxy alone and has no original here.
enum ImgproxyTarget {
    /// What may be the source, likeliest first.
    static func references(_ target: SplitTarget) -> [OriginalReference] {
        // imgproxy itself drops the query.
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

    private static func kind(of segments: [ArraySlice<UInt8>], at index: Int) -> Kind {
        // The last segment says nothing of what follows.
        guard index + 1 < segments.count else { return .base64 }
        if segments[index].elementsEqual("plain".utf8) { return .plain }
        return segments[index].elementsEqual("enc".utf8) ? .encrypted : .base64
    }

    /// The first segment from `start` on that is no option.
    private static func source(in segments: [ArraySlice<UInt8>], from start: Int) -> Int? {
        segments.indices.dropFirst(start).first { !segments[$0].contains(UInt8(ascii: ":")) }
    }

    /// What stands behind the slash at `slash`, up to an `@` and an extension.
    private static func plain(_ path: ArraySlice<UInt8>, from slash: Int) -> [UInt8]? {
        let parts = path[(slash + 1)...].split(
            separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        guard parts.count == 1 || parts.count == 2 && !parts[1].contains(UInt8(ascii: "/")),
            !parts[0].isEmpty
        else { return nil }
        return PercentEncoding.decoded(parts[0])
    }

    /// Letters of base64url (RFC 4648 §5) with slashes anywhere, up to a dot and an extension; what
    /// is behind that may be a name for the file.
    private static func base64(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var letters: [UInt8] = []
        for byte in text.prefix(while: { $0 != UInt8(ascii: ".") }) {
            switch byte {
            case UInt8(ascii: "/"): continue
            case UInt8(ascii: "-"): letters.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): letters.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"): return nil
            default: letters.append(byte)
            }
        }
        while letters.last == UInt8(ascii: "=") { letters.removeLast() }
        // The name of a preset may be read as base64 as well, but seldom as that of a text.
        guard !letters.isEmpty,
            let source = Base64.parse(letters.span, at: 0..<letters.count),
            String(validating: source, as: UTF8.self) != nil
        else { return nil }
        return source
    }
}
