/// The path of a request target as an origin may interpret it.
enum TargetPath {
    /// The number of times an escape may be decoded on the way to a file, by a framework and by a
    /// server before it.
    private static let decodingsMax = 3

    /// Returns true if `target` may lead above the directory it is relative to, after any number of
    /// decodings up to ``decodingsMax``.
    ///
    /// Dot segments count (RFC 3986 §5.2.4), also with parameters after a `;`, and `\` counts as a
    /// slash. Empty segments are ignored, because some servers collapse several slashes.
    static func escapesBase(_ target: [UInt8]) -> Bool {
        var path = Array(target.prefix { $0 != UInt8(ascii: "?") })
        if ascendsAboveRoot(path) { return true }
        for _ in 0..<decodingsMax where path.contains(UInt8(ascii: "%")) {
            path = PercentEncoding.decoded(path[...], isLenient: true) ?? path
            if ascendsAboveRoot(path) { return true }
        }
        return false
    }

    /// Returns true if `..` segments lead above the start of `path` at any point.
    private static func ascendsAboveRoot(_ path: [UInt8]) -> Bool {
        var depth = 0
        for segment in path.split(whereSeparator: { $0 == 0x2F || $0 == 0x5C }) {
            // Some servers end a name at a control character, or drop trailing spaces.
            let name = segment.prefix { $0 != UInt8(ascii: ";") && $0 > 0x20 && $0 != 0x7F }
            if name.elementsEqual("..".utf8) {
                depth -= 1
                if depth < 0 { return true }
            } else if !name.elementsEqual(".".utf8), !name.isEmpty {
                depth += 1
            }
        }
        return false
    }
}
