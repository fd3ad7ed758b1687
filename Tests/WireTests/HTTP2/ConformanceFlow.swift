import Wire

/// Flow control (RFC 9113 §5.2, §6.9).
enum ConformanceFlow {
    static let all = updates + windows + received

    private static let updates: [ConformanceCase] = [
        .init("RFC 9113 §6.9", "WINDOW_UPDATE of the connection", [.window(0, 1)], .ignored),
        .init(
            "RFC 9113 §6.9", "WINDOW_UPDATE of the connection by 0",
            [.window(0, 0)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.9", "WINDOW_UPDATE of a stream by 0",
            [.post(1), .window(1, 0)], .connectionError(.protocolError)),
        .init(
            "RFC 9113 §6.9", "WINDOW_UPDATE of 3 bytes",
            [.window(0, 1).with(payload: [0, 0, 1])], .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §6.9", "WINDOW_UPDATE of 5 bytes",
            [.window(0, 1).with(payload: [0, 0, 0, 0, 1])], .connectionError(.frameSizeError)),
        .init(
            "RFC 9113 §6.9", "the reserved bit of an increment",
            [.window(0, 0x8000_0001)], .ignored),
        .init(
            "RFC 9113 §6.9.1", "a connection's window of 2^31 - 1",
            [.window(0, 0x7FFF_FFFF - 65_535)], .ignored),
        .init(
            "RFC 9113 §6.9.1", "a connection's window of 2^31",
            [.window(0, 0x7FFF_FFFF), .window(0, 0x7FFF_FFFF)],
            .connectionError(.flowControlError)),
        .init(
            "RFC 9113 §6.9.1", "a stream's window of 2^31",
            [.post(1), .window(1, 0x7FFF_FFFF)], .connectionError(.flowControlError),
            settings: [(4, 1)]),
        .init(
            "RFC 9113 §6.9.2", "a stream's window of 2^31 by INITIAL_WINDOW_SIZE",
            [.get(1), .window(1, 0x7FFF_FFFF - 10), .settings([(4, 100)])],
            .connectionError(.flowControlError), settings: [(4, 0)], answerBytes: 0x7000),
    ]

    private static let windows: [ConformanceCase] = [
        .init(
            "RFC 9113 §6.9.1", "an exhausted window stops the body", [.get(1)], .data(1, [1]),
            settings: [(4, 1)]),
        .init(
            "RFC 9113 §6.9.1", "a window of 0 stops it at once", [.get(1)], .data(1, []),
            settings: [(4, 0)]),
        .init(
            "RFC 9113 §6.9.1", "a body without bytes needs no window", [.get(1)], .answered([1]),
            settings: [(4, 0)], answerBytes: 0),
        .init(
            "RFC 9113 §6.9.1", "an update lets so many bytes go",
            turns: [[.get(1)], [.window(1, 3)], [.window(1, 100)]], .data(1, [1, 3, 6]),
            settings: [(4, 1)]),
        .init(
            "RFC 9113 §6.9.1", "the connection's window binds too",
            [.get(1)], .data(1, [16_384, 16_384, 16_384, 16_383]), settings: [(4, 1 << 20)],
            answerBytes: 100_000),
        .init(
            "RFC 9113 §6.9.1", "an update of the connection's window goes on",
            turns: [[.get(1)], [.window(0, 65_535)]],
            .data(1, [16_384, 16_384, 16_384, 16_383, 16_384, 16_384, 1697]),
            settings: [(4, 1 << 20)], answerBytes: 100_000),
        .init(
            "RFC 9113 §6.9.2", "a larger INITIAL_WINDOW_SIZE opens the windows of open streams",
            turns: [[.get(1)], [.settings([(4, 1)])]], .data(1, [1]), settings: [(4, 0)]),
        .init(
            "RFC 9113 §6.9.2", "a window made negative takes as much before bytes go",
            turns: [
                [.get(1)], [.settings([(4, 2)])], [.window(1, 1)], [.window(1, 1)],
            ], .data(1, [3, 1]), settings: [(4, 3)]),
        .init(
            "RFC 9113 §6.9", "one stream without a window holds up no other",
            turns: [[.get(1)], [.get(3), .window(3, 10)]], .answered([3]), settings: [(4, 0)]),
    ]

    /// Limits of the server: 65,535 bytes on a stream, none of which is consumed while the request
    /// is not answered.
    private static let received: [ConformanceCase] = [
        .init(
            "RFC 9113 §6.9.1", "as many bytes as a stream's window takes",
            [.post(1)] + body(1, 65_535) + [.data(1, [], RawFrame.endStream)], .answered([1])),
        .init(
            "RFC 9113 §6.9", "padding counts, and is given back",
            [.post(1)]
                + (0..<9).map { _ in
                    .data(1, [255] + ConformanceFrames.zeros(255), RawFrame.padded)
                } + [.data(1, [], RawFrame.endStream)], .answered([1])),
    ]

    private static func body(_ stream: UInt32, _ count: Int) -> [RawFrame] {
        stride(from: 0, to: count, by: 16_384).map {
            .data(stream, ConformanceFrames.zeros(min(16_384, count - $0)))
        }
    }
}
