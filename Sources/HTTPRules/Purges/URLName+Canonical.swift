import Ground

extension URLName {
    /// The name in the canonical spelling of ``CacheKey`` of what `key` names; nil if that has
    /// none, as a host has that is no DNS name.
    ///
    /// A site's answers are kept under what was sent, byte by byte; whoever purges writes the URL
    /// in another spelling of the same (RFC 3986 §6.2.2), and means it.
    package static func canonical(
        ofKey key: [UInt8], bytesMax: Int = CacheKey.bytesMaxDefault
    ) -> [UInt8]? {
        let name = name(ofKey: key)
        guard key.starts(with: "//".utf8) else { return Array(name) }
        let isSecure = name.endIndex < key.endIndex && key[name.endIndex] == UInt8(ascii: "#")
        let url = Array(isSecure ? "https://".utf8 : "http://".utf8) + name
        var canonical: [UInt8] = []
        let result = CacheKey.normalise(
            url: url.span, at: 0..<url.count, into: &canonical, bytesMax: bytesMax)
        return result == .normalised ? Array(self.name(ofKey: canonical)) : nil
    }
}
