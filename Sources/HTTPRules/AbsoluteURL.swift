/// An absolute URL taken apart (RFC 3986 §4.3), as operators write one.
package struct AbsoluteURL {
    /// True for https.
    package let isSecure: Bool
    /// Host, and port if there is one.
    package let host: Range<Int>
    /// Path and query; a fragment is no part of it.
    package let target: Range<Int>

    /// Nil if there is no scheme.
    package init?(_ url: [UInt8]) {
        guard let colon = url.firstRange(of: Array("://".utf8)) else { return nil }
        isSecure = String(decoding: url[..<colon.lowerBound], as: UTF8.self).lowercased() == "https"
        let end = url.firstIndex(of: UInt8(ascii: "#")) ?? url.count
        let rest = url[colon.upperBound..<max(end, colon.upperBound)]
        let slash = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
        host = colon.upperBound..<(slash ?? rest.endIndex)
        target = (slash ?? rest.endIndex)..<rest.endIndex
    }
}
