import Ground

/// An authority of a request taken apart, as far as sites tell hosts apart.
struct SiteAuthority: Hashable {
    /// Without a final dot, an IPv6 address with its brackets; empty if the authority is.
    var host: Range<Int>
    /// Where none is written, that of the scheme: 80, or 443 for what came encrypted.
    var port: UInt16

    /// Nil if there is more in it than a name of letters, digits, `-`, `_` and `.`, or an address
    /// in brackets, and a port: keys must say where the host ends.
    init?(_ bytes: Span<UInt8>, at range: Range<Int>, isSecure: Bool) {
        var end = range.lowerBound
        if !range.isEmpty, bytes[end] == UInt8(ascii: "[") {
            end += 1
            while end < range.upperBound, bytes[end] != UInt8(ascii: "]") {
                guard
                    ASCII.hexValue(bytes[end]) != nil || bytes[end] == UInt8(ascii: ":")
                        || bytes[end] == UInt8(ascii: ".")
                else { return nil }
                end += 1
            }
            guard end < range.upperBound else { return nil }
            end += 1
        } else {
            // Labels of 1 to 63 characters, 253 together, and perhaps a dot behind them (RFC 1035
            // §2.3.4); or nothing.
            var label = end
            while end < range.upperBound, ByteSet.host.contains(ASCII.lowercased(bytes[end])) {
                if bytes[end] == UInt8(ascii: ".") {
                    guard 1...63 ~= end - label else { return nil }
                    label = end + 1
                }
                end += 1
            }
            let isEnded = label == end
            guard end - label <= 63, end - range.lowerBound - (isEnded ? 1 : 0) <= 253 else {
                return nil
            }
        }
        host = range.lowerBound..<end
        if host.count > 1, bytes[end - 1] == UInt8(ascii: ".") {
            host = host.lowerBound..<end - 1
        }
        port = isSecure ? 443 : 80
        guard end < range.upperBound else { return }
        guard !host.isEmpty, bytes[end] == UInt8(ascii: ":") else { return nil }
        guard end + 1 < range.upperBound else { return }
        var number = 0
        for index in end + 1..<range.upperBound {
            guard ASCII.isDigit(bytes[index]), number <= 65_535 else { return nil }
            number = number * 10 + Int(bytes[index] &- 0x30)
        }
        guard let port = UInt16(exactly: number), port > 0 else { return nil }
        self.port = port
    }
}
