import Wire

/// The connection preface, frame sizes, and header blocks in several frames (RFC 9113 §3.4, §4,
/// §6.10).
enum ConformanceFrames {
    static let all = start + format + sizes + blocks + extensions

    private static let block = RawHPACK.request()

    private static let start: [ConformanceCase] = [
        .init(
            "RFC 9113 §3.4", "the preface and SETTINGS are answered with SETTINGS",
            fromStart: RawFrame.preface + RawFrame.settings().bytes, .frame(.settingsAck)),
        .init(
            "RFC 9113 §3.4", "a preface that is wrong",
            fromStart: Array("INVALID CONNECTION PREFACE\r\n\r\n".utf8),
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §3.4", "a preface that goes wrong at its end",
            fromStart: Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\rX".utf8),
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §3.4", "a first frame that is not SETTINGS",
            fromStart: RawFrame.preface + RawFrame.ping().bytes, .connectionError(.protocolError)),
        .init(
            "RFC 9113 §3.4", "a first frame that acknowledges SETTINGS",
            fromStart: RawFrame.preface + RawFrame.settingsAck.bytes,
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §3.4", "a request right behind the first SETTINGS",
            fromStart: RawFrame.preface + RawFrame.settings().bytes + RawFrame.get(1).bytes,
            .answered([1])),
    ]

    private static let format: [ConformanceCase] = [
        .init(
            "RFC 9113 §4.1", "flags that are not defined",
            [.ping().with(flags: 0x16)], .frame(.ping("8 bytes.", RawFrame.ack))),
        .init(
            "RFC 9113 §4.1", "the reserved bit of the stream id",
            [.ping().with(stream: 0x8000_0000)], .frame(.ping("8 bytes.", RawFrame.ack))),
        .init(
            "RFC 9113 §4.1", "the reserved bit of a request's stream id",
            [.get(1).with(stream: 0x8000_0001)], .answered([1])),
        .init(
            "RFC 9113 §4.1", "flags of HEADERS that are not defined",
            [.get(1).with(flags: 0xC7)], .answered([1])),
    ]

    private static let sizes: [ConformanceCase] = [
        .init(
            "RFC 9113 §4.2", "DATA of 2^14 bytes",
            [.post(1), .data(1, zeros(1 << 14), RawFrame.endStream)], .answered([1])),
        .init(
            "RFC 9113 §4.2", "DATA of 2^14 + 1 bytes",
            [.post(1), .data(1, zeros(1 << 14 + 1), RawFrame.endStream)],
            .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §4.2", "HEADERS of 2^14 + 1 bytes",
            [.headers(1, zeros(1 << 14 + 1))], .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §4.2", "a frame of an unknown type of 2^14 + 1 bytes",
            [RawFrame(type: 0xFE, payload: zeros(1 << 14 + 1))],
            .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §4.2", "SETTINGS of 2^14 + 2 bytes",
            [RawFrame(type: 4, payload: zeros(1 << 14 + 2))], .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §4.2", "HEADERS with the flag of priority and too short for it",
            [.headers(1, [0, 0, 0, 0], 0x25)], .connectionError(.frameSizeError)),
    ]

    private static let blocks: [ConformanceCase] = [
        .init(
            "RFC 9113 §4.3", "a header block that cannot be decoded",
            [.headers(1, [0x40])], .connectionError(.compressionError)),
        .init(
            "RFC 9113 §4.3", "PRIORITY within a header block",
            [.headers(1, block, RawFrame.endStream), .priority(1, on: 0)],
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §4.3", "HEADERS of another stream within a header block",
            [.headers(1, block, RawFrame.endStream), .get(3)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §4.3", "PING within a header block",
            [.headers(1, block, RawFrame.endStream), .ping()], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §4.3", "SETTINGS within a header block",
            [.headers(1, block, RawFrame.endStream), .settings()],
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.2", "the priority fields of a request are skipped",
            [.headers(1, [0, 0, 0, 0, 9] + block, 0x25)], .answered([1])),
        .init(
            "RFC 9113 §6.2", "a request with padding",
            [.headers(1, [4] + block + zeros(4), 0x0D)], .answered([1])),
        .init(
            "RFC 9113 §6.2", "a request with padding and priority",
            [.headers(1, [4, 0x80, 0, 0, 3, 255] + block + zeros(4), 0x2D)], .answered([1])),
        .init(
            "RFC 9113 §6.2", "padding as long as the payload of HEADERS",
            [.headers(1, [UInt8(block.count + 1)] + block, 0x0D)],
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.2", "HEADERS with the flag of padding and no byte",
            [.headers(1, [], 0x0D)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.2", "HEADERS on stream 0",
            [.get(0)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.10", "a header block in two frames",
            [
                .headers(1, Array(block[..<9]), RawFrame.endStream),
                .continuation(1, Array(block[9...])),
            ], .answered([1])),
        .init(
            "RFC 9113 §6.10", "a header block in three frames, one of them empty",
            [
                .headers(1, Array(block[..<9]), RawFrame.endStream), .continuation(1, [], 0),
                .continuation(1, Array(block[9...])),
            ], .answered([1])),
        .init(
            "RFC 9113 §6.10", "DATA after CONTINUATION that is not the last",
            [
                .headers(1, Array(block[..<9]), RawFrame.endStream),
                .continuation(1, Array(block[9...]), 0), .data(1, [0]),
            ], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.10", "CONTINUATION on stream 0",
            [.headers(1, block, RawFrame.endStream), .continuation(0, [])],
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.10", "CONTINUATION of another stream",
            [.headers(1, block, RawFrame.endStream), .continuation(3, [])],
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.10", "CONTINUATION after a complete header block",
            [.post(1), .continuation(1, [])], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.10", "CONTINUATION after the last CONTINUATION",
            [.headers(1, block, 0), .continuation(1, []), .continuation(1, [])],
            .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.10", "CONTINUATION after DATA",
            [.post(1), .data(1, [0]), .continuation(1, [])], .connectionError(.protocolError)),
    ]

    private static let extensions: [ConformanceCase] = [
        .init(
            "RFC 9113 §5.5", "a frame of an unknown type",
            [RawFrame(type: 0xFE, flags: 0xFF, stream: 0, payload: zeros(8))], .ignored),
        .init(
            "RFC 9113 §5.5", "a frame of an unknown type on an idle stream",
            [RawFrame(type: 0xFE, stream: 7, payload: []), .get(1)], .answered([1])),
        .init(
            "RFC 9113 §5.5", "a frame of an unknown type between the frames of a request",
            [.post(1), RawFrame(type: 0x20, stream: 1), .data(1, [1], RawFrame.endStream)],
            .answered([1])),
        .init(
            "RFC 9113 §5.5", "a frame of an unknown type within a header block",
            [.headers(1, block, RawFrame.endStream), RawFrame(type: 0xFE, stream: 1)],
            .connectionError(.protocolError)),
        .init(
            "RFC 9218 §7.1", "PRIORITY_UPDATE of an idle stream",
            [.priorityUpdate(1, "u=1"), .get(1)], .answered([1])),
        .init(
            "RFC 9218 §7.1", "PRIORITY_UPDATE that cannot be read",
            [.get(1), .priorityUpdate(1, "u=9?")], .answered([1])),
        .init(
            "RFC 9218 §7.1", "PRIORITY_UPDATE on a stream",
            [.priorityUpdate(1, "u=1").with(stream: 1)], .connectionError(.protocolError)),
        .init(
            "RFC 9218 §7.1", "PRIORITY_UPDATE of stream 0",
            [.priorityUpdate(0, "u=1")], .connectionError(.protocolError)),
        .init(
            "RFC 9218 §7.1", "PRIORITY_UPDATE of fewer than 4 bytes",
            [RawFrame(type: 0x10, payload: [0, 0, 1])], .connectionError(.frameSizeError)),
    ]

    static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
}
