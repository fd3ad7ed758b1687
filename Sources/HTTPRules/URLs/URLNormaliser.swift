import Ground

/// Appends the canonical form of a URL to the array that holds the URL.
///
/// Every step reads bytes before `sourceEnd` and appends to the array. `index` is the next byte to
/// read; because the URL begins at the start of the array, it is also the offset reported in a
/// refusal.
struct URLNormaliser {
    private var index = 0
    private let sourceEnd: Int
    private var secure = false

    private init(sourceEnd: Int) {
        self.sourceEnd = sourceEnd
    }

    /// Appends the canonical form of the URL that `bytes` holds, after the URL itself; throws if
    /// the URL is refused or its canonical form is longer than `bytesMax`.
    static func append(to bytes: inout [UInt8], bytesMax: Int) throws(URLRefusal) {
        guard !bytes.isEmpty else { throw .empty }
        let count = bytes.count
        var normaliser = URLNormaliser(sourceEnd: count)
        try normaliser.scheme(&bytes)
        try normaliser.authority(&bytes)
        try normaliser.path(&bytes)
        try normaliser.query(&bytes)
        try normaliser.fragment(bytes)
        guard bytes.count - count <= bytesMax else { throw .tooLong(bytesMax: bytesMax) }
    }

    /// Returns true for bytes that path and query hold only as an escape.
    @inline(__always)
    static func isEncoded(_ byte: UInt8) -> Bool {
        !ByteSet.target.contains(byte) && !isControl(byte) && byte != UInt8(ascii: "%")
            && byte != UInt8(ascii: "#")
    }

    @inline(__always)
    private static func isControl(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == 0x7F
    }

    /// Copies the scheme and the two slashes after it.
    private mutating func scheme(_ bytes: inout [UInt8]) throws(URLRefusal) {
        if bytes.span.matchesIgnoringCase("http://", at: 0..<min(7, sourceEnd)) {
            index = 7
        } else if bytes.span.matchesIgnoringCase("https://", at: 0..<min(8, sourceEnd)) {
            secure = true
            index = 8
        } else {
            throw .scheme
        }
        bytes.append(contentsOf: secure ? "https://".utf8 : "http://".utf8)
    }

    /// Copies the host and a port other than the scheme's default; user info is refused.
    private mutating func authority(_ bytes: inout [UInt8]) throws(URLRefusal) {
        let start = index
        var end = start
        while end < sourceEnd, !Self.endsAuthority(bytes[end]) {
            if bytes[end] == UInt8(ascii: "@") { throw .userInfo(offset: start) }
            end += 1
        }
        if start < end, bytes[start] == UInt8(ascii: "[") {
            try ipv6(&bytes, end: end)
        } else {
            try appendHost(to: &bytes, end: end)
        }
        if index < end { try port(&bytes, end: end) }
        index = end
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }

    /// Copies a name or an IPv4 address, up to `end` or the colon before it.
    private mutating func appendHost(to bytes: inout [UInt8], end: Int) throws(URLRefusal) {
        let start = index
        let written = bytes.count
        while index < end, bytes[index] != UInt8(ascii: ":") {
            let byte = ASCII.lowercased(bytes[index])
            if Self.isControl(byte) { throw .control(offset: index, byte: byte) }
            if byte >= 0x80 { throw .hostNotASCII(offset: index) }
            guard ByteSet.host.contains(byte) else { throw .hostByte(offset: index, byte: byte) }
            bytes.append(byte)
            index += 1
        }
        if bytes.count > written + 1, bytes[bytes.count - 1] == UInt8(ascii: ".") {
            bytes.removeLast()
        }
        guard bytes.count > written else { throw .hostEmpty(offset: start) }
        var label = written
        for place in written...bytes.count {
            guard place == bytes.count || bytes[place] == UInt8(ascii: ".") else { continue }
            guard label < place, place - label <= HostName.labelBytesMax else {
                throw .hostLabel(offset: start + label - written)
            }
            if place < bytes.count { label = place + 1 }
        }
        guard bytes.count - written <= HostName.bytesMax else {
            throw .hostTooLong(offset: start)
        }
        guard HostName.isNameOrIPv4(bytes.span, at: written..<bytes.count, lastLabel: label) else {
            throw .hostNumber(offset: start)
        }
    }

    /// Copies the IPv6 address in brackets at `index` in its canonical spelling.
    private mutating func ipv6(_ bytes: inout [UInt8], end: Int) throws(URLRefusal) {
        let start = index + 1
        var close = start
        while close < end, bytes[close] != UInt8(ascii: "]") {
            if Self.isControl(bytes[close]) {
                throw .control(offset: close, byte: bytes[close])
            }
            if bytes[close] == UInt8(ascii: "%") { throw .ipv6Zone(offset: close) }
            close += 1
        }
        guard close < end, let number = IPAddress.readV6(bytes.span, at: start..<close) else {
            throw .ipv6(offset: index)
        }
        guard close + 1 == end || bytes[close + 1] == UInt8(ascii: ":") else {
            throw .hostByte(offset: close + 1, byte: bytes[close + 1])
        }
        bytes.append(UInt8(ascii: "["))
        IPAddress.v6(number).append(to: &bytes)
        bytes.append(UInt8(ascii: "]"))
        index = close + 1
    }

    /// Copies the port from the colon at `index` up to `end`; no digits mean the default port (RFC
    /// 3986 §6.2.3).
    private mutating func port(_ bytes: inout [UInt8], end: Int) throws(URLRefusal) {
        let start = index + 1
        guard start < end else { return }
        var number: UInt64 = 0
        for place in start..<end {
            guard ASCII.isDigit(bytes[place]), number <= 65_535 else { throw .port(offset: start) }
            number = number * 10 + UInt64(bytes[place] &- 0x30)
        }
        guard 1...65_535 ~= number else { throw .port(offset: start) }
        if number == (secure ? 443 : 80) { return }
        bytes.append(UInt8(ascii: ":"))
        ASCII.append(number, to: &bytes)
    }

    /// Copies the path and removes its dot segments (RFC 3986 §5.2.4).
    private mutating func path(_ bytes: inout [UInt8]) throws(URLRefusal) {
        let root = bytes.count
        bytes.append(UInt8(ascii: "/"))
        if index < sourceEnd, bytes[index] == UInt8(ascii: "/") { index += 1 }
        var segment = bytes.count
        while index < sourceEnd, bytes[index] != UInt8(ascii: "?"),
            bytes[index] != UInt8(ascii: "#")
        {
            if bytes[index] != UInt8(ascii: "/") {
                try copyByte(&bytes)
                continue
            }
            index += 1
            if !Self.removeDots(&bytes, segment: segment, root: root) {
                bytes.append(UInt8(ascii: "/"))
            }
            segment = bytes.count
        }
        _ = Self.removeDots(&bytes, segment: segment, root: root)
    }

    /// Removes the last segment if it is `.`, or `..` together with the one before it, so that the
    /// rest ends in a slash; returns true if it did.
    private static func removeDots(_ bytes: inout [UInt8], segment: Int, root: Int) -> Bool {
        let count = bytes.count - segment
        guard count == 1 || count == 2, bytes[segment] == UInt8(ascii: "."),
            bytes[bytes.count - 1] == UInt8(ascii: ".")
        else { return false }
        bytes.removeLast(count)
        guard count == 2, segment > root + 1 else { return true }
        repeat { bytes.removeLast() } while bytes[bytes.count - 1] != UInt8(ascii: "/")
        return true
    }

    /// Copies the query with its question mark, which an empty query keeps.
    private mutating func query(_ bytes: inout [UInt8]) throws(URLRefusal) {
        while index < sourceEnd, bytes[index] != UInt8(ascii: "#") { try copyByte(&bytes) }
    }

    /// Skips the fragment; a control byte in it is refused, because the URL is broken.
    private mutating func fragment(_ bytes: [UInt8]) throws(URLRefusal) {
        while index < sourceEnd {
            if Self.isControl(bytes[index]) {
                throw .control(offset: index, byte: bytes[index])
            }
            index += 1
        }
    }

    /// Copies the byte or the escape at `index` in canonical spelling.
    private mutating func copyByte(_ bytes: inout [UInt8]) throws(URLRefusal) {
        let byte = bytes[index]
        if ByteSet.target.contains(byte) {
            bytes.append(byte)
            index += 1
            return
        }
        if Self.isControl(byte) { throw .control(offset: index, byte: byte) }
        guard byte == UInt8(ascii: "%") else {
            Self.appendEscape(byte, to: &bytes)
            index += 1
            return
        }
        guard index + 2 < sourceEnd, let high = ASCII.hexValue(bytes[index + 1]),
            let low = ASCII.hexValue(bytes[index + 2])
        else { throw .escape(offset: index) }
        let meant = high << 4 | low
        if ByteSet.unreserved.contains(meant) {
            bytes.append(meant)
        } else {
            Self.appendEscape(meant, to: &bytes)
        }
        index += 3
    }

    /// Appends a percent sign and two digits in upper case.
    static func appendEscape(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "%"))
        bytes.append(hexDigit(byte >> 4))
        bytes.append(hexDigit(byte & 15))
    }

    /// Returns the digit in upper case, as escapes are written (RFC 3986 §2.1).
    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 + value : 0x37 + value
    }
}

/// The reasons why a URL is refused as the name of an image.
///
/// Offsets count bytes from the start of the URL, from 0.
package enum URLRefusal: Error, Hashable, Sendable {
    /// The URL is empty.
    case empty
    /// The canonical form is longer than `bytesMax`.
    case tooLong(bytesMax: Int)
    /// The query value has, before decoding, a `%` without two hexadecimal digits.
    case valueEscape(offset: Int)
    /// The URL has a `%` without two hexadecimal digits.
    case escape(offset: Int)
    /// The URL has a byte below 0x20, or 0x7F.
    case control(offset: Int, byte: UInt8)
    /// The URL does not begin with `http://` or `https://`.
    case scheme
    /// The URL has a user name or a password.
    case userInfo(offset: Int)
    /// The host is empty.
    case hostEmpty(offset: Int)
    /// The host is not in ASCII.
    case hostNotASCII(offset: Int)
    /// The host has a byte that is not allowed.
    case hostByte(offset: Int, byte: UInt8)
    /// The host has a label that is empty or longer than 63 bytes.
    case hostLabel(offset: Int)
    /// The host is longer than 253 bytes.
    case hostTooLong(offset: Int)
    /// The host ends in a number and is not an IPv4 address of four decimal numbers.
    case hostNumber(offset: Int)
    /// The brackets do not hold an IPv6 address.
    case ipv6(offset: Int)
    /// The IPv6 address has a zone (RFC 6874), which is only valid on one machine.
    case ipv6Zone(offset: Int)
    /// The port is not a number of 1 to 65535.
    case port(offset: Int)
}
