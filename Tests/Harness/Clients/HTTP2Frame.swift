/// A frame of HTTP/2 (RFC 9113 §4.1), for clients that write frames no library would write.
package struct HTTP2Frame: Hashable, Sendable {
    /// The known frame types (RFC 9113 §6).
    package enum Kind: UInt8, Sendable {
        case data, headers, priority, reset, settings, pushPromise, ping, goAway, window
        case continuation
    }

    /// The code of the frame type.
    package var type: UInt8
    /// The flags.
    package var flags: UInt8
    /// The stream identifier; 0 for the connection.
    package var stream: UInt32
    /// The bytes after the nine-byte frame header.
    package var payload: [UInt8]

    /// Creates a frame of a known type.
    package init(
        _ kind: Kind, flags: UInt8 = 0, stream: UInt32 = 0, payload: [UInt8] = []
    ) {
        self.init(type: kind.rawValue, flags: flags, stream: stream, payload: payload)
    }

    /// Creates a frame of any type.
    package init(type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, payload: [UInt8] = []) {
        self.type = type
        self.flags = flags
        self.stream = stream
        self.payload = payload
    }

    /// The known type; `nil` for an unknown one.
    package var kind: Kind? { Kind(rawValue: type) }

    /// The bytes of the frame.
    package var bytes: [UInt8] { head(length: payload.count) + payload }

    /// Returns the nine-byte frame header with any length, true or false.
    package func head(length: Int) -> [UInt8] {
        [UInt8(length >> 16 & 255), UInt8(length >> 8 & 255), UInt8(length & 255), type, flags]
            + Self.number(stream)
    }

    /// True if a flag is set.
    package func isSet(_ flag: UInt8) -> Bool { flags & flag != 0 }

    /// The error code of RST_STREAM and GOAWAY; `nil` for other types.
    package var code: UInt32? {
        switch kind {
        case .reset: number(at: 0)
        case .goAway: number(at: 4)
        default: nil
        }
    }

    /// Returns the 32-bit number at `offset` of the payload, or 0 if the payload is too short.
    package func number(at offset: Int) -> UInt32 {
        payload.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Removes and returns the first frame of `bytes` if it is complete.
    static func take(from bytes: inout [UInt8]) -> HTTP2Frame? {
        guard bytes.count >= 9 else { return nil }
        let length = bytes[0..<3].reduce(0) { $0 << 8 | Int($1) }
        guard bytes.count >= 9 + length else { return nil }
        let stream = bytes[5..<9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        let frame = HTTP2Frame(
            type: bytes[3], flags: bytes[4], stream: stream,
            payload: Array(bytes[9..<9 + length]))
        bytes.removeFirst(9 + length)
        return frame
    }

    private static func number(_ value: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(value >> $0 & 255) }
    }
}

extension HTTP2Frame {
    package static let endStream: UInt8 = 0x1
    package static let acknowledged: UInt8 = 0x1
    package static let endHeaders: UInt8 = 0x4

    /// The connection preface of a client (RFC 9113 §3.4).
    package static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    /// Creates a SETTINGS frame with these parameters.
    package static func settings(_ list: [(UInt16, UInt32)] = []) -> HTTP2Frame {
        let payload = list.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 255)] + number($0.1) }
        return HTTP2Frame(.settings, payload: payload)
    }

    /// The SETTINGS frame with the ACK flag.
    package static let settingsAcknowledgement = HTTP2Frame(.settings, flags: acknowledged)

    /// Creates a PING frame with these eight bytes.
    package static func ping(_ payload: [UInt8] = Array("12345678".utf8)) -> HTTP2Frame {
        HTTP2Frame(.ping, payload: payload)
    }

    /// Creates a WINDOW_UPDATE frame.
    package static func window(_ stream: UInt32, _ increment: UInt32) -> HTTP2Frame {
        HTTP2Frame(.window, stream: stream, payload: number(increment))
    }

    /// Creates an RST_STREAM frame, by default with CANCEL.
    package static func reset(_ stream: UInt32, _ code: UInt32 = 8) -> HTTP2Frame {
        HTTP2Frame(.reset, stream: stream, payload: number(code))
    }

    /// Creates a complete request in one HEADERS frame; a body follows if `hasBody`.
    package static func request(
        _ stream: UInt32, _ path: String, method: String = "GET", host: String = "localhost",
        fields: [(String, String)] = [], hasBody: Bool = false
    ) -> HTTP2Frame {
        HTTP2Frame(
            .headers, flags: endHeaders | (hasBody ? 0 : endStream), stream: stream,
            payload: FieldBlock.request(method, path, host: host, fields))
    }
}

/// Field blocks encoded without a dynamic table (RFC 7541 §6.2.2).
package enum FieldBlock {
    /// Encodes the field block of a request.
    package static func request(
        _ method: String = "GET", _ path: String = "/", host: String = "localhost",
        _ fields: [(String, String)] = []
    ) -> [UInt8] {
        let own = [
            (":method", method), (":scheme", "http"), (":authority", host), (":path", path),
        ]
        return (own + fields).flatMap { line($0.0, $0.1) }
    }

    /// Encodes one field line without indexing.
    package static func line(_ name: String, _ value: String) -> [UInt8] {
        [0x00] + string(name) + string(value)
    }

    /// Encodes one field line that is added to the dynamic table (RFC 7541 §6.2.1).
    package static func incrementallyIndexed(_ name: String, _ value: String) -> [UInt8] {
        [0x40] + string(name) + string(value)
    }

    /// The one-byte index of the first entry of the dynamic table (RFC 7541 §6.1).
    package static let firstDynamicIndex: UInt8 = 0xBE

    /// Encodes a string without Huffman coding (RFC 7541 §5.2).
    private static func string(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
        var length: [UInt8] = [127]
        var rest = bytes.count - 127
        while rest >= 128 {
            length.append(UInt8(rest & 127) | 128)
            rest >>= 7
        }
        return length + [UInt8(rest)] + bytes
    }

    /// Returns the status at the start of a response's field block if it has an entry in the static
    /// table (RFC 7541 appendix A), otherwise `nil`.
    package static func status(_ block: [UInt8]) -> Int? {
        // A dynamic table size update (RFC 7541 §6.3) may precede it, one byte long if the size is
        // 0.
        let rest = block.drop { $0 == 0x20 }
        guard let first = rest.first, (0x88...0x8E).contains(first) else { return nil }
        return [200, 204, 206, 304, 400, 404, 500][Int(first - 0x88)]
    }
}
