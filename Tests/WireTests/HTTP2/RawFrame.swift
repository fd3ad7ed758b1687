/// An HTTP/2 frame on the wire (RFC 9113 §4.1), written and read without the library.
struct RawFrame: Hashable, Sendable {
    var type: UInt8
    var flags: UInt8 = 0
    var stream: UInt32 = 0
    var payload: [UInt8] = []
    /// The length in the header, if it is not the payload's.
    var claimedLength: Int?

    /// The bytes of the frame.
    var bytes: [UInt8] {
        let length = claimedLength ?? payload.count
        return [UInt8(length >> 16 & 255), UInt8(length >> 8 & 255), UInt8(length & 255)]
            + [type, flags] + Self.number(stream) + payload
    }

    static func number(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
    }

    /// The frames in `bytes`, which are all complete.
    static func all(in bytes: [UInt8]) -> [RawFrame] {
        var frames: [RawFrame] = []
        var start = 0
        while start + 9 <= bytes.count {
            let length =
                Int(bytes[start]) << 16 | Int(bytes[start + 1]) << 8 | Int(bytes[start + 2])
            let id = bytes[start + 5..<start + 9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            let end = start + 9 + length
            precondition(end <= bytes.count, "a frame is cut off")
            frames.append(
                RawFrame(
                    type: bytes[start + 3], flags: bytes[start + 4], stream: id,
                    payload: Array(bytes[start + 9..<end])))
            start = end
        }
        precondition(start == bytes.count, "a frame's head is cut off")
        return frames
    }

    /// The 32-bit number at `offset` of the payload.
    func number(at offset: Int) -> UInt32 {
        payload[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    }
}

/// Frame types and flags (RFC 9113 §6).
extension RawFrame {
    static let endStream: UInt8 = 0x1
    static let ack: UInt8 = 0x1
    static let endHeaders: UInt8 = 0x4
    static let padded: UInt8 = 0x8
    static let priorityFlag: UInt8 = 0x20

    /// The connection preface of a client (RFC 9113 §3.4), SETTINGS not included.
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    static func data(_ stream: UInt32, _ payload: [UInt8], _ flags: UInt8 = 0) -> RawFrame {
        RawFrame(type: 0, flags: flags, stream: stream, payload: payload)
    }

    static func headers(
        _ stream: UInt32, _ block: [UInt8], _ flags: UInt8 = endStream | endHeaders
    ) -> RawFrame {
        RawFrame(type: 1, flags: flags, stream: stream, payload: block)
    }

    static func priority(_ stream: UInt32, on parent: UInt32, weight: UInt8 = 15) -> RawFrame {
        RawFrame(type: 2, stream: stream, payload: number(parent) + [weight])
    }

    static func reset(_ stream: UInt32, _ code: UInt32 = 8) -> RawFrame {
        RawFrame(type: 3, stream: stream, payload: number(code))
    }

    static func settings(_ entries: [(UInt16, UInt32)] = []) -> RawFrame {
        RawFrame(
            type: 4,
            payload: entries.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 255)] + number($0.1) })
    }

    static let settingsAck = RawFrame(type: 4, flags: ack)

    static func ping(_ text: String = "8 bytes.", _ flags: UInt8 = 0) -> RawFrame {
        RawFrame(type: 6, flags: flags, payload: Array(text.utf8))
    }

    static func goAway(_ last: UInt32 = 0, _ code: UInt32 = 0) -> RawFrame {
        RawFrame(type: 7, payload: number(last) + number(code))
    }

    static func window(_ stream: UInt32, _ increment: UInt32) -> RawFrame {
        RawFrame(type: 8, stream: stream, payload: number(increment))
    }

    static func continuation(
        _ stream: UInt32, _ block: [UInt8], _ flags: UInt8 = endHeaders
    ) -> RawFrame {
        RawFrame(type: 9, flags: flags, stream: stream, payload: block)
    }

    /// PRIORITY_UPDATE (RFC 9218 §7.1).
    static func priorityUpdate(_ stream: UInt32, _ value: String) -> RawFrame {
        RawFrame(type: 0x10, payload: number(stream) + Array(value.utf8))
    }
}

/// Field sections encoded by hand (RFC 7541 §6).
enum RawHPACK {
    /// A literal field without indexing and without Huffman coding, with a new name.
    static func literal(_ name: String, _ value: String) -> [UInt8] {
        [0x00] + string(name) + string(value)
    }

    /// A string of any length below 2¹⁴ (RFC 7541 §5.2).
    static func string(_ text: String) -> [UInt8] {
        let bytes = Array(text.unicodeScalars.map { UInt8($0.value) })
        return integer(bytes.count, prefix: 7, pattern: 0) + bytes
    }

    /// An integer with a prefix of `prefix` bits (RFC 7541 §5.1).
    static func integer(_ value: Int, prefix: Int, pattern: UInt8) -> [UInt8] {
        let limit = 1 << prefix - 1
        if value < limit { return [pattern | UInt8(value)] }
        var bytes = [pattern | UInt8(limit)]
        var rest = value - limit
        while rest >= 128 {
            bytes.append(UInt8(rest & 127) | 128)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    static func fields(_ list: [(String, String)]) -> [UInt8] {
        list.flatMap { literal($0.0, $0.1) }
    }

    /// The pseudo-header fields of a request.
    static func request(
        _ method: String = "GET", path: String = "/", scheme: String = "http",
        authority: String = "a.example", _ more: [(String, String)] = []
    ) -> [UInt8] {
        fields(
            [
                (":method", method), (":scheme", scheme), (":authority", authority),
                (":path", path),
            ] + more)
    }
}
