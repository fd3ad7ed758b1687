package import Ground

/// Parses the header that a trusted proxy sends before the first byte of a connection: PROXY
/// protocol version 1 (a line of text) and version 2 (binary), as HAProxy specifies it.
///
/// Choices where the specification allows several: bytes that cannot begin a header are refused at
/// once, without waiting for the rest; destination addresses are validated and dropped; the
/// type-length-value fields of version 2 (among them a CRC32c) are skipped unread; families without
/// an IP address over a stream yield an unknown source.
package enum ProxyProtocol {
    /// The maximum size of a version 1 header in bytes, including CR LF.
    package static let lineBytesMax = 107
    /// The maximum size of a version 2 header in bytes, including type-length-value fields; the
    /// format allows 64 KiB, and proxies send a few hundred.
    package static let binaryBytesMax = 4 * 1024

    /// Parses the header at the start of `bytes`, the first ones of a connection.
    package static func read(_ bytes: Span<UInt8>) -> ProxyProtocolResult {
        guard bytes.count > 0 else { return .needsMore }
        return bytes[0] == signature[0] ? binary(bytes) : line(bytes)
    }
}

/// The result of ``ProxyProtocol/read(_:)``.
package enum ProxyProtocolResult: Hashable, Sendable {
    /// The bytes are an incomplete header. Call again with the same bytes and more.
    case needsMore
    /// The address that connected to the proxy; the client's bytes begin at `end`.
    ///
    /// `nil` if the proxy does not state it (`UNKNOWN`, `LOCAL`): the connection's own address then
    /// applies.
    case source(ProxySource?, end: Int)
    /// There is no valid header; close the connection.
    case refused
}

/// The client's address on its connection to the proxy.
package struct ProxySource: Hashable, Sendable {
    /// The client's IP address.
    package var address: IPAddress
    /// The client's port.
    package var port: UInt16

    /// Creates a source from its parts.
    package init(_ address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }
}

// MARK: - Version 1

extension ProxyProtocol {
    private static let unknown = Array("PROXY UNKNOWN".utf8)
    private static let v4 = Array("PROXY TCP4 ".utf8)
    private static let v6 = Array("PROXY TCP6 ".utf8)

    /// Parses a header of version 1.
    private static func line(_ bytes: Span<UInt8>) -> ProxyProtocolResult {
        let limit = min(bytes.count, lineBytesMax)
        var stop = 0
        while stop < limit, bytes[stop] != Byte.carriageReturn { stop += 1 }
        let isUnknown = hasPrefix(bytes, to: stop, with: unknown)
        let isV4 = hasPrefix(bytes, to: stop, with: v4)
        guard isUnknown || isV4 || hasPrefix(bytes, to: stop, with: v6) else { return .refused }
        // For a connection that the proxy does not know, the rest of the line must be ignored.
        if isUnknown, stop > unknown.count, bytes[unknown.count] != Byte.space { return .refused }
        guard stop + 1 < limit else {
            return limit == lineBytesMax ? .refused : .needsMore
        }
        guard bytes[stop + 1] == Byte.lineFeed else { return .refused }
        if isUnknown {
            return stop < unknown.count ? .refused : .source(nil, end: stop + 2)
        }
        guard stop > v4.count, let source = addresses(bytes, at: v4.count..<stop, isV4: isV4) else {
            return .refused
        }
        return .source(source, end: stop + 2)
    }

    /// Returns true if the bytes before `end` match the start of `text`, as far as they go.
    private static func hasPrefix(_ bytes: Span<UInt8>, to end: Int, with text: [UInt8]) -> Bool {
        for index in 0..<min(end, text.count) where bytes[index] != text[index] { return false }
        return true
    }

    /// Parses `source SP destination SP port SP port`, and returns the source; `nil` if any of the
    /// four is malformed.
    private static func addresses(
        _ bytes: Span<UInt8>, at range: Range<Int>, isV4: Bool
    ) -> ProxySource? {
        var words: [Range<Int>] = []
        var start = range.lowerBound
        for index in range where bytes[index] == Byte.space {
            words.append(start..<index)
            start = index + 1
        }
        words.append(start..<range.upperBound)
        guard words.count == 4,
            let source = address(bytes, at: words[0], isV4: isV4),
            address(bytes, at: words[1], isV4: isV4) != nil,
            let sourcePort = port(bytes, at: words[2]), port(bytes, at: words[3]) != nil
        else { return nil }
        return ProxySource(source, port: sourcePort)
    }

    private static func address(
        _ bytes: Span<UInt8>, at range: Range<Int>, isV4: Bool
    ) -> IPAddress? {
        isV4
            ? IPAddress.readV4(bytes, at: range).map { .v4($0) }
            : IPAddress.readV6(bytes, at: range).map { .v6($0) }
    }

    /// Parses a port: 0 to 65535 in decimal without leading zeros; `nil` for anything else.
    private static func port(_ bytes: Span<UInt8>, at range: Range<Int>) -> UInt16? {
        guard range.count <= 5, let number = bytes.decimal(at: range),
            range.count == 1 || bytes[range.lowerBound] != UInt8(ascii: "0")
        else { return nil }
        return UInt16(exactly: number)
    }
}

// MARK: - Version 2

extension ProxyProtocol {
    /// The twelve bytes that begin every header of version 2.
    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]
    /// The size in bytes of signature, version and command, family and transport, and length.
    private static let fixedCount = 16

    /// Parses a header of version 2.
    private static func binary(_ bytes: Span<UInt8>) -> ProxyProtocolResult {
        for index in 0..<min(bytes.count, signature.count) where bytes[index] != signature[index] {
            return .refused
        }
        guard bytes.count > 12 else { return .needsMore }
        let isLocal = bytes[12] == 0x20
        guard isLocal || bytes[12] == 0x21 else { return .refused }
        guard bytes.count > 13 else { return .needsMore }
        let family = bytes[13]
        // For a connection of the proxy's own, the family is irrelevant.
        guard isLocal || family >> 4 <= 3 && family & 15 <= 2 else { return .refused }
        guard bytes.count >= fixedCount else { return .needsMore }
        let end = fixedCount + Int(bytes[14]) << 8 + Int(bytes[15])
        guard end <= binaryBytesMax, isLocal || end >= fixedCount + addressCount(family) else {
            return .refused
        }
        guard bytes.count >= end else { return .needsMore }
        guard !isLocal else { return .source(nil, end: end) }
        switch family {
        case 0x11: return .source(source(bytes, addressCount: 4), end: end)
        case 0x21: return .source(source(bytes, addressCount: 16), end: end)
        default: return .source(nil, end: end)
        }
    }

    /// Returns the size in bytes of a family's addresses: two of them, with ports except for Unix
    /// sockets.
    private static func addressCount(_ family: UInt8) -> Int {
        switch family >> 4 {
        case 1: 12
        case 2: 36
        case 3: 216
        default: 0
        }
    }

    /// Returns the source in a complete header whose addresses have `count` bytes each.
    private static func source(_ bytes: Span<UInt8>, addressCount count: Int) -> ProxySource? {
        let port = fixedCount + 2 * count
        return IPAddress(bytes.extracting(fixedCount..<fixedCount + count)).map {
            ProxySource($0, port: UInt16(bytes[port]) << 8 | UInt16(bytes[port + 1]))
        }
    }
}
